"""Images that stay in their files: what is cut out, when it is read, and that training sees it."""

from __future__ import annotations

import json
import threading
import time
import warnings

import numpy as np
import pytest
import torch
from PIL import Image

from workbench.cli.main import main
from workbench.datasets import Dataset, ImageFiles, LongTail, load_dataset
from workbench.store import Store
from workbench.training import Run, train
from workbench.training.batches import Batches


def ramp(width: int, height: int) -> np.ndarray:
    """An image whose red counts columns and whose green counts rows, in steps of 2."""
    image = np.zeros((height, width, 3), dtype=np.uint8)
    image[..., 0] = 2 * np.arange(width)
    image[..., 1] = 2 * np.arange(height)[:, None]
    return image


@pytest.fixture
def folder(tmp_path):
    for number in range(6):
        Image.fromarray(np.full((8, 8, 3), 10 * number, np.uint8)).save(tmp_path / f"{number}.png")
    return tmp_path


def files(folder, *names: str, size: int = 8, resize: int = 8) -> ImageFiles:
    return ImageFiles(folder, np.array(names, dtype=object), size, resize)


def test_the_middle_is_cut_out_and_a_place_moves_the_square(tmp_path):
    Image.fromarray(ramp(100, 60)).save(tmp_path / "ramp.png")
    images = files(tmp_path, "ramp.png", size=20, resize=60)  # the shorter side is 60 already: nothing is resized
    assert np.array_equal(images[0], ramp(100, 60)[20:40, 40:60])
    for place, corner in (((0, 0), (0, 0)), ((0, 1), (0, 80)), ((1, 0.5), (40, 40))):
        [[square]] = images.batches([[0]], np.array([place]))
        assert np.array_equal(square, ramp(100, 60)[corner[0] :, corner[1] :][:20, :20])


def test_the_shorter_side_is_resized_and_the_image_keeps_its_shape(tmp_path):
    Image.fromarray(ramp(100, 60)).save(tmp_path / "wide.png")
    Image.fromarray(ramp(60, 100)).save(tmp_path / "high.png")
    wide, high = files(tmp_path, "wide.png", "high.png", size=30, resize=30)[:]
    # A pixel of the small image is 2 × 2 of the large one, so neighbours are 4 apart in both directions.
    for square, (top, left) in ((wide, (0, 20)), (high, (20, 0))):
        columns, rows = square[15, 1:-1, 0].astype(int), square[1:-1, 15, 1].astype(int)
        assert np.all(np.diff(columns) == 4)
        assert np.all(np.diff(rows) == 4)
        assert abs(columns[0] - 2 * (left + 2.5)) <= 1
        assert abs(rows[0] - 2 * (top + 2.5)) <= 1


@pytest.mark.parametrize("sides", [(7, 300), (301, 299), (1, 1), (224, 224)])
@pytest.mark.parametrize("place", [0.0, 1.0])
def test_every_place_of_every_shape_is_inside_the_image(tmp_path, sides, place):
    Image.new("RGB", sides, "red").save(tmp_path / "red.png")
    for size, resize in ((11, 13), (13, 13), (1, 256)):
        [images] = files(tmp_path, "red.png", size=size, resize=resize).batches([[0]], np.full((1, 2), place))
        assert np.array_equal(images, np.broadcast_to([255, 0, 0], (1, size, size, 3)))


def test_rows_are_indexed_like_those_of_an_array(folder):
    images = files(folder, *(f"{number}.png" for number in range(6)))
    values = np.arange(6) * 10
    assert (images.shape, images.ndim, images.dtype, len(images)) == ((6, 8, 8, 3), 4, np.uint8, 6)
    for index in (slice(1, 4), np.array([5, 0, 0]), values > 25, [2], np.array([], dtype=int)):
        assert images[index].dtype == np.uint8
        assert np.array_equal(images[index][:, 0, 0, 0], values[index])
        assert np.array_equal(images.rows(index)[:], images[index])
    assert images[np.int64(3)].shape == (8, 8, 3)
    with pytest.raises(IndexError):
        images[6]


