"""The protocols of Liao et al.: one for images of one label, of none and of many."""

from __future__ import annotations

from workbench.losses import BinaryCrossEntropy, CrossEntropy, Quasibinary, SoftmaxMaxConfidence, SoftmaxUniform
from workbench.training.recipes.base import Recipe, of, sgd

SMALL_IMAGES = sgd(0.1, epochs=200, drop_after=(100, 150), batch_size=64, model="resnet18-small")
MOMENTUM = "the paper prints a momentum of 1e-4, which we read as weight decay; the momentum here is 0.9"

OF_LIAO: dict[str, Recipe] = {
    "quasibinary-resnet18": Recipe(
        settings=SMALL_IMAGES,
        compared=of([CrossEntropy(), BinaryCrossEntropy(), Quasibinary()]),
        paper="Liao et al.",
        place="section V, common training protocol; section V-A, Table I",
        note=f"for images of 32 pixels; those of ImageNet have 224, and model='resnet18' there; {MOMENTUM}",
        untold=("augmentation", "momentum", "monitor", "weight_decay"),
    ),
    "quasibinary-zero-labels": Recipe(
        settings=SMALL_IMAGES | {"loss": Quasibinary()},
        compared=of([SoftmaxUniform(), SoftmaxMaxConfidence(), BinaryCrossEntropy(), Quasibinary()]),
        paper="Liao et al.",
        place="section V, common training protocol; section V-B, Table II",
        note=f"for data with rows without a label, such as transforms=(ZeroLabels(),) of CIFAR-100; {MOMENTUM}",
        untold=("augmentation", "momentum", "monitor", "weight_decay"),
    ),
}
