"""Augmentations of training images: the same draws on every rank, in every batch, and after a resume."""

from __future__ import annotations

import dataclasses
import json
import sys
import types

import numpy as np
import pytest
import torch
from PIL import Image
from small_runs import CLOUDS, assert_same_weights, small, stripes, weights

from workbench.cli.main import main
from workbench.datasets import (
    AUGMENTATIONS,
    HorizontalFlip,
    LongTail,
    Normalise,
    PaddedCrop,
    Torchvision,
    load_dataset,
)
from workbench.datasets.transforms import from_spec
from workbench.networks.pretrained import Prepared
from workbench.store import Store
from workbench.training import Run, TrainedRun, train
from workbench.training import learner as learning
from workbench.training.stacked.train_many import stackable

pytestmark = pytest.mark.usefixtures("one_thread")

CHANGES = (HorizontalFlip(), PaddedCrop(4), Normalise((0.3, 0.4, 0.5), (0.2, 0.3, 0.4)))


def images_run(**fields) -> Run:
    return small(stripes(), **{"transforms": CHANGES, "epochs": 2, "batch_size": 32, **fields})


def seen(run: Run, store: Store, epoch: int = 0) -> np.ndarray:
    """The training images of an epoch as the network gets them, by their rows."""
    learner = learning.Learner(run, store)
    learner.epoch = epoch
    images = np.zeros_like(run.data.train.inputs[:])
    for inputs, _, rows, _ in learner.train_batches():
        images[rows.numpy()] = inputs.numpy()
    return images


# What they do


def test_a_flip_turns_some_images_around_and_leaves_the_others():
    images = np.arange(2 * 3 * 4).reshape(2, 3, 4, 1).astype(np.uint8)
    turned = HorizontalFlip(0.5).augmented(images, np.array([0.4, 0.6]))
    assert np.array_equal(turned[0], images[0, :, ::-1])
    assert np.array_equal(turned[1], images[1])
    drawn = HorizontalFlip().draws(10_000, np.random.default_rng(0)) < 0.5
    assert abs(drawn.mean() - 0.5) < 0.02


def test_a_padded_crop_moves_an_image_by_at_most_its_padding_in_both_directions():
    rng = np.random.default_rng(0)
    images, crop = rng.integers(1, 256, (400, 8, 8, 3), dtype=np.uint8), PaddedCrop(2)
    draws = crop.draws(400, rng)
    assert {tuple(draw) for draw in draws.tolist()} == {(top, left) for top in range(5) for left in range(5)}
    moved = crop.augmented(images, draws)
    for before, after, (top, left) in zip(images, moved, draws, strict=True):
        padded = np.pad(before, ((2, 2), (2, 2), (0, 0)))
        assert np.array_equal(after, padded[top : top + 8, left : left + 8])


def test_normalised_images_have_the_mean_and_deviation_asked_for_in_training_and_wherever_the_model_is_used(store):
    trained = train(images_run(transforms=CHANGES[2:], model="cnn", epochs=1), store=store, progress=False)
    seen_by_the_backbone = []
    model = trained.model
    model.backbone.register_forward_pre_hook(lambda _, inputs: seen_by_the_backbone.append(inputs[0]))
    raw = stripes().test.inputs
    with torch.no_grad():
        scores = model(torch.from_numpy(raw))
    expected = (raw / 255 - np.array([0.3, 0.4, 0.5])) / np.array([0.2, 0.3, 0.4])
    np.testing.assert_allclose(seen_by_the_backbone[0].permute(0, 2, 3, 1), expected, atol=1e-5)
    np.testing.assert_allclose(trained.tables["test"].scores, scores.numpy(), atol=1e-5)


def test_heads_are_trained_on_the_features_of_an_augmented_and_normalised_run(store):
    backbone = train(images_run(model="cnn", epochs=1), store=store, progress=False)
    head = train(small(stripes(), model="cnn", features=backbone, epochs=1), store=store, progress=False)
    assert head.run.data.key == backbone.run.data.key
    np.testing.assert_allclose(head.model.mean, [0.3, 0.4, 0.5])
    with torch.no_grad():
        features = head.model.features(torch.from_numpy(stripes().test.inputs))
    np.testing.assert_allclose(features, backbone.tables["test"].features, atol=1e-6)


def test_only_training_images_are_augmented_and_every_epoch_anew(store):
    run = images_run(transforms=CHANGES[:2])
    raw, first, second = run.data.train.inputs, seen(run, store), seen(run, store, epoch=1)
    changed = (first != raw).any(axis=(1, 2, 3))
    assert 0.9 < changed.mean()
    assert not np.array_equal(first, second)
    learner = learning.Learner(run, store)
    val = torch.cat([inputs for inputs, *_ in learner.val_batches()]).numpy()
    assert np.array_equal(val, run.data.val.inputs)


