"""The protocols of Liao et al.: one for images of one label, of none and of many."""

from __future__ import annotations

from workbench.losses import BinaryCrossEntropy, CrossEntropy, Quasibinary, SoftmaxMaxConfidence, SoftmaxUniform
from workbench.runs.recipes.base import Recipe, models, of, sgd

SMALL_IMAGES = sgd(0.1, epochs=200, divide_after=(100, 150), batch_size=64, model="resnet18-small")
QUASIBINARY = Quasibinary(averaging_rate=0.1)  # "the momentum of the moving average … as 0.9"
MOMENTUM = "the paper prints a momentum of 1e-4, which we read as weight decay; the momentum here is 0.9"

OF_LIAO: dict[str, Recipe] = {
    "quasibinary-resnet18": Recipe(
        settings=SMALL_IMAGES,
        compared=of([CrossEntropy(), BinaryCrossEntropy(), QUASIBINARY]),
        grid=({"model": "resnet18-small"}, {"model": "vgg16"}),
        paper="Liao et al.",
        place="section V, common training protocol; section V-A, Table I",
        note=f"for images of 32 pixels; those of ImageNet have 224, and model='resnet18' there; {MOMENTUM}",
        unstated=("augmentation", "momentum", "monitor", "weight_decay"),
    ),
    "quasibinary-zero-labels": Recipe(
        settings=SMALL_IMAGES | {"loss": QUASIBINARY},
        compared=of([SoftmaxUniform(), SoftmaxMaxConfidence(), BinaryCrossEntropy(), QUASIBINARY]),
        paper="Liao et al.",
        place="section V, common training protocol; section V-B, Table II",
        note=f"for data with rows without a label, such as transforms=(ZeroLabels(),) of CIFAR-100; {MOMENTUM}",
        unstated=("augmentation", "momentum", "monitor", "weight_decay"),
    ),
    "quasibinary-vgg16": Recipe(
        settings=sgd(1e-3, epochs=20, divide_after=(10, 15), batch_size=64),
        compared=of([BinaryCrossEntropy(), CrossEntropy(), QUASIBINARY]),
        grid=models("vgg16"),
        paper="Liao et al.",
        place="section V-C, Table III",
        note="for images with many labels, judged by their four best classes; give model='torchvision:vgg16:IMAGENET1K_V1', "
        "which is fine-tuned as in a paper that is cited there; what is not stated is as in the common protocol, but for "
        "the learning rate, which is meant for random weights",
        unstated=(
            *("augmentation", "batch_size", "milestones", "learning_rate"),
            *("momentum", "monitor", "optimizer", "weight_decay"),
        ),
    ),
}
