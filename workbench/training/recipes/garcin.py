"""The protocols of Garcin et al. 2022, Garcin et al. 2023 and Garcin's thesis."""

from __future__ import annotations

import itertools

from workbench.datasets import LabelNoise
from workbench.losses import (
    LDAM,
    ROLE,
    AssumeNegative,
    AverageKTwoHead,
    CrossEntropy,
    ExpectedPositive,
    Focal,
    NoisedTopK,
    NoisedTopKImbalanced,
    SmoothTopKHinge,
)
from workbench.training.recipes.base import Recipe, models, of, sgd

# On CIFAR-100 both papers train alike.
CIFAR = sgd(0.1, epochs=300, drop_after=(150, 225), batch_size=64, model="densenet40-40")
PRETRAINED = "ImageNet's weights come by model=with_weights('{name}', file) or model='torchvision:{name}:IMAGENET1K_V1'"
EPSILONS = (0.0, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)

# Garcin et al. 2022, appendix E: what was searched on data with a long tail.
MARGINS = (0.2, 0.3, 0.4, 0.5)
LONG_TAIL_GRID = of(
    [
        *(Focal(gamma=gamma) for gamma in (0.5, 1.0, 2.0, 5.0)),
        *(SmoothTopKHinge(temperature=temperature) for temperature in (0.1, 1.0)),
        *(LDAM(max_margin=margin) for margin in MARGINS),
        *(
            NoisedTopKImbalanced(epsilon=epsilon, max_margin=margin)
            for epsilon, margin in itertools.product((0.01, 0.05, 0.1), MARGINS)
        ),
    ]
)
# Thesis, section 3.8.3 and Figure 3.9: cross-entropy against the smooth top-5 loss, otherwise trained alike.
CROSS_ENTROPY_OR_SMOOTH = of([CrossEntropy(), SmoothTopKHinge(K=5, temperature=1.0)])
CUT = "images in files are resized to 256 and cut to 224 at random, and in the middle for test, as there"
LEFT_OUT = "what of that line torchvision does not have, or what has no linear layer at its end, is left out"

