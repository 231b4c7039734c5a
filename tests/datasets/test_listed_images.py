"""COCO, NUS-WIDE and the lists of ImageNet-LT, as tests write them: small, in the layout in which they are published."""

from __future__ import annotations

import json
import shutil
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from workbench.datasets import load_dataset, load_spec
from workbench.datasets.files import kind_at
from workbench.datasets.files.coco import Coco
from workbench.datasets.files.image_lists import ImageLists
from workbench.datasets.files.json_lists import elements
from workbench.datasets.files.nus_wide import NusWide

SMALL = {"size": 4, "resize": 4}
CATEGORIES = [
    {"id": 90, "name": "toothbrush", "supercategory": "indoor"},
    {"id": 3, "name": "car", "supercategory": "vehicle"},
    {"id": 8, "name": "truck", "supercategory": "vehicle"},
]
OF_ROW = ([3], [3, 8], [], [90], [8, 8])  # the categories of the images with number % 5


def write_image(path: Path, shade: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (5, 4), (shade,) * 3).save(path)


def shades(split) -> list[int]:
    return split.inputs[:][:, 0, 0, 0].tolist()


# COCO


def instances(n: int, start: int = 0) -> dict:
    images = [{"id": 1000 + number, "file_name": f"{number:012}.png"} for number in range(start, start + n)]
    annotations = [
        {
            "id": 1,
            "image_id": 1000 + number,
            "category_id": category,
            "iscrowd": int(category == 90),
            "segmentation": [[0.5]],
        }
        for number in range(start, start + n)
        for category in OF_ROW[number % 5]
    ]
    return {"info": {"year": 2017}, "images": images, "annotations": annotations, "categories": CATEGORIES}


@pytest.fixture
def coco(tmp_path) -> Path:
    """Forty training images of the shades from 0 and ten of val from 100."""
    root = tmp_path / "coco"
    (root / "annotations").mkdir(parents=True)
    for split, start, n in (("train2017", 0, 40), ("val2017", 100, 10)):
        (root / "annotations" / f"instances_{split}.json").write_text(json.dumps(instances(n, start)))
        for number in range(start, start + n):
            write_image(root / split / f"{number:012}.png", number)
    return root


def test_coco_has_the_categories_of_the_annotations_as_labels_and_is_tested_on_its_val(coco):
    data = load_dataset(coco, **SMALL)
    assert repr(data) == "Dataset('coco': 36 / 4 / 10 rows of 4 × 4 × 3, 3 classes, many labels)"
    assert data.class_names == ("car", "truck", "toothbrush")  # in the order of their ids
    assert data.groups == ("vehicle", "vehicle", "indoor")
    assert shades(data.test) == list(range(100, 110))
    columns = {3: 0, 8: 1, 90: 2}
    for split in (data.train, data.val, data.test):
        for shade, marks in zip(shades(split), split.labels, strict=True):
            assert set(np.flatnonzero(marks)) == {columns[category] for category in OF_ROW[shade % 5]}
    assert sorted(shades(data.train) + shades(data.val)) == list(range(40))
    assert load_dataset(coco, seed=1, **SMALL).key != data.key == load_spec(data.spec).key


def test_images_without_an_annotation_have_no_label_and_can_be_left_out(coco):
    everything, labelled = load_dataset(coco, **SMALL), load_dataset(coco, drop_unlabelled=True, **SMALL)
    assert (~everything.test.labels.any(axis=1)).sum() == 2
    assert labelled.test.n == 8
    assert labelled.train.labels.any(axis=1).all()


def test_a_crowd_counts_as_a_label_and_is_counted(coco):
    test = load_dataset(coco, **SMALL).test
    assert test.attributes["crowds"].tolist() == [0, 0, 0, 1, 0] * 2
    assert test.labels[3].tolist() == [False, False, True]


def test_images_may_lie_in_a_folder_of_images_and_a_year_is_chosen_by_its_file(coco):
    key = load_dataset(coco, **SMALL).key
    (coco / "images").mkdir()
    for split in ("train2017", "val2017"):
        shutil.move(coco / split, coco / "images" / split)
    assert load_dataset(coco, **SMALL).key == key
    train = coco / "annotations" / "instances_train2017.json"
    shutil.copy(train, train.with_name("instances_train2014.json"))
    with pytest.raises(
        ValueError, match=r"instances_train2014.json and instances_train2017.json; give the path of one"
    ):
        load_dataset(coco)
    assert load_dataset(train, **SMALL).key == key


