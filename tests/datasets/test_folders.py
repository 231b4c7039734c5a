"""Folders of images, Pl@ntNet-300K, and CSV files of labels, as tests write them."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from PIL import Image

from workbench.datasets import load_dataset
from workbench.datasets.files import KINDS

SMALL = {"size": 4, "resize": 4}


def write_images(folder, n: int, shade: int = 0, suffix: str = ".png") -> None:
    """n images whose shades are shade, shade + 1, …"""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(n):
        Image.new("RGB", (6, 4), (shade + number,) * 3).save(folder / f"{number}{suffix}")


def shades(split) -> list[int]:
    return split.inputs[:][:, 0, 0, 0].tolist()


@pytest.fixture
def split_folder(tmp_path):
    """fern has the shades from 0, rose those from 100; train starts at 0, val at 30, test at 60."""
    for split, start, n in (("train", 0, 5), ("val", 30, 2), ("test", 60, 3)):
        write_images(tmp_path / "plants" / split / "fern", n, start)
        write_images(tmp_path / "plants" / split / "rose", n, start + 100)
    return tmp_path / "plants"


# A folder of images


def test_the_splits_of_a_folder_are_its_own(split_folder):
    data = load_dataset(split_folder, **SMALL)
    assert repr(data) == "Dataset('plants': 10 / 4 / 6 rows of 4 × 4 × 3, 2 classes)"
    assert data.class_names == ("fern", "rose")
    assert shades(data.train) == [0, 1, 2, 3, 4, 100, 101, 102, 103, 104]
    assert shades(data.val) == [30, 31, 130, 131]
    assert data.test.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert data.groups is None


def test_a_folder_of_classes_is_split_by_the_rule_of_plantnet(tmp_path):
    for label, n in enumerate((4, 25, 11)):
        write_images(tmp_path / f"class {label}", n, 80 * label)
    data = load_dataset(tmp_path, **SMALL)
    assert [np.bincount(split.labels).tolist() for split in (data.train, data.val, data.test)] == [
        [2, 19, 7],
        [1, 3, 2],
        [1, 3, 2],
    ]
    assert sorted(shades(data.train) + shades(data.val) + shades(data.test)) == sorted(
        [80 * label + number for label, n in enumerate((4, 25, 11)) for number in range(n)]
    )
    for split in (data.train, data.val, data.test):
        assert [shade // 80 for shade in shades(split)] == split.labels.tolist()
    assert load_dataset(tmp_path, **SMALL, seed=1).key != data.key


@pytest.mark.parametrize("other", ["val", "test", "valid"])
def test_the_only_folder_beside_training_is_the_test_and_val_is_a_tenth_of_training(tmp_path, other):
    for split, start, n in (("train", 0, 12), (other, 60, 3)):
        write_images(tmp_path / split / "fern", n, start)
        write_images(tmp_path / split / "rose", n, start + 100)
    data = load_dataset(tmp_path, **SMALL)
    assert (data.train.n, data.val.n, data.test.n) == (20, 4, 6)
    assert shades(data.test) == [60, 61, 62, 160, 161, 162]
    assert np.bincount(data.val.labels).tolist() == [2, 2]
    assert not set(shades(data.train)) & set(shades(data.val))


def test_classes_with_few_images_are_refused_or_left_out(tmp_path):
    for name, n in (("fern", 5), ("moss", 3), ("rose", 5)):
        write_images(tmp_path / name, n)
    with pytest.raises(ValueError, match=r"fewer than 4 rows for moss \(3\)"):
        load_dataset(tmp_path)
    assert load_dataset(tmp_path, drop_small=True).class_names == ("fern", "rose")


def test_images_deep_inside_count_and_hidden_or_foreign_files_do_not(split_folder):
    fern = split_folder / "train" / "fern"
    write_images(fern / "2024" / "may", 2, 7, suffix=".PNG")
    (fern / "notes.txt").write_text("wet")
    (fern / ".hidden.png").write_bytes(b"")
    (split_folder / "train" / ".cache").mkdir()
    data = load_dataset(split_folder, **SMALL)
    assert data.class_counts.tolist() == [7, 5]
    assert sorted(shades(data.train))[:7] == [0, 1, 2, 3, 4, 7, 8]


def test_the_key_follows_the_content_and_not_the_place(split_folder, tmp_path):
    key = load_dataset(split_folder, **SMALL).key
    shutil.copytree(split_folder, tmp_path / "elsewhere")
    assert load_dataset(tmp_path / "elsewhere", **SMALL).key == key
    assert load_dataset(split_folder, size=3, resize=4).key != key
    write_images(split_folder / "test" / "rose", 1, 200)
    assert load_dataset(split_folder, **SMALL).key != key


def test_the_spec_finds_the_data_again_from_another_folder(split_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(split_folder.parent)
    data = load_dataset("plants", **SMALL)
    monkeypatch.chdir(tmp_path / "plants" / "val")
    again = load_dataset(data.spec["name"], **data.spec["knobs"])
    assert again.key == data.key
    assert json.loads(json.dumps(data.spec)) == data.spec


def test_a_link_to_nowhere_is_named_with_what_to_do(split_folder):
    link = next(split_folder.rglob("*.png")).with_name("lost.png")
    link.symlink_to(split_folder / "nowhere.png")
    with pytest.raises(ValueError, match=r"lost\.png cannot be read \(No such file.*replace it or take it away"):
        load_dataset(split_folder)


def test_a_class_that_training_lacks_and_a_class_without_images_are_named(split_folder):
    write_images(split_folder / "val" / "moss", 1)
    with pytest.raises(ValueError, match="val has classes that training lacks: moss"):
        load_dataset(split_folder)
    shutil.rmtree(split_folder / "val" / "moss")
    (split_folder / "train" / "algae").mkdir()
    with pytest.raises(ValueError, match="no training row for algae"):
        load_dataset(split_folder)


def test_folders_that_cannot_be_a_dataset_say_what_they_hold(split_folder, tmp_path):
    shutil.rmtree(split_folder / "train")
    with pytest.raises(ValueError, match=r"holds 2 folders \(test/, val/\); there is no train/"):
        load_dataset(split_folder)
    write_images(tmp_path / "one" / "photos", 3)
    with pytest.raises(ValueError, match=r"holds 1 folder \(photos/\).*one for each class"):
        load_dataset(tmp_path / "one")
    write_images(split_folder / "train" / "fern", 3)
    write_images(split_folder / "train" / "rose", 3)
    shutil.rmtree(split_folder / "test")
    write_images(split_folder / "test", 3)
    with pytest.raises(ValueError, match=r"test holds 3 files \(0\.png, 1\.png, 2\.png\).*one folder for each class"):
        load_dataset(split_folder)


def test_a_knob_that_images_do_not_have_lists_those_they_have(split_folder):
    with pytest.raises(ValueError, match="plants has no knob crop; it has seed, size, resize, drop_small"):
        load_dataset(split_folder, crop=3)
    with pytest.raises(ValueError, match="size ≤ resize"):
        load_dataset(split_folder, size=300)


def test_a_path_that_is_no_dataset_says_what_was_found_and_what_is_understood(tmp_path):
    write_images(tmp_path / "flat", 7)
    with pytest.raises(ValueError, match=r"flat holds 7 files \(0\.png, 1\.png, 2\.png, 3\.png, 4\.png, …\)") as error:
        load_dataset(tmp_path / "flat")
    for kind in KINDS:
        assert kind.looks_like in str(error.value)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="empty holds nothing, which is not a dataset"):
        load_dataset(tmp_path / "empty")
    with pytest.raises(ValueError, match=r"0\.png is a file, which is not a dataset"):
        load_dataset(tmp_path / "flat" / "0.png")
    with pytest.raises(ValueError, match="and no such path"):
        load_dataset(tmp_path / "missing")


# Pl@ntNet-300K

SPECIES = {"1355868": "Lactuca virosa L.", "1355920": "Pelargonium capitatum (L.) L'Hér.", "99": "Lactuca sativa L."}


@pytest.fixture
def plantnet(tmp_path):
    root, about = tmp_path / "plantnet_300K", {}
    for split, start, n in (("train", 0, 3), ("val", 10, 1), ("test", 20, 2)):
        for label, species in enumerate(sorted(SPECIES)):
            write_images(root / "images" / split / species, n, start + 80 * label, suffix=".jpg")
            for number in range(n):
                image = f"{split}{species}{number}"
                (root / "images" / split / species / f"{number}.jpg").rename(
                    root / "images" / split / species / f"{image}.jpg"
                )
                about[image] = {"species_id": species, "organ": "flower" if number else "leaf", "author": "A. Müller"}
    about["test990"] = {"organ": None}
    (root / "plantnet300K_species_id_2_name.json").write_text(json.dumps(SPECIES), encoding="utf-8")
    (root / "plantnet300K_metadata.json").write_text(json.dumps(about), encoding="utf-8")
    return root


def test_plantnet_has_species_names_genera_and_what_is_known_of_each_image(plantnet):
    data = load_dataset(plantnet, **SMALL)
    assert (data.train.n, data.val.n, data.test.n) == (9, 3, 6)
    assert data.class_names == ("Lactuca virosa L.", "Pelargonium capitatum (L.) L'Hér.", "Lactuca sativa L.")
    assert data.groups == ("Lactuca", "Pelargonium", "Lactuca")
    assert [shade // 80 for shade in shades(data.test)] == data.test.labels.tolist()
    assert data.test.attributes["organ"].tolist() == ["leaf", "flower", "leaf", "flower", "unknown", "flower"]
    assert data.test.attributes["author"][0] == "A. Müller"
    assert set(data.test.attributes["license"]) == {"unknown"}


def test_plantnet_reads_without_metadata_and_with_the_older_folder_names(plantnet):
    (plantnet / "plantnet300K_metadata.json").unlink()
    for split in ("train", "val", "test"):
        (plantnet / "images" / split).rename(plantnet / f"images_{split}")
    data = load_dataset(plantnet, **SMALL)
    assert data.val.attributes is None
    assert data.groups == ("Lactuca", "Pelargonium", "Lactuca")


def test_plantnet_with_broken_files_of_names_says_which(plantnet):
    names = plantnet / "plantnet300K_species_id_2_name.json"
    names.write_text('{"99": "Lactuca sativa L."}')
    with pytest.raises(ValueError, match=r"does not name the species 1355868, 1355920"):
        load_dataset(plantnet)
    names.write_text("[]")
    with pytest.raises(ValueError, match=r"2_name\.json holds a list"):
        load_dataset(plantnet)
    names.write_text('{"99": ')
    with pytest.raises(ValueError, match=r"2_name\.json is not JSON"):
        load_dataset(plantnet)


@pytest.mark.parametrize("name", ["", " ", None, 5])
def test_plantnet_with_a_species_that_has_no_name_says_which(plantnet, name):
    names = plantnet / "plantnet300K_species_id_2_name.json"
    names.write_text(json.dumps(SPECIES | {"99": name}))
    with pytest.raises(ValueError, match=rf"2_name\.json gives species 99 the name {name!r}; give it one in words"):
        load_dataset(plantnet)


def test_plantnet_with_an_odd_entry_of_metadata_says_which(plantnet):
    (plantnet / "plantnet300K_metadata.json").write_text('{"test990": "leaf"}')
    with pytest.raises(ValueError, match=r"metadata\.json says 'leaf' of image test990; give organ, author, license"):
        load_dataset(plantnet)


def test_the_real_names_of_plantnet_give_the_real_genera(shared_data, tmp_path):
    meta = shared_data("plantnet300k_meta")
    ids, names = meta["species_id"].tolist(), meta["species"].tolist()
    (tmp_path / "plantnet300K_species_id_2_name.json").write_text(json.dumps(dict(zip(ids, names, strict=True))))
    plantnet300k = KINDS[3](tmp_path)
    assert plantnet300k.named(ids) == (tuple(names), tuple(meta["genera"][meta["genus"]].tolist()))


# A CSV of labels


@pytest.fixture
def table(tmp_path):
    """Writes the lines of a labels.csv beside photos/0.png, …, photos/29.png of these shades."""
    write_images(tmp_path / "photos", 30)

    def write(*lines: str):
        (tmp_path / "labels.csv").write_text("\n".join(lines), encoding="utf-8")
        return tmp_path / "labels.csv"

    return write


def test_a_csv_gives_rows_with_many_labels_one_or_none(table):
    path = table(
        "file,labels,split,place",
        "photos/3.png,oak; moss,train,wood",
        "photos/1.png,,train,meadow",
        'photos/2.png,"fern",val,wood',
        "photos/4.png,fern;oak;,train,wood",
        "photos/5.png,moss,test,",
        "",
    )
    data = load_dataset(path, **SMALL)
    assert repr(data) == "Dataset('labels': 3 / 1 / 1 rows of 4 × 4 × 3, 3 classes, many labels)"
    assert data.class_names == ("fern", "moss", "oak")
    assert data.train.labels.tolist() == [[False, True, True], [False] * 3, [True, False, True]]
    assert shades(data.train) == [3, 1, 4]
    assert data.train.attributes["place"].tolist() == ["wood", "meadow", "wood"]
    assert load_dataset(data.spec["name"], **data.spec["knobs"]).key == data.key
    assert load_dataset(path.parent, **SMALL).key == data.key


def test_a_file_on_several_lines_has_the_labels_of_them_all(table):
    lines = [f"photos/{number}.png,{name}" for number in range(30) for name in ("oak", "moss", "fern")[number % 3 :]]
    data = load_dataset(table("file,label", *lines), **SMALL)
    assert (data.train.n, data.val.n, data.test.n) == (24, 3, 3)
    for split in (data.train, data.val, data.test):
        assert split.attributes is None
        for shade, row in zip(shades(split), split.labels, strict=True):
            assert row.tolist() == [True, shade % 3 <= 1, shade % 3 == 0]


def test_a_csv_with_exactly_one_label_per_file_is_split_within_classes(table):
    lines = [f"photos/{number}.png,{'oak' if number < 12 else 'fern'}" for number in range(30)]
    data = load_dataset(table("\ufefffile,label", *lines), **SMALL)
    assert not data.many_labels
    assert np.bincount(data.val.labels).tolist() == [2, 2]
    assert [shade < 12 for shade in shades(data.train)] == (data.train.labels == 1).tolist()


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["photo,label", "a,b"], r"columns photo, label; it needs file and label"),
        (["file,label,labels", "a,b,c"], "it needs file and label, each once"),
        ([""], "has the columns none"),
        (["file,label", ""], "no line below"),
        (["file,label", "photos/0.png,a", "photos/77.png,b"], r"line 3: there is no file 'photos/77.png'"),
        (["file,label", "photos/0.png"], "line 2: 1 values for 2 columns"),
        (["file,label", "photos/0.png,oak", "photos/1.png,"], r"names 1 classes \(oak\)"),
        (["file,label,split", "photos/0.png,oak,training"], "split is 'training'; give one of train, val, test"),
        (
            ["file,label,split", "photos/0.png,oak,train", "photos/0.png,moss,test"],
            r"line 3: split is 'test', and photos/0.png was in train before",
        ),
        (["file,label,split", "photos/0.png,oak;moss,train", "photos/1.png,oak,val"], "test: the split is empty"),
    ],
)
def test_a_csv_that_is_no_table_of_labels_says_why(table, lines, message):
    with pytest.raises(ValueError, match=message):
        load_dataset(table(*lines))


def test_a_csv_that_is_no_text_is_refused(tmp_path):
    (tmp_path / "labels.csv").write_bytes(b"file,label\n\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"labels\.csv is not a CSV file in UTF-8"):
        load_dataset(tmp_path)