def test_two_augmentations_of_one_kind_draw_independently(store):
    run = images_run(transforms=(HorizontalFlip(), HorizontalFlip()))
    turned_once = (seen(run, store) != run.data.train.inputs).any(axis=(1, 2, 3))
    assert 0.3 < turned_once.mean() < 0.7  # and not none, as if both had drawn the same


# The same draws


def test_draws_depend_on_the_row_and_not_on_batches_or_pieces(store):
    whole = seen(images_run(), store)
    assert np.array_equal(whole, seen(images_run(batch_size=7), store))
    assert np.array_equal(whole, seen(images_run(micro_batches=3), store))
    assert not np.array_equal(whole, seen(images_run(seed=1), store))


def test_files_and_arrays_get_the_same_draws(store, tmp_path):
    data = stripes()
    for split in ("train", "val", "test"):
        part = getattr(data, split)
        for row, (image, label) in enumerate(zip(part.inputs, part.labels, strict=True)):
            folder = tmp_path / "images" / split / str(label)
            folder.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).save(folder / f"{row:03}.png")
    files = load_dataset(tmp_path / "images", size=28, resize=28)
    in_memory = dataclasses.replace(
        files, train=dataclasses.replace(files.train, inputs=files.train.inputs[:]), key="in memory"
    )
    of_files, of_arrays = (seen(small(each, transforms=CHANGES), store) for each in (files, in_memory))
    assert np.array_equal(of_files, of_arrays)
    assert not np.array_equal(of_files, files.train.inputs[:])


def test_two_ranks_train_on_the_images_of_one_process(store, tmp_path):
    run = images_run(learning_rate=0.01)
    one = train(run, store=store, progress=False)
    two = train(dataclasses.replace(run, devices=2), store=Store(tmp_path / "ranks"), progress=False)
    assert one.run.key == two.run.key
    np.testing.assert_allclose(one.history["train_loss"], two.history["train_loss"], rtol=1e-5)
    np.testing.assert_allclose(one.tables["test"].scores, two.tables["test"].scores, atol=1e-3)


def test_an_interrupted_run_goes_on_with_the_same_draws(tmp_path, monkeypatch):
    run = images_run(epochs=3)
    uninterrupted = train(run, store=Store(tmp_path / "elsewhere"), progress=False)
    monkeypatch.setattr(learning, "CHECKPOINT_SECONDS", 0)
    save, store = learning.Learner.save, Store(tmp_path / "runs")

    def save_and_stop(self):
        save(self)
        raise RuntimeError("power cut")

    with monkeypatch.context() as patch:
        patch.setattr(learning.Learner, "save", save_and_stop)
        with pytest.raises(RuntimeError, match="power cut"):
            train(run, store=store, progress=False)
    resumed = train(run, store=store, progress=False)
    assert_same_weights(weights(resumed), weights(uninterrupted))


def test_runs_that_change_images_are_not_trained_together_with_others():
    plain = small(stripes(), model="linear")
    assert stackable(plain)
    for change in CHANGES:
        assert not stackable(dataclasses.replace(plain, transforms=(change,)))


# What is recorded


def test_they_are_part_of_the_run_and_not_of_its_data():
    plain, augmented = images_run(transforms=()), images_run()
    assert plain.data.key == augmented.data.key
    keys = {images_run(transforms=CHANGES[:n]).key for n in range(4)}
    assert len(keys) == 4
    assert images_run(transforms=CHANGES[1::-1]).key != images_run(transforms=CHANGES[:2]).key
    assert "HorizontalFlip(probability=0.5) · PaddedCrop(padding=4)" in augmented.title
    with pytest.raises(ValueError, match=r"HorizontalFlip.*give it to the run, Run\(…, transforms=\(HorizontalFlip"):
        stripes().transformed(HorizontalFlip())


@pytest.mark.parametrize("kind", AUGMENTATIONS)
def test_each_is_made_again_from_what_is_stored(kind):
    assert from_spec(json.loads(json.dumps(kind().spec()))) == kind()
    assert hash(kind()) == hash(kind())


def test_a_run_is_repeated_from_its_file_with_the_transforms_of_its_data_and_of_its_images(store):
    changes = (LongTail(3), HorizontalFlip(0.3), Normalise((0.5,), (0.25,)))
    digits = load_dataset("digits")
    assert digits.input_shape == (8, 8, 1)
    run = Run(digits, model="linear", epochs=1, device="cpu", transforms=changes)
    trained = train(run, store=store, progress=False)
    assert trained.stored.record.run["transforms"] == [each.spec() for each in changes]
    again = TrainedRun.open(run.key, store).run
    assert (again.transforms, again.key, again.data.key) == (changes, run.key, run.data.key)
    asked_for = Run.from_json(trained.stored.record.run)
    assert (asked_for.transforms, asked_for.key) == (changes, run.key)


def test_the_command_line_takes_them_as_python_prints_them(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path))
    changes = (PaddedCrop(1), Normalise((0.5,), (0.25,)))
    arguments = ["train", "--dataset", "digits", "--model", "linear", "--epochs", "1", "--device", "cpu", "--json"]
    assert main([*arguments, "--transforms", *map(repr, changes)]) == 0
    key = json.loads(capsys.readouterr().out)["key"]
    assert Store(tmp_path).open(key).record.run["transforms"] == [each.spec() for each in changes]