def test_a_file_of_annotations_alone_is_split_from_the_seed(coco):
    (coco / "annotations" / "instances_val2017.json").unlink()
    for path in (coco, coco / "annotations" / "instances_train2017.json"):
        data = load_dataset(path, **SMALL)
        assert (data.train.n, data.val.n, data.test.n) == (32, 4, 4)


def test_the_outlines_of_coco_are_never_all_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("workbench.datasets.files.json_lists.AT_ONCE", 2**12)
    outline = {"segmentation": [[float(number) for number in range(200)]]}
    path = tmp_path / "instances_train.json"
    path.write_text(json.dumps({"annotations": [{"id": number, **outline} for number in range(2000)]}, indent=1))
    tracemalloc.start()
    n = sum(1 for _ in elements(path))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert n == 2000
    assert most < path.stat().st_size / 10


@pytest.mark.parametrize("at_once", [1, 2, 7, 2**20])
def test_lists_are_read_the_same_however_much_is_read_at_a_time(tmp_path, monkeypatch, at_once):
    monkeypatch.setattr("workbench.datasets.files.json_lists.AT_ONCE", at_once)
    content = {
        "year": 2017,
        "images": [1, 17, "a]b", {"x": [1, {}]}],
        "none": [],
        "info": {"images": [3]},
        "last": [1.5e3],
    }
    for indent in (None, 2):
        (tmp_path / "a.json").write_text(json.dumps(content, indent=indent))
        expected = [("images", value) for value in content["images"]] + [("last", 1.5e3)]
        assert list(elements(tmp_path / "a.json")) == expected


def replaced(path: Path, **changes) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda file: file.write_text(file.read_text()[:900]),
            r"is not an object of JSON .*it is cut off or another file",
        ),
        (lambda file: file.write_text("[1, 2]"), r"there is '\[' where \{ should be"),
        (lambda file: file.write_text('{"images" [1]}'), r"there is '\[' where : should be"),
        (lambda file: file.write_text('{"images": [1 2]}'), "one of its images is 1, which is not as COCO writes it"),
        (lambda file: replaced(file, images=[]), "has no images; it is not a file of COCO's instances"),
        (lambda file: replaced(file, categories=[]), "has no categories; it is not a file"),
        (lambda file: replaced(file, images=[{"id": 1}]), r"one of its images is \{'id': 1\}.*\('file_name'\)"),
        (
            lambda file: replaced(file, annotations=[{"image_id": 1, "category_id": 3}]),
            "an annotation is of 1, which is no",
        ),
        (lambda file: replaced(file, categories=CATEGORIES[::-1][:2]), "an annotation is of 90, which is not an id"),
        (
            lambda file: shutil.rmtree(file.parents[1] / "train2017"),
            r"none of them is in .*train2017.*put the images there",
        ),
        (lambda file: file.unlink(), r"has no instances_train….json; give the path of the file"),
        (
            lambda file: replaced(file, categories=[{**each, "name": "x"} for each in CATEGORIES]),
            "have other categories",
        ),
    ],
)
def test_what_is_missing_or_broken_of_coco_is_named(coco, damage, message):
    damage(coco / "annotations" / "instances_train2017.json")
    with pytest.raises(ValueError, match=message):
        load_dataset(coco, **SMALL)


def test_images_that_are_gone_are_counted_and_can_be_left_out(coco):
    for number in (3, 4):
        (coco / "train2017" / f"{number:012}.png").unlink()
    with pytest.raises(
        ValueError, match=r"2 of the 40 images that .* lists are not in .*000003.png; .*drop_missing=True"
    ):
        load_dataset(coco)
    data = load_dataset(coco, drop_missing=True, **SMALL)
    assert data.train.n + data.val.n == 38


# NUS-WIDE


CONCEPTS = ("airport", "clouds", "sky")


