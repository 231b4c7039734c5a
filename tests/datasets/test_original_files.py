"""CIFAR and MNIST in the formats they were published in, from small files that the tests write."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from workbench.datasets import LabelNoise, load_dataset
from workbench.datasets.files.idx import FIRST_CLOTHES

# Folders of the real Fashion-MNIST, with the rows they have: the first images, and all where Debian's package is.
REAL_CLOTHES = {
    Path(__file__).parents[1] / "data" / "fashion-mnist": (200, 100),
    Path("/usr/share/datasets/fashion-mnist"): (60_000, 10_000),
}


def pictures(n: int, seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (n, *shape), dtype=np.uint8)


def records(labels: np.ndarray, images: np.ndarray) -> bytes:
    """Rows of label bytes followed by the planes of red, green and blue."""
    planes = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
    return np.concatenate([labels.reshape(len(images), -1).astype(np.uint8), planes], axis=1).tobytes()


def sorted_bytes(*arrays: np.ndarray) -> list[bytes]:
    return sorted(image.tobytes() for array in arrays for image in array)


# CIFAR


@pytest.fixture
def cifar10(tmp_path):
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    images, labels = pictures(50, 0, 32, 32, 3), np.arange(50) % 10
    for number in range(5):
        part = slice(10 * number, 10 * number + 10)
        (folder / f"data_batch_{number + 1}.bin").write_bytes(records(labels[part], images[part]))
    (folder / "test_batch.bin").write_bytes(records(np.arange(4), pictures(4, 1, 32, 32, 3)))
    (folder / "batches.meta.txt").write_text("\n".join(f"thing{j}" for j in range(10)) + "\n\n")
    return folder


@pytest.fixture
def cifar100(tmp_path):
    """Six classes in three superclasses: class j is in superclass j % 3."""
    folder = tmp_path / "cifar-100-binary"
    folder.mkdir()
    for name, n, seed in (("train", 120, 0), ("test", 12, 1)):
        fine = np.arange(n) % 6
        (folder / f"{name}.bin").write_bytes(records(np.stack([fine % 3, fine], 1), pictures(n, seed, 32, 32, 3)))
    (folder / "fine_label_names.txt").write_text("apple\nbear\nchair\npear\nwolf\ntable\n")
    (folder / "coarse_label_names.txt").write_text("fruit\nanimals\nfurniture\n")
    return folder


def test_cifar_10_holds_out_a_tenth_of_each_class_and_keeps_its_test(cifar10):
    data = load_dataset(cifar10)
    assert repr(data) == "Dataset('cifar-10-batches-bin': 40 / 10 / 4 rows of 32 × 32 × 3, 10 classes)"
    assert data.class_names[3] == "thing3"
    assert np.bincount(data.val.labels).tolist() == [1] * 10
    assert np.array_equal(data.test.inputs, pictures(4, 1, 32, 32, 3))
    images = pictures(50, 0, 32, 32, 3)
    assert sorted_bytes(data.train.inputs, data.val.inputs) == sorted_bytes(images)
    label_of = {image.tobytes(): label % 10 for label, image in enumerate(images)}
    assert [label_of[image.tobytes()] for image in data.train.inputs] == data.train.labels.tolist()
    assert load_dataset(data.spec["name"], **data.spec["knobs"]).key == data.key
    assert load_dataset(cifar10, seed=1).key != data.key


def test_cifar_100_has_its_superclasses_as_groups(cifar100):
    data = load_dataset(cifar100)
    assert (data.train.n, data.val.n, data.test.n) == (108, 12, 12)
    assert data.class_names == ("apple", "bear", "chair", "pear", "wolf", "table")
    assert data.groups == ("fruit", "animals", "furniture") * 2
    assert np.array_equal(data.test.labels, np.arange(12) % 6)
    assert np.array_equal(data.test.inputs, pictures(12, 1, 32, 32, 3))


def test_label_noise_on_cifar_100_keeps_the_superclass(cifar100):
    clean = load_dataset(cifar100)
    noisy = clean.transformed(LabelNoise(1.0))
    assert np.array_equal(noisy.train.labels, (clean.train.labels + 3) % 6)


@pytest.mark.parametrize(
    ("names", "number"), [(("data_batch_1", "batches.meta"), "10"), (("train", "test", "meta"), "100")]
)
def test_the_pickled_version_of_cifar_is_refused_and_the_binary_one_named(tmp_path, names, number):
    for name in names:
        (tmp_path / name).write_bytes(b"\x80\x02}")
    with pytest.raises(ValueError, match=rf"CIFAR-{number}, which is pickle.*cifar-{number}-binary\.tar\.gz"):
        load_dataset(tmp_path)


def test_cifar_files_that_are_cut_off_or_do_not_fit_are_named(cifar10, cifar100):
    whole = (cifar10 / "data_batch_2.bin").read_bytes()
    (cifar10 / "data_batch_2.bin").write_bytes(whole[:-1])
    with pytest.raises(ValueError, match=r"data_batch_2\.bin has 30729 bytes, no multiple of the 3073"):
        load_dataset(cifar10)
    (cifar10 / "data_batch_2.bin").write_bytes(b"")
    with pytest.raises(ValueError, match=r"data_batch_2\.bin has 0 bytes"):
        load_dataset(cifar10)
    (cifar10 / "data_batch_2.bin").write_bytes(bytes([77]) + whole[1:])
    with pytest.raises(ValueError, match="labels go from 0 to 77"):
        load_dataset(cifar10)
    (cifar10 / "batches.meta.txt").unlink()
    with pytest.raises(ValueError, match=r"batches\.meta\.txt is missing"):
        load_dataset(cifar10)
    for batch in cifar10.glob("data_batch_*"):
        batch.unlink()
    (cifar10 / "batches.meta.txt").write_text("a b")
    with pytest.raises(ValueError, match=r"no data_batch_1\.bin"):
        load_dataset(cifar10)
    (cifar100 / "fine_label_names.txt").write_text("apple\nbear\n")
    with pytest.raises(ValueError, match="6 pairs of superclass and class for 2 classes in 3 superclasses"):
        load_dataset(cifar100)


# MNIST


def idx(array: np.ndarray) -> bytes:
    head = bytes([0, 0, 8, array.ndim]) + b"".join(length.to_bytes(4, "big") for length in array.shape)
    return head + array.astype(np.uint8).tobytes()


def write_mnist(folder: Path, first: tuple[int, ...], gz: str = ".gz", dash: str = "-") -> Path:
    pack = gzip.compress if gz else bytes
    folder.mkdir()
    labels = np.array([*first, *(np.arange(90) % 10)])
    for prefix, labels_, seed in (("train", labels, 0), ("t10k", np.arange(20) % 10, 1)):
        images = pictures(len(labels_), seed, 28, 28)
        (folder / f"{prefix}-images{dash}idx3-ubyte{gz}").write_bytes(pack(idx(images)))
        (folder / f"{prefix}-labels{dash}idx1-ubyte{gz}").write_bytes(pack(idx(labels_)))
    return folder


@pytest.mark.parametrize(("gz", "dash"), [(".gz", "-"), ("", "-"), ("", ".")])
def test_mnist_is_read_from_its_four_files(tmp_path, gz, dash):
    data = load_dataset(write_mnist(tmp_path / "mnist", tuple(range(10)), gz, dash))
    assert repr(data) == "Dataset('mnist': 90 / 10 / 20 rows of 28 × 28 × 1, 10 classes)"
    assert data.class_names == tuple("0123456789")
    assert np.array_equal(data.test.inputs[..., 0], pictures(20, 1, 28, 28))
    assert np.array_equal(data.test.labels, np.arange(20) % 10)
    assert sorted_bytes(data.train.inputs, data.val.inputs) == sorted_bytes(pictures(100, 0, 28, 28))


def test_fashion_mnist_is_known_by_its_first_labels(tmp_path):
    data = load_dataset(write_mnist(tmp_path / "data", FIRST_CLOTHES))
    assert data.class_names[9] == "Ankle boot"


def test_idx_files_that_are_cut_off_or_foreign_are_named(tmp_path):
    folder = write_mnist(tmp_path / "mnist", tuple(range(10)))
    images = folder / "train-images-idx3-ubyte.gz"
    whole = images.read_bytes()
    for content, message in (
        (whole[:-20], "cannot be unpacked"),
        (b"no gzip", "cannot be unpacked"),
        (gzip.compress(b"\0\0\x0d\x03" + bytes(20)), "does not begin like an IDX file"),
        (gzip.compress(gzip.decompress(whole)[:-1]), r"has 78415 bytes, and its head says 78416"),
        (gzip.compress(b"\0\0\x08\x03\0"), "does not begin like an IDX file"),
    ):
        images.write_bytes(content)
        with pytest.raises(ValueError, match=rf"train-images-idx3-ubyte\.gz .*{message}"):
            load_dataset(folder)
    images.write_bytes(gzip.compress(idx(pictures(7, 0, 28, 28))))
    with pytest.raises(ValueError, match="7 train images and 100 labels"):
        load_dataset(folder)
    (folder / "t10k-labels-idx1-ubyte.gz").unlink()
    images.write_bytes(whole)
    with pytest.raises(ValueError, match="t10k-labels-idx1-ubyte is missing"):
        load_dataset(folder)


@pytest.mark.parametrize(
    "folder", [folder for folder in REAL_CLOTHES if folder.is_dir()], ids=lambda folder: folder.parent.name
)
def test_the_real_fashion_mnist(folder):
    data = load_dataset(folder)
    assert (data.train.n + data.val.n, data.test.n) == REAL_CLOTHES[folder]
    assert data.input_shape == (28, 28, 1)
    assert data.class_names[9] == "Ankle boot"
    if data.test.n == 10_000:
        assert data.class_counts.tolist() == [5_400] * 10
    # Trousers are two dark-edged columns: their middle rows are bright over a narrower width than those of a pullover.
    widths = [(data.train.inputs[data.train.labels == j, 20:] > 0).mean() for j in (1, 2)]
    assert widths[0] < widths[1]
