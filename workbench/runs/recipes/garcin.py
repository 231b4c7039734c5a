"""The protocols of Garcin et al. 2022, Garcin et al. 2023 and Garcin's thesis."""

from __future__ import annotations

import itertools

from workbench.datasets import HorizontalFlip, LabelNoise, Normalise, PaddedCrop
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
from workbench.runs.recipes.base import Recipe, models, of, sgd

# The augmentation of the code that the authors published (noised-topk, experiments/dataloader/get_data.py).
MEAN, DEVIATION = (125.3 / 255, 123.0 / 255, 113.9 / 255), (63.0 / 255, 62.1 / 255, 66.7 / 255)
AUGMENTATION = (PaddedCrop(4), HorizontalFlip(), Normalise(MEAN, DEVIATION))
AS_PUBLISHED = "crops, flips and colours are those of the code that the authors published"
# On CIFAR-100 both papers train alike.
CIFAR = sgd(
    0.1,
    epochs=300,
    divide_after=(150, 225),
    batch_size=64,
    model="densenet40-40",
    transforms=AUGMENTATION,
)
PRETRAINED = "ImageNet's weights come by model=with_weights('{name}', file) or model='torchvision:{name}:IMAGENET1K_V1'"
# Thesis, Figures 5.5 and 5.6; the batch sizes of the latter are drawn and not printed.
ALPHAS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)
BATCH_SIZES = (16, 32, 64, 128, 256, 512, 1024)
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
        note=f"5 000 training images are the validation rows, as many of every class; {AS_PUBLISHED}",
        unstated=("grids of the search", "n_samples"),
    ),
    "cifar100-alpha": Recipe(
        settings=CIFAR | {"monitor": "average_k_accuracy@K=5"},
        compared=of(AverageKTwoHead(alpha=alpha) for alpha in ALPHAS),
        K=(5,),
        paper="Garcin, thesis",
        place="section 5.9.1, Figure 5.5",
        note=f"5 000 training images are the validation rows, as many of every class; {AS_PUBLISHED}",
    ),
    "cifar100-batch-size": Recipe(
        settings=CIFAR | {"monitor": "average_k_accuracy@K=5"},
        compared=tuple(
            {"loss": loss, "batch_size": n, "learning_rate": 0.1 * n / 64}
            for loss in (CrossEntropy(), AverageKTwoHead(alpha=0.3))
            for n in BATCH_SIZES
        ),
        K=(5,),
        paper="Garcin, thesis",
        place="section 5.9.1, Figure 5.6",
        note="the ratio of learning rate to batch size is constant; the sizes are ours, for the figure prints none; 5 000 "
        f"training images are the validation rows, as many of every class; {AS_PUBLISHED}",
        unstated=("batch sizes of the sweep",),
    ),
    "cifar100-gradients": Recipe(
        settings=CIFAR | {"epochs": 1, "milestones": ()},
        compared=of(NoisedTopK(epsilon=epsilon, n_samples=3) for epsilon in EPSILONS),
        K=(5,),
        paper="Garcin et al. 2022; Garcin, thesis",
        place="section 4.1, Figure 2; section 4.4.1, Figure 4.2",
        note=f"the first epoch; the values of ε are those of Table 2, for the figure prints none; {AS_PUBLISHED}",
        unstated=("monitor", "values of ε"),
    ),
    "cifar100-label-noise": Recipe(
        settings=CIFAR | {"monitor": "top_k_accuracy@K=5"},
        compared=tuple(
            {"transforms": (LabelNoise(probability), *AUGMENTATION), "loss": loss}
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
        note=f"5 000 training images are the validation rows; {AS_PUBLISHED}",
    ),
    "plantnet300k-resnet50": Recipe(
        settings=sgd(
            2e-3, epochs=30, divide_after=(20, 25), batch_size=32, model="resnet50", monitor="macro_top_k_accuracy@K=5"
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
        unstated=("augmentation",),
    ),
    "plantnet300k-resnet18": Recipe(
        settings=sgd(
            2e-3, epochs=30, divide_after=(25,), batch_size=32, model="resnet18", monitor="average_k_accuracy@K=5"
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
        unstated=("augmentation", "grids of the search", "n_samples"),
    ),
    "plantnet300k-cross-entropy": Recipe(
        settings=sgd(1e-2, epochs=30, divide_after=(20, 25), batch_size=32, model="resnet50"),
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
        unstated=("monitor",),
    ),
    "plantnet300k-cross-entropy-slow": Recipe(
        settings=sgd(1e-3, epochs=30, divide_after=(20, 25), batch_size=32),
        compared=CROSS_ENTROPY_OR_SMOOTH,
        grid=models("vgg11", "alexnet", "mobilenet_v3_small"),
        K=(5,),
        paper="Garcin, thesis",
        place="sections 3.3.2 and 3.8.3, Table 3.3, second line",
        note=f"give model='torchvision:vgg11:IMAGENET1K_V1' or the like; {CUT}; {LEFT_OUT}",
        unstated=("monitor",),
    ),
    "plantnet300k-efficientnet": Recipe(
        settings=sgd(1e-2, epochs=20, divide_after=(10, 15), batch_size=32),
        compared=CROSS_ENTROPY_OR_SMOOTH,
        grid=models("efficientnet_b0", "efficientnet_b1", "efficientnet_b2", "efficientnet_b3", "efficientnet_b4"),
        K=(5,),
        paper="Garcin, thesis",
        place="sections 3.3.2 and 3.8.3, Table 3.3, third line",
        note="give model='torchvision:efficientnet_b0:IMAGENET1K_V1' or the like; a smaller one that comes with a package is "
        f"model='efficientnet-lite0'; {CUT}",
        unstated=("monitor",),
    ),
    "plantnet300k-vit": Recipe(
        settings=sgd(5e-4, epochs=20, divide_after=(15,), batch_size=32),
        compared=CROSS_ENTROPY_OR_SMOOTH,
        grid=models("vit_b_16"),
        K=(5,),
        paper="Garcin, thesis",
        place="sections 3.3.2 and 3.8.3, Table 3.3, last line",
        note=f"give model='torchvision:vit_b_16:IMAGENET1K_V1'; the thesis does not say which vision transformer; {CUT}",
        unstated=("monitor",),
    ),
    "imagenet-lt-resnet34": Recipe(
        settings=sgd(1e-2, epochs=100, divide_after=(60, 80), batch_size=128, weight_decay=2e-3, model="resnet34"),
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
        unstated=("augmentation", "monitor", "momentum", "optimizer"),
    ),
    "imagenet-resnet18": Recipe(
        settings=sgd(
            0.1, epochs=120, divide_after=(30, 60, 90), batch_size=120, model="resnet18", monitor="top_k_accuracy@K=5"
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
        unstated=("augmentation", "momentum"),
    ),
}