@pytest.fixture
def nus_wide(tmp_path) -> Path:
    """Twenty training images of the shades from 0 and ten of test from 100, with concepts that divide their number."""
    root = tmp_path / "NUS-WIDE"
    for folder in ("ImageList", "Groundtruth/TrainTestLabels", "Groundtruth/AllLabels"):
        (root / folder).mkdir(parents=True)
    numbers = {"Train": range(20), "Test": range(100, 110)}
    everything = [*numbers["Train"], *numbers["Test"]]
    for split, rows in numbers.items():
        write_list(root / "ImageList" / f"{split}Imagelist.txt", rows)
        for place, concept in enumerate(CONCEPTS):
            write_marks(root / "Groundtruth" / "TrainTestLabels" / f"Labels_{concept}_{split}.txt", rows, place)
    write_list(root / "ImageList" / "Imagelist.txt", everything)
    for place, concept in enumerate(CONCEPTS):
        write_marks(root / "Groundtruth" / "AllLabels" / f"Labels_{concept}.txt", everything, place)
    for number in everything:
        write_image(root / "Flickr" / "actor" / f"{number:04}_1.png", number)
    return root


def write_list(path: Path, rows) -> None:
    path.write_text("".join(f"actor\\{number:04}_1.png\r\n" for number in rows))


def write_marks(path: Path, rows, place: int) -> None:
    path.write_text("".join(f"{int(number % (place + 2) == 0)} \n" for number in rows))


def test_nus_wide_reads_the_marks_of_every_concept_for_the_images_of_its_lists(nus_wide):
    data = load_dataset(nus_wide, **SMALL)
    assert repr(data) == "Dataset('NUS-WIDE': 18 / 2 / 10 rows of 4 × 4 × 3, 3 classes, many labels)"
    assert data.class_names == CONCEPTS
    for split in (data.train, data.val, data.test):
        for shade, marks in zip(shades(split), split.labels, strict=True):
            assert marks.tolist() == [shade % 2 == 0, shade % 3 == 0, shade % 4 == 0]
    assert shades(data.test) == list(range(100, 110))
    assert load_spec(data.spec).key == data.key
    assert load_dataset(nus_wide, seed=1, **SMALL).key != data.key


def test_all_labels_of_nus_wide_are_split_from_the_seed_where_there_is_no_split(nus_wide):
    shutil.rmtree(nus_wide / "Groundtruth" / "TrainTestLabels")
    (nus_wide / "Groundtruth").rename(nus_wide / "GroundTruth")  # copies differ in capital letters
    data = load_dataset(nus_wide, **SMALL)
    assert (data.train.n, data.val.n, data.test.n) == (24, 3, 3)
    for shade, marks in zip(shades(data.train), data.train.labels, strict=True):
        assert marks.tolist() == [shade % 2 == 0, shade % 3 == 0, shade % 4 == 0]


def test_images_of_nus_wide_that_are_gone_or_have_no_concept_can_be_left_out(nus_wide):
    (nus_wide / "Flickr" / "actor" / "0001_1.png").unlink()
    with pytest.raises(ValueError, match=r"1 of the 20 images .*actor/0001_1.png; fetch them, or .*drop_missing=True"):
        load_dataset(nus_wide)
    data = load_dataset(nus_wide, drop_missing=True, drop_unlabelled=True, **SMALL)
    assert sorted(shades(data.train) + shades(data.val)) == [n for n in range(20) if n % 2 == 0 or n % 3 == 0]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda root: (root / "ImageList" / "TestImagelist.txt").unlink(), r"TestImagelist.txt is missing"),
        (
            lambda root: (root / "Groundtruth/TrainTestLabels/Labels_sky_Test.txt").unlink(),
            r"Labels_sky_Test.txt is missing",
        ),
        (
            lambda root: (root / "Groundtruth/TrainTestLabels/Labels_sky_Train.txt").write_text("1\n0\n"),
            r"Labels_sky_Train.txt does not hold 20 zeros and ones, one for each image of .*TrainImagelist.txt",
        ),
        (
            lambda root: (root / "Groundtruth/TrainTestLabels/Labels_sky_Train.txt").write_text(20 * "2\n"),
            "does not hold 20 zeros and ones",
        ),
        (
            lambda root: [shutil.rmtree(root / "Groundtruth" / name) for name in ("TrainTestLabels", "AllLabels")],
            "it must hold TrainTestLabels/ or AllLabels/",
        ),
        (
            lambda root: [file.unlink() for file in (root / "Groundtruth" / "TrainTestLabels").iterdir()],
            r"must hold Labels_<concept>_Train.txt for each concept",
        ),
        (lambda root: shutil.rmtree(root / "Flickr"), "none of them is in .*; put the images there"),
    ],
)
def test_what_is_missing_or_broken_of_nus_wide_is_named(nus_wide, damage, message):
    damage(nus_wide)
    with pytest.raises(ValueError, match=message):
        load_dataset(nus_wide)


# Lists of ImageNet-LT