def test_grey_transparent_and_turned_images_become_upright_colours(tmp_path):
    Image.new("L", (8, 8), 77).save(tmp_path / "grey.png")
    Image.new("RGBA", (8, 8), (1, 2, 3, 255)).save(tmp_path / "clear.png")
    turned = Image.fromarray(ramp(8, 8))
    exif = turned.getexif()
    exif[0x0112] = 6  # the camera was held on its side
    turned.save(tmp_path / "turned.png", exif=exif)
    palette = Image.new("P", (8, 8), 1)
    palette.putpalette([0, 0, 0, 4, 5, 6])
    palette.save(tmp_path / "palette.png", transparency=b"\x00\x80")
    images = files(tmp_path, "grey.png", "clear.png", "turned.png", "palette.png")
    assert np.array_equal(images[0], np.full((8, 8, 3), 77))
    assert np.array_equal(images[1][0, 0], [1, 2, 3])
    assert np.array_equal(images[2], np.rot90(ramp(8, 8), -1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # Pillow warns of transparent palettes
        assert np.array_equal(images[3][0, 0], [4, 5, 6])


def test_a_large_jpeg_that_is_decoded_small_looks_the_same(tmp_path):
    smooth = Image.fromarray(np.random.default_rng(0).integers(0, 256, (6, 9, 3), dtype=np.uint8))
    smooth.resize((900, 600), Image.Resampling.BICUBIC).save(tmp_path / "large.jpg", quality=95)
    with Image.open(tmp_path / "large.jpg") as image:
        small = np.asarray(image.resize((48, 32), Image.Resampling.BILINEAR)).astype(int)
    square = files(tmp_path, "large.jpg", size=32, resize=32)[0].astype(int)
    assert np.abs(square - small[:, 8:40]).mean() < 3  # of 255; a square at the wrong place differs by tens


def test_broken_and_foreign_files_are_named(tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "whole.jpg")
    whole = (tmp_path / "whole.jpg").read_bytes()
    (tmp_path / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.png").write_text("no image")
    (tmp_path / "empty.jpg").write_bytes(b"")
    Image.fromarray(np.full((8, 8), 3000, np.uint16)).save(tmp_path / "deep.png")
    for name in ("cut.jpg", "text.png", "empty.jpg", "deep.png", "missing.png"):
        with pytest.raises(ValueError, match=rf"{name} cannot be read as an image .*replace it"):
            files(tmp_path, "whole.jpg", name)[:]
    with pytest.raises(ValueError, match=r"deep\.png .*not 8-bit"):
        files(tmp_path, "deep.png")[0]


def test_a_square_larger_than_the_image_is_refused():
    with pytest.raises(ValueError, match=r"size = 256 with resize = 224.*size ≤ resize"):
        ImageFiles(None, np.array([], dtype=object), size=256, resize=224)


def test_batches_are_decoded_before_they_are_asked_for(folder, monkeypatch):
    decoded = []
    square = ImageFiles._square

    def noted(self, file, place):
        decoded.append((file, threading.current_thread().name))
        return square(self, file, place)

    monkeypatch.setattr(ImageFiles, "_square", noted)
    batches = files(folder, *(f"{number}.png" for number in range(6))).batches([[0, 1], [2, 3], [4], [5]])
    assert next(batches)[:, 0, 0, 0].tolist() == [0, 10]
    until = time.monotonic() + 600
    while len(decoded) < 5 and time.monotonic() < until:
        time.sleep(0.01)
    assert sorted(file for file, _ in decoded) == [f"{number}.png" for number in range(5)]  # two batches ahead, no more
    assert all(name.startswith("decoding") for _, name in decoded)
    batches.close()
    assert not any(thread.name.startswith("decoding") for thread in threading.enumerate())


def test_a_batch_holds_the_images_the_labels_and_the_row_numbers_of_its_rows(folder):
    images = files(folder, *(f"{number}.png" for number in range(6)))
    labels, order = torch.arange(6) + 100, torch.tensor([3, 1, 5, 0, 2, 4])
    batches = list(Batches(images, labels, 4, order, torch.rand(6, 2)))
    assert torch.equal(torch.cat([rows for _, _, rows, _ in batches]), order)
    assert torch.equal(torch.cat([labels for _, labels, *_ in batches]), order + 100)
    assert torch.equal(torch.cat([inputs for inputs, *_ in batches])[:, 0, 0, 0], 10 * order)


def test_the_digest_follows_names_content_and_the_cut_and_nothing_else(folder):
    names = ("0.png", "1.png")
    before = files(folder, *names).digest()
    (folder / "0.png").touch()
    assert files(folder, *names).digest() == before
    assert files(folder, *reversed(names)).digest() != before
    assert files(folder, "0.png", "2.png").digest() != before
    assert files(folder, *names, size=4).digest() != before
    assert files(folder, *names, resize=9).digest() != before
    (folder / "0.png").write_bytes((folder / "0.png").read_bytes() + b"\0")
    assert files(folder, *names).digest() != before


@pytest.fixture
def plants(tmp_path):
    """A folder of two classes that differ in colour, in images of 24 × 16 pixels."""
    rng = np.random.default_rng(0)
    for name, colour in (("fern", (20, 160, 30)), ("rose", (180, 20, 40))):
        (tmp_path / "plants" / name).mkdir(parents=True)
        for number in range(20):
            image = (colour + rng.integers(-20, 20, (16, 24, 3))).clip(0, 255).astype(np.uint8)
            Image.fromarray(image).save(tmp_path / "plants" / name / f"{number}.jpg")
    return tmp_path / "plants"


def test_a_run_trains_on_a_folder_of_images_and_is_repeated_from_its_file(plants, tmp_path):
    data = load_dataset(plants, size=12, resize=16)
    settings = {"model": "cnn", "epochs": 4, "batch_size": 8, "learning_rate": 0.01, "device": "cpu"}
    one, two = (train(Run(data, **settings), store=Store(tmp_path / home), progress=False) for home in ("one", "two"))
    assert one.history["val_accuracy"].iloc[-1] == 1
    assert np.array_equal(one.tables["test"].scores, two.tables["test"].scores)
    assert Run.from_json(one.stored.record.to_json()).key == one.run.key


def test_each_epoch_cuts_elsewhere_and_validation_in_the_middle(plants, tmp_path, monkeypatch):
    places = []
    batches = ImageFiles.batches

    def noted(self, rows, where=None):
        places.append(None if where is None else where.copy())
        return batches(self, rows, where)

    monkeypatch.setattr(ImageFiles, "batches", noted)
    run = Run(load_dataset(plants, size=12, resize=16), model="cnn", epochs=2, device="cpu")
    train(run, store=Store(tmp_path / "home"), progress=False)
    drawn = [where for where in places if where is not None]
    assert len(drawn) == 2
    assert not np.array_equal(*drawn)
    assert all(where.shape == (run.data.train.n, 2) and where.min() >= 0 and where.max() <= 1 for where in drawn)
    assert len(places) - len(drawn) == 4  # two validations, then the tables of val and test


def test_arrays_and_files_of_the_same_images_are_split_alike(plants):
    lazy = load_dataset(plants, size=12, resize=16)
    names = sorted(path.relative_to(plants).as_posix() for path in plants.rglob("*.jpg"))
    images = ImageFiles(plants, np.array(names, dtype=object), 12, 16)
    eager = Dataset.from_arrays(images[:], np.repeat([0, 1], 20), ["fern", "rose"])
    for split in ("train", "val", "test"):
        assert isinstance(getattr(lazy, split).inputs, ImageFiles)
        assert np.array_equal(getattr(lazy, split).inputs[:], getattr(eager, split).inputs)
        assert np.array_equal(getattr(lazy, split).labels, getattr(eager, split).labels)


def test_transforms_leave_images_in_their_files(plants):
    clean = load_dataset(plants, size=12, resize=16)
    tailed = clean.transformed(LongTail(4))
    assert isinstance(tailed.train.inputs, ImageFiles)
    assert sorted(tailed.class_counts.tolist()) == [4, 16]
    classes = [file.split("/")[0] for file in tailed.train.inputs.files]
    assert [clean.class_names[label] for label in tailed.train.labels] == classes


def test_the_command_line_trains_on_a_path_and_has_the_knobs_of_what_lies_there(plants, capsys):
    settings = ["--model", "linear", "--epochs", "1", "--device", "cpu", "--json"]
    assert main(["train", "--dataset", str(plants), "--data.size", "6", "--data.resize", "8", *settings]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "plants · linear · CrossEntropy()"
    assert main(["train", "--dataset", str(plants / "fern"), *settings]) == 2
    assert "which is not a dataset" in capsys.readouterr().err