# What is refused


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: type(change).__name__)
def test_rows_of_numbers_and_cached_features_are_refused(change, store):
    with pytest.raises(
        ValueError, match=f"{type(change).__name__}.* changes images, and the inputs are rows of 5 numbers"
    ):
        train(small(CLOUDS, transforms=(change,)), store=store, progress=False)
    with pytest.raises(ValueError, match=f"{type(change).__name__}.* with features: those are computed once"):
        small(stripes(), model="cnn", features=64 * "0", transforms=(change,))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PaddedCrop(0), r"padding = 0 is outside"),
        (lambda: HorizontalFlip(1.5), r"probability = 1\.5 is outside"),
        (lambda: Normalise(mean=(0.5, "red")), "mean = .*give a number for each channel"),
        (lambda: Normalise((0.5,), (0.5, 0.5)), "give as many deviations, above 0, as means"),
        (lambda: Normalise((0.5,), (0.0,)), "give as many deviations, above 0, as means"),
        (lambda: Torchvision(options=[2]), "give the name of a transform of torchvision and its options by name"),
        (lambda: images_run(transforms=(Normalise(), Normalise())), "normalise images twice; give one"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_to_give(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_colours_that_do_not_fit_the_images_or_the_weights_are_refused(store):
    with pytest.raises(ValueError, match="is for images of 1 channels, and these have 3"):
        train(images_run(transforms=(Normalise((0.5,), (0.5,)),)), store=store, progress=False)
    model = Prepared(torch.nn.Flatten(), (0.5, 0.5, 0.5), smallest=1)
    with pytest.raises(ValueError, match=r"Prepared brings the mean and deviation.*leave Normalise"):
        train(images_run(model=model, head="new"), store=store, progress=False)


# torchvision


class Noise(torch.nn.Module):
    """Draws from torch's own generator, as transforms of torchvision do, and takes one image (C, H, W)."""

    def __init__(self, most: int = 9) -> None:
        super().__init__()
        self.most = most

    def forward(self, image):
        assert image.dtype == torch.uint8
        assert image.shape[0] in (1, 3)
        return image ^ torch.randint(self.most, image.shape, dtype=torch.uint8)


class ToFloat(Noise):
    def forward(self, image):
        return image / 255


@pytest.fixture
def torchvision(monkeypatch) -> None:
    """A stand-in for torchvision.transforms.v2 with two transforms."""
    v2 = types.ModuleType("torchvision.transforms.v2")
    v2.Transform, v2.RandAugment, v2.ToFloat, v2.functional = torch.nn.Module, Noise, ToFloat, types.ModuleType("f")
    parts = {"torchvision": types.ModuleType("torchvision"), "torchvision.transforms": types.ModuleType("transforms")}
    parts["torchvision"].transforms, parts["torchvision.transforms"].v2 = parts["torchvision.transforms"], v2
    for name, module in (parts | {"torchvision.transforms.v2": v2}).items():
        monkeypatch.setitem(sys.modules, name, module)


@pytest.mark.usefixtures("torchvision")
def test_a_transform_of_torchvision_draws_for_each_row_and_leaves_the_generator_of_dropout_alone(store):
    changes = (Torchvision("RandAugment", {"most": 4}),)
    before = torch.get_rng_state()
    whole = seen(images_run(transforms=changes), store)
    assert torch.equal(torch.get_rng_state(), before)
    raw = images_run().data.train.inputs
    assert set(np.unique(whole ^ raw)) == {0, 1, 2, 3}
    assert np.array_equal(whole, seen(images_run(transforms=changes, batch_size=7), store))
    assert not np.array_equal(whole[0] ^ raw[0], whole[1] ^ raw[1])


@pytest.mark.usefixtures("torchvision")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (Torchvision("Blur"), "torchvision.transforms.v2 has no transform named 'Blur'"),
        (Torchvision("functional"), "has no transform named 'functional'"),
        (Torchvision("RandAugment", {"least": 1}), "torchvision does not take these options .*least"),
        (Torchvision("ToFloat"), "makes torch.float32 .*take a transform that leaves images uint8"),
    ],
)
def test_what_torchvision_cannot_do_is_refused_before_anything_is_learnt(change, message, store):
    with pytest.raises(ValueError, match=message):
        train(images_run(transforms=(change,)), store=store, progress=False)


def test_without_torchvision_its_transforms_say_what_to_install_and_other_runs_do_not_ask(monkeypatch, store):
    monkeypatch.setitem(sys.modules, "torchvision", None)
    run = images_run(transforms=(Torchvision(),))  # it can be described, stored and read
    with pytest.raises(ValueError, match=r"Torchvision\(.*needs torchvision, .*; install the one that fits your torch"):
        train(run, store=store, progress=False)
    train(images_run(epochs=1), store=store, progress=False)
