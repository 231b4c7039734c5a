"""Backbones turn inputs into features; the loss decides the head."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from torch import nn

from workbench.backbones import UNTRAINED
from workbench.losses import CrossEntropy, Loss
from workbench.models import BACKBONES, build_network


@dataclass(frozen=True)
class CosineLoss(CrossEntropy):
    head = "cosine"


@dataclass(frozen=True)
class TwoHeadLoss(CrossEntropy):
    heads = 2


def tiny(input_shape: tuple[int, ...]) -> nn.Module:
    """A backbone of somebody else, found as `module:factory`."""
    return nn.Sequential(nn.Flatten(), nn.LazyLinear(7))


def build(model: str | nn.Module = "mlp", loss: Loss | None = None, input_shape=(16,), n_classes=5, seed=0):
    return build_network(model, loss or CrossEntropy(), input_shape=input_shape, n_classes=n_classes, seed=seed)


@pytest.mark.parametrize("name", UNTRAINED)
@pytest.mark.parametrize("input_shape", [(28, 28, 1), (48, 48, 3)])
def test_every_backbone_scores_photographs(name, input_shape):
    network = build(name, input_shape=input_shape).eval()
    photographs = torch.randint(0, 256, (1, *input_shape), dtype=torch.uint8)
    with torch.no_grad():
        assert network(photographs).shape == (1, 5)


@pytest.mark.parametrize("name", ["linear", "mlp"])
def test_rows_of_numbers_are_scored_too(name):
    assert build(name)(torch.randn(3, 16)).shape == (3, 5)


@pytest.mark.parametrize("name", [name for name in BACKBONES if name not in ("linear", "mlp")])
def test_a_backbone_for_images_refuses_rows_and_says_what_to_use(name):
    with pytest.raises(ValueError, match=rf"{name} looks at images, .*\(16,\); use 'mlp' or 'linear'"):
        build(name)


def test_densenet_40_40_has_the_depth_and_the_width_of_its_name():
    backbone = build("densenet40-40", input_shape=(32, 32, 3), n_classes=100).backbone
    convolutions = [module for module in backbone.modules() if isinstance(module, nn.Conv2d)]
    assert len(convolutions) + 1 == 40  # with the head
    assert [module.out_channels for module in convolutions].count(40) == 36
    assert backbone(torch.zeros(1, 3, 32, 32)).shape == (1, 16 + 36 * 40)


@pytest.mark.parametrize(
    ("name", "n_parameters", "width"),  # as published, without the last layer
    [("resnet18", 11_176_512, 512), ("resnet34", 21_284_672, 512), ("resnet50", 23_508_032, 2048)],
)
def test_a_resnet_has_the_parameters_of_its_name_and_halves_the_resolution_five_times(name, n_parameters, width):
    backbone = build(name, input_shape=(224, 224, 3)).backbone
    assert sum(parameter.numel() for parameter in backbone.parameters()) == n_parameters
    sides = []
    backbone.layer4.register_forward_hook(lambda module, inputs, output: sides.append(output.shape[-2:]))
    assert backbone.eval()(torch.zeros(1, 3, 64, 64)).shape == (1, width)
    assert sides == [(2, 2)]


def test_a_resnet_has_the_names_of_published_weights():
    names = set(build("resnet50", input_shape=(32, 32, 3)).backbone.state_dict())
    assert {"conv1.weight", "bn1.running_mean", "layer1.0.downsample.0.weight", "layer4.2.bn3.bias"} <= names
    assert "layer1.1.downsample.0.weight" not in names  # a shortcut that changes nothing has no weights


def test_a_backbone_sees_channels_first_between_0_and_1():
    seen = []

    class Spy(nn.Module):
        def forward(self, images):
            seen.append(images)
            return images.flatten(1)

    network = build(Spy(), input_shape=(2, 4, 3))
    image = torch.zeros(1, 2, 4, 3, dtype=torch.uint8)
    image[0, 1, 2, 0] = 255
    seen.clear()
    network.backbone.forward(network.features(image).view(1, 3, 2, 4))
    assert seen[0].shape == (1, 3, 2, 4)
    assert seen[0].nonzero().tolist() == [[0, 0, 1, 2]]
    assert seen[0].max() == 1


def test_rows_are_standardised_with_the_training_split_and_a_constant_column_survives():
    network = build("linear", input_shape=(2,))
    training = torch.tensor([[1.0, 7.0], [3.0, 7.0]])
    network.standardise(training)
    torch.testing.assert_close(network.features(training), torch.tensor([[-1.0, 0.0], [1.0, 0.0]]))
    assert {"mean", "deviation"} <= set(network.state_dict())


def test_a_cosine_head_returns_cosines():
    network = build("linear", CosineLoss(), input_shape=(8,))
    x = torch.randn(50, 8)
    expected = nn.functional.cosine_similarity(x[:, None], network.head.weight[None], dim=-1)
    torch.testing.assert_close(network(x), expected)
    torch.testing.assert_close(network(3 * x), network(x))


def test_two_heads_share_the_features_and_differ_in_weights():
    network = build("mlp", TwoHeadLoss())
    x = torch.randn(3, 16)
    scores = network(x)
    assert scores.shape == (3, 2, 5)
    torch.testing.assert_close(scores[:, 0], network.head.predicting(network.features(x)))
    torch.testing.assert_close(scores[:, 1], network.head.candidates(network.features(x)))
    assert not torch.equal(scores[:, 0], scores[:, 1])


def test_initial_weights_depend_on_the_seed_only_and_leave_the_global_generator_alone():
    before = torch.random.get_rng_state()
    first, again, other = (build(seed=seed).state_dict()["head.weight"] for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_factory_is_found_by_module_and_name_and_its_width_is_inferred():
    network = build(f"{__name__}:tiny")
    assert network.features(torch.randn(2, 16)).shape == (2, 7)


def test_a_module_is_copied_so_that_training_does_not_change_it():
    mine = nn.Sequential(nn.Flatten(), nn.Linear(16, 3))
    network = build(mine)
    with torch.no_grad():
        network.backbone[1].weight.zero_()
    assert mine[1].weight.any()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            "resnet",
            "no model named 'resnet'; known: linear, mlp, cnn, resnet18-small, .*, torchvision:name; or give module:factory",
        ),
        ("nowhere:factory", "does not name a model: No module named 'nowhere'"),
        ("math:factory", "does not name a model: .*math.* has no attribute 'factory'"),
        ("math:pi", "not a function that takes an input shape"),
        (
            "os:getcwd",
            r"'os:getcwd' does not make a model: it is called with the input shape, \(16,\) .*takes no arguments",
        ),
        ("math:", "'math:' does not name a model; write module:name"),
        ("builtins:len", "must be a torch Module that returns features, not int"),
        (nn.Conv2d(3, 4, 3), r"does not take inputs of shape \(16,\)"),
        (nn.Unflatten(1, (4, 4)), r"returns \(2, 4, 4\); it must return features of shape \(2, d\)"),
    ],
)
def test_a_wrong_model_is_refused_with_what_is_allowed(model, message):
    with pytest.raises(ValueError, match=message):
        build(model)
