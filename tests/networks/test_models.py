"""Backbones turn inputs into features; the loss decides the head."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from torch import nn

from workbench.losses import CrossEntropy, Loss
from workbench.networks import BACKBONES
from workbench.networks.base import DRAWINGS, IMAGES, OF_A_DRAWING, TRAINED
from workbench.networks.network import build_network


@dataclass(frozen=True)
class CosineLoss(CrossEntropy):
    head = "cosine"


@dataclass(frozen=True)
class TwoHeadLoss(CrossEntropy):
    heads = 2


def tiny(input_shape: tuple[int, ...]) -> nn.Module:
    """A custom backbone, found as `module:factory`."""
    return nn.Sequential(nn.Flatten(), nn.LazyLinear(7))


def build(model: str | nn.Module = "mlp", loss: Loss | None = None, input_shape=(16,), n_classes=5, seed=0):
    return build_network(model, loss or CrossEntropy(), input_shape=input_shape, n_classes=n_classes, seed=seed)


@pytest.mark.parametrize("name", [each.name for each in BACKBONES.values() if each.weights != TRAINED])
@pytest.mark.parametrize("input_shape", [(28, 28, 1), (48, 48, 3)])
def test_every_backbone_scores_photographs(name, input_shape):
    network = build(name, input_shape=input_shape).eval()
    photographs = torch.randint(0, 256, (1, *input_shape), dtype=torch.uint8)
    with torch.no_grad():
        assert network(photographs).shape == (1, 5)


@pytest.mark.parametrize("name", ["linear", "mlp"])
def test_rows_of_numbers_are_scored_too(name):
    assert build(name)(torch.randn(3, 16)).shape == (3, 5)


@pytest.mark.parametrize("name", [each.name for each in BACKBONES.values() if each.inputs == IMAGES])
def test_a_backbone_for_images_refuses_rows_and_says_what_to_use(name):
    with pytest.raises(ValueError, match=rf"{name} looks at images, .*\(16,\); use 'mlp' or 'linear'"):
        build(name)


def test_densenet_40_40_has_the_depth_and_the_width_of_its_name():
    backbone = build("densenet40-40", input_shape=(32, 32, 3), n_classes=100).backbone
    convolutions = [module for module in backbone.modules() if isinstance(module, nn.Conv2d)]
    assert len(convolutions) + 1 == 40  # with the head
    assert [module.out_channels for module in convolutions].count(40) == 36
    assert backbone(torch.zeros(1, 3, 32, 32)).shape == (1, 16 + 36 * 40)


def test_vgg16_has_the_depth_of_its_name_without_its_hidden_layers_and_halves_the_resolution_five_times():
    backbone = build("vgg16", input_shape=(32, 32, 3), n_classes=100).backbone.eval()
    convolutions = [module for module in backbone.modules() if isinstance(module, nn.Conv2d)]
    assert len(convolutions) + 3 == 16  # with two hidden layers, which the small one goes without, and the head
    widths = [module.out_channels for module in convolutions]
    assert widths == [64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512]
    # As published for CIFAR, without the last layer and the biases, which batch normalisation makes idle.
    assert sum(parameter.numel() for parameter in backbone.parameters()) == 14_723_136 - sum(widths)
    sides = []
    backbone[-2].register_forward_hook(
        lambda module, inputs, output: sides.extend([inputs[0].shape[-1], output.shape[-1]])
    )
    assert backbone(torch.zeros(1, 3, 32, 32)).shape == (1, 512)
    assert sides == [2, 1]


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
            f"no model named 'resnet'; known: {', '.join(BACKBONES)}, torchvision:name; or give module:factory",
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


# Networks that end in scores


def classifier(n_classes: int = 5) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, n_classes))


class Wrapped(nn.Module):
    """A classifier whose last layer has a name and is called somewhere inside."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.ModuleDict({"fc": nn.Linear(8, 5)})
        self.first = nn.Linear(16, 8)

    def forward(self, inputs):
        return self.inner["fc"](self.first(inputs).relu())


@pytest.mark.parametrize("mine", [classifier(), Wrapped(), nn.Linear(16, 5)], ids=["sequential", "named", "linear"])
def test_a_network_that_ends_in_a_score_for_each_class_keeps_its_last_layer_as_the_head(mine):
    network, inputs = build(mine).eval(), torch.randn(3, 16)
    torch.testing.assert_close(network(inputs), mine(inputs))
    assert isinstance(network.head, nn.Linear)
    assert network.features(inputs).shape == (3, network.head.in_features)
    assert sum(weight.numel() for weight in network.parameters()) == sum(weight.numel() for weight in mine.parameters())


def test_a_loss_that_asks_for_other_heads_puts_them_where_the_last_layer_was():
    cosine, two = build(classifier(), CosineLoss()), build(classifier(), TwoHeadLoss())
    assert cosine.head.weight.shape == (5, 8)
    assert two(torch.randn(3, 16)).shape == (3, 2, 5)
    assert two.features(torch.randn(3, 16)).shape == (3, 8)


def test_one_can_say_that_what_looks_like_scores_are_features_and_the_reverse():
    network = build_network(classifier(), CrossEntropy(), input_shape=(16,), n_classes=5, head="new")
    assert network.features(torch.randn(3, 16)).shape == (3, 5)
    assert network.head.weight.shape == (5, 5)
    squeezed = nn.Sequential(classifier(), nn.Hardtanh())
    network = build_network(squeezed, CrossEntropy(), input_shape=(16,), n_classes=5, head="own")
    inputs = torch.randn(3, 16)
    torch.testing.assert_close(network(inputs), squeezed(inputs))
    with pytest.raises(
        ValueError, match=r"head = 'own', but for 2 inputs the model returns \(2, 5\), and .* \(2, 2, 5\)"
    ):
        build_network(squeezed, TwoHeadLoss(), input_shape=(16,), n_classes=5, head="own")


@pytest.mark.parametrize(
    "mine", [nn.Sequential(classifier(), nn.LogSoftmax(1)), nn.Sequential(nn.Linear(16, 5), nn.ReLU())]
)
def test_as_many_numbers_as_classes_that_may_be_scores_or_features_are_asked_about(mine):
    with pytest.raises(ValueError, match=r"5 numbers for 5 classes: its scores, or features\?.*head='own'.*head='new'"):
        build(mine)


def test_built_in_models_return_features_however_many_classes_there_are():
    network = build("linear", input_shape=(5,), n_classes=5)
    assert network.head.weight.shape == (5, 5)
    assert build(f"{__name__}:tiny", n_classes=7).head.weight.shape == (7, 16)


def test_a_backbone_says_its_name_its_title_and_what_it_looks_at():
    for name, each in BACKBONES.items():
        assert name == each.name
        assert each.title
        assert each.about.endswith(".")
        if each.inputs == IMAGES:
            with pytest.raises(ValueError, match=f"{name} looks at images"):
                each((16,))
        else:
            width = OF_A_DRAWING if each.inputs == DRAWINGS else 16
            assert each((width,))(torch.zeros(2, width)).shape[0] == 2