OF_GARCIN: dict[str, Recipe] = {
    "cifar100-densenet": Recipe(
        settings=CIFAR | {"monitor": "average_k_accuracy@K=5"},
        compared=of(
            [
                CrossEntropy(),
                AverageKTwoHead(alpha=0.3),
                AssumeNegative(),
                ExpectedPositive(beta=0.01),
                NoisedTopK(epsilon=0.2),
                ROLE(beta=0.0, estimate_rate=1.0),
            ]
        ),
        K=(5,),
        paper="Garcin et al. 2023; Garcin, thesis",
        place="section 6.2; Table 5.3",
        note="5 000 training images are the validation rows, as many of every class",
        untold=("augmentation", "grids of the search", "n_samples"),
    ),
    "cifar100-label-noise": Recipe(
        settings=CIFAR | {"monitor": "top_k_accuracy@K=5"},
        compared=tuple(
            {"transforms": (LabelNoise(probability),), "loss": loss}
            for probability in (0.0, 0.1, 0.2, 0.3, 0.4)
            for loss in (CrossEntropy(), SmoothTopKHinge(temperature=1.0), NoisedTopK(epsilon=0.2, n_samples=10))
        ),
        grid=of(
            [
                *(NoisedTopK(epsilon=epsilon, n_samples=10) for epsilon in EPSILONS),
                *(NoisedTopK(epsilon=0.2, n_samples=n) for n in (1, 2, 3, 5, 10, 50, 100)),
            ]
        ),
        K=(5,),
        paper="Garcin et al. 2022",
        place="section 4.4, Tables 2, 3 and 4",
        note="5 000 training images are the validation rows",
        untold=("augmentation",),
    ),
    "plantnet300k-resnet50": Recipe(
        settings=sgd(
            2e-3, epochs=30, drop_after=(20, 25), batch_size=32, model="resnet50", monitor="macro_top_k_accuracy@K=5"
        ),
        compared=of(
            [
                CrossEntropy(),
                SmoothTopKHinge(temperature=0.1),
                NoisedTopK(epsilon=1.0, n_samples=5),
                Focal(gamma=2.0),
                LDAM(max_margin=0.2, scale=40.0),
                NoisedTopKImbalanced(epsilon=0.01, n_samples=5, max_margin=0.2, scale=60.0),
            ]
        ),
        grid=LONG_TAIL_GRID,
        K=(1, 3, 5),
        paper="Garcin et al. 2022",
        place="section 4.5.1, Table 5, appendix E",
        note=PRETRAINED.format(name="resnet50"),
        untold=("augmentation",),
    ),
    "plantnet300k-resnet18": Recipe(
        settings=sgd(
            2e-3, epochs=30, drop_after=(25,), batch_size=32, model="resnet18", monitor="average_k_accuracy@K=5"
        ),
        compared=of(
            [
                CrossEntropy(),
                NoisedTopK(epsilon=1.0),
                AverageKTwoHead(alpha=5.0),
                AssumeNegative(),
                ExpectedPositive(beta=0.001),
            ]
        ),
        K=(2, 3, 5, 10),
        paper="Garcin et al. 2023; Garcin, thesis",
        place="section 6.3; Table 5.4",
        note=PRETRAINED.format(name="resnet18"),
        untold=("augmentation", "grids of the search", "n_samples"),
    ),
    "plantnet300k-cross-entropy": Recipe(
        settings=sgd(1e-2, epochs=30, drop_after=(20, 25), batch_size=32, model="resnet50"),
        compared=CROSS_ENTROPY_OR_SMOOTH,
        grid=models(
            *("mobilenet_v2", "mobilenet_v3_large", "resnet18", "resnet34", "resnet50", "resnet101", "resnet152"),
            *("densenet121", "densenet161", "densenet169", "densenet201"),
            *("wide_resnet50_2", "wide_resnet101_2", "shufflenet_v2_x1_0"),
        ),
        K=(5,),
        paper="Garcin, thesis",
        place="sections 3.3.2 and 3.8.3, Table 3.3, first line",
        note=f"{PRETRAINED.format(name='resnet50')}; {CUT}; {LEFT_OUT}",
        untold=("monitor",),
    ),
    "plantnet300k-cross-entropy-slow": Recipe(
        settings=sgd(1e-3, epochs=30, drop_after=(20, 25), batch_size=32),
        compared=CROSS_ENTROPY_OR_SMOOTH,
        grid=models("vgg11", "alexnet", "mobilenet_v3_small"),
        K=(5,),
        paper="Garcin, thesis",
        place="sections 3.3.2 and 3.8.3, Table 3.3, second line",
        note=f"give model='torchvision:vgg11:IMAGENET1K_V1' or the like; {CUT}; {LEFT_OUT}",
        untold=("monitor",),
    ),
    "plantnet300k-efficientnet": Recipe(
        settings=sgd(1e-2, epochs=20, drop_after=(10, 15), batch_size=32),
        compared=CROSS_ENTROPY_OR_SMOOTH,
        grid=models("efficientnet_b0", "efficientnet_b1", "efficientnet_b2", "efficientnet_b3", "efficientnet_b4"),
        K=(5,),
        paper="Garcin, thesis",
        place="sections 3.3.2 and 3.8.3, Table 3.3, third line",
        note="give model='torchvision:efficientnet_b0:IMAGENET1K_V1' or the like; a smaller one that comes with a package is "
        f"model='efficientnet-lite0'; {CUT}",
        untold=("monitor",),
    ),
    "plantnet300k-vit": Recipe(
        settings=sgd(5e-4, epochs=20, drop_after=(15,), batch_size=32),
        compared=CROSS_ENTROPY_OR_SMOOTH,
        grid=models("vit_b_16"),
        K=(5,),
        paper="Garcin, thesis",
        place="sections 3.3.2 and 3.8.3, Table 3.3, last line",
        note=f"give model='torchvision:vit_b_16:IMAGENET1K_V1'; the thesis does not say which vision transformer; {CUT}",
        untold=("monitor",),
    ),
    "imagenet-lt-resnet34": Recipe(
        settings=sgd(1e-2, epochs=100, drop_after=(60, 80), batch_size=128, weight_decay=2e-3, model="resnet34"),
        compared=of(
            [
                CrossEntropy(),
                SmoothTopKHinge(temperature=0.1),
                Focal(gamma=1.0),
                LDAM(max_margin=0.4),
                NoisedTopKImbalanced(epsilon=0.1, n_samples=5, max_margin=0.4),
            ]
        ),
        grid=LONG_TAIL_GRID,
        K=(1, 3, 5),
        paper="Garcin et al. 2022",
        place="section 4.5.2, Table 6, appendix E",
        note="the optimizer is theirs for Pl@ntNet-300K; the scales are the good defaults of appendix E",
        untold=("augmentation", "monitor", "momentum", "optimizer"),
    ),
    "imagenet-resnet18": Recipe(
        settings=sgd(
            0.1, epochs=120, drop_after=(30, 60, 90), batch_size=120, model="resnet18", monitor="top_k_accuracy@K=5"
        ),
        compared=(
            {"loss": CrossEntropy(), "learning_rate": 0.1, "weight_decay": 1e-4},
            {"loss": SmoothTopKHinge(temperature=0.1), "learning_rate": 1.0, "weight_decay": 2.5e-5},
            {"loss": NoisedTopK(epsilon=0.5, n_samples=10), "learning_rate": 0.1, "weight_decay": 1.5e-4},
        ),
        K=(1, 5),
        paper="Garcin et al. 2022",
        place="appendix D, Table 9",
        note="the paper prints 'a batch size of 120 epochs'",
        untold=("augmentation", "momentum"),
    ),
}