@pytest.fixture
def imagenet_lt(tmp_path) -> Path:
    """Two classes with 8 and 3 training images; val is cut from ImageNet's train, test is its val, as published."""
    root = tmp_path / "ImageNet_LT"
    counts = {"train": (8, 3), "val": (2, 2), "test": (3, 3)}
    for start, (split, n_of_class) in zip((0, 50, 100), counts.items(), strict=True):
        lines = []
        for label, n in enumerate(n_of_class):
            for number in range(n):
                file = f"{'val' if split == 'test' else 'train'}/n0{label}/{split} {number}.JPEG.png"
                write_image(root / file, start + 20 * label + number)
                lines.append(f"{file} {label}\n")
        (root / f"ImageNet_LT_{split}.txt").write_text("".join(lines))
    return root


def test_lists_give_the_splits_and_classes_of_imagenet_lt(imagenet_lt):
    data = load_dataset(imagenet_lt, **SMALL)
    assert repr(data) == "Dataset('ImageNet_LT': 11 / 4 / 6 rows of 4 × 4 × 3, 2 classes)"
    assert data.class_names == ("n00", "n01")
    assert data.class_counts.tolist() == [8, 3]
    assert shades(data.train) == [*range(8), *range(20, 23)]
    assert shades(data.test) == [100, 101, 102, 120, 121, 122]
    assert data.test.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert load_dataset(imagenet_lt / "ImageNet_LT_train.txt", **SMALL).key == data.key == load_spec(data.spec).key


def test_the_images_of_a_list_may_lie_in_a_folder_beside_it(imagenet_lt):
    key = load_dataset(imagenet_lt, **SMALL).key
    (imagenet_lt / "ILSVRC").mkdir()
    for split in ("train", "val"):
        shutil.move(imagenet_lt / split, imagenet_lt / "ILSVRC" / split)
    assert load_dataset(imagenet_lt, **SMALL).key == key


def test_the_only_list_beside_that_of_training_is_the_test_and_without_one_all_is_split(imagenet_lt):
    (imagenet_lt / "ImageNet_LT_test.txt").unlink()
    data = load_dataset(imagenet_lt, **SMALL)
    assert (data.train.n, data.val.n, data.test.n) == (9, 2, 4)
    (imagenet_lt / "ImageNet_LT_val.txt").unlink()
    with pytest.raises(ValueError, match=r"fewer than 4 rows for n01 \(3\)"):
        load_dataset(imagenet_lt)


def test_classes_that_share_a_folder_are_called_by_their_numbers(imagenet_lt):
    path = imagenet_lt / "ImageNet_LT_train.txt"
    first, *rest = path.read_text().splitlines()
    path.write_text("\n".join([first.removesuffix("0") + "1", *rest]))
    assert load_dataset(imagenet_lt, **SMALL).class_names == ("class 0", "class 1")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda root: add_line(root, "train", "train/n00/lost.JPEG 0"), r"1 of the 12 images .*lost.JPEG; fetch them"),
        (
            lambda root: add_line(root, "train", "train/n00"),
            r"line 12: 'train/n00'; give a path and the number of its class",
        ),
        (lambda root: add_line(root, "test", "val/n00/test 0.JPEG.png 7"), "has class 7, and .* has 0 to 1"),
        (lambda root: (root / "ImageNet_LT_val.txt").write_text("\n"), "lists no image"),
        (
            lambda root: shutil.copy(root / "ImageNet_LT_train.txt", root / "Places_LT_train.txt"),
            "has ImageNet_LT_train.txt and Places_LT_train.txt; give the path of one of them",
        ),
    ],
)
def test_what_is_missing_or_broken_of_a_list_is_named(imagenet_lt, damage, message):
    damage(imagenet_lt)
    with pytest.raises(ValueError, match=message):
        load_dataset(imagenet_lt)


def add_line(root: Path, split: str, line: str) -> None:
    with (root / f"ImageNet_LT_{split}.txt").open("a") as file:
        file.write(f"{line}\n")


def test_each_is_recognised_by_what_lies_at_its_path(coco, nus_wide, imagenet_lt):
    assert [kind_at(path) for path in (coco, nus_wide, imagenet_lt)] == [Coco, NusWide, ImageLists]
    (imagenet_lt / "ImageNet_LT_train.txt").write_text("once upon a time\n")  # a folder of images with some text
    assert not ImageLists.lies_at(imagenet_lt)
