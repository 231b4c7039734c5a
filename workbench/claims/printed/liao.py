"""The tables of Liao et al.: sigmoids, softmax and quasibinary with one label a row, with none, and with many."""

from __future__ import annotations

from workbench.claims.printed.small import DIGITS, LETTERS, MEADOW, MLP, on_letters
from workbench.claims.table import PaperTable
from workbench.claims.table_spec import Column, Data, Part, Protocol, Row, Setting, Small

PAPER = "Liao et al."
CIFAR10, CIFAR100, TINY, IMAGENET = "CIFAR10", "CIFAR100", "Tiny-ImageNet", "ImageNet"
COCO, NUS_WIDE = "MS-COCO", "NUS-WIDE"
ONE_SEED = "the paper tells of no second seed"

BINARY, QUASIBINARY, SOFTMAX = (Setting(loss=name) for name in ("BinaryCrossEntropy", "Quasibinary", "CrossEntropy"))
ERROR = (Part("", "top_k_error@K=1"),)

TABLE_I = PaperTable(
    name="004 Table I",
    title="Top-1 error with one label a row (ResNet-18), in %",
    paper=PAPER,
    place="Table I, section V-A",
    rows=(
        Row("Binary classifier", BINARY),
        Row("Quasibinary classifier", QUASIBINARY),
        Row("Softmax classifier", SOFTMAX),
    ),
    columns=(
        *(Column(name, ERROR, Setting(data=name)) for name in (CIFAR10, CIFAR100, TINY)),
        Column(IMAGENET, ERROR, Setting(data=IMAGENET, run={"model": "resnet18"})),
    ),
    text="""
    4.8  35.4  ×  ×
    4.9  21.9  42.9  25.4
    5.2  22.2  43.3  23.9
    """,
    data=tuple(Data(name, ("one label",)) for name in (CIFAR10, CIFAR100, TINY, IMAGENET)),
    protocol=Protocol(recipe="quasibinary-resnet18", seeds=1, seeds_told=False),
    small=Small(data={CIFAR10: DIGITS, CIFAR100: LETTERS}, run=MLP),
    note=f"× did not converge; {ONE_SEED}",
)
SUPPLEMENT = PaperTable(
    name="004 Table I (supplement)",
    title="Top-1 error with one label a row, three networks, in %",
    paper=PAPER,
    place="Table I of the supplementary material, section II",
    rows=tuple(
        Row(f"{network}, {name}", setting.joined(Setting(run={"model": model})))
        for network, model in {"ResNet18": "resnet18-small", "DenseNet40": "densenet40-40", "VGG16": "vgg16"}.items()
        for name, setting in {"binary": BINARY, "quasibinary": QUASIBINARY, "softmax": SOFTMAX}.items()
    ),
    columns=tuple(Column(name, ERROR, Setting(data=name)) for name in (CIFAR10, CIFAR100, TINY)),
    text="""
    4.8  35.4  ×
    4.9  21.9  42.9
    5.2  22.2  43.3
    8.6  ×  ×
    6.7  32.6  55.0
    6.4  31.2  53.0
    6.1  25.8  ×
    8.3  25.5  48.9
    8.0  25.8  48.7
    """,
    data=TABLE_I.data[:3],
    protocol=TABLE_I.protocol,
    note=f"× did not converge; sigmoids do for VGG16 on CIFAR100; the growth of DenseNet40 is not stated: here 40; {ONE_SEED}",
)
TABLE_II = PaperTable(
    name="004 Table II",
    title="Rows without a label: accuracy on those with one, mean maximum confidence on those without, AU-ROC",
    paper=PAPER,
    place="Table II, section V-B",
    rows=(
        Row("Binary classifiers", BINARY),
        Row("Softmax + uniform", Setting(loss="SoftmaxUniform")),
        Row("Softmax + maximum confidence", Setting(loss="SoftmaxMaxConfidence")),
        Row("Quasibinary classifier", QUASIBINARY),
    ),
    columns=(
        Column("IN accuracy (%)", (Part("accuracy", "top_k_accuracy@K=1"),)),
        Column("OUT MMC (%)", (Part("MMC", "unlabelled_confidence@K=1"),)),
        Column("BOTH AU-ROC", (Part("AU-ROC", "unlabelled_auroc@K=1", percent=False),)),
    ),
    text="""
    77.8  14.7  0.901
    80.7  59.8  0.800
    45.2  7.4  0.764
    80.6  6.9  0.913
    """,
    data=(Data(CIFAR100, ("one label", "groups")),),
    transforms=(("ZeroLabels", {"per_group": 2}),),
    protocol=Protocol(recipe="quasibinary-zero-labels", seeds=1, seeds_told=False),
    small=on_letters(CIFAR100),
    note=f"which classes lose their labels is not published: here they are drawn; {ONE_SEED}",
)
OF_TOP_4 = (Part("F1", "macro_f1@K=4"), Part("ECE", "top_k_calibration_error@K=4"))
TABLE_III = PaperTable(
    name="004 Table III",
    title="Many labels a row: macro F1 of the four most confident classes | their calibration error, in %",
    paper=PAPER,
    place="Table III, section V-C",
    rows=(
        Row("Binary classifier", BINARY),
        Row("Softmax", SOFTMAX),
        Row("Softmax w/ temperature", SOFTMAX.joined(Setting(recalibrated="TemperatureScaling"))),
        Row("Quasibinary classifier", QUASIBINARY),
    ),
    columns=tuple(Column(name, OF_TOP_4, Setting(data=name)) for name in (COCO, NUS_WIDE)),
    text="""
    51.2 | 26.8  40.7 | 23.6
    54.7 | 32.2  43.2 | 25.8
    54.7 | 31.4  43.2 | 24.6
    54.7 | 2.8  43.5 | 3.3
    """,
    data=tuple(Data(name, ("many labels",)) for name in (COCO, NUS_WIDE)),
    protocol=Protocol(recipe="quasibinary-vgg16", seeds=1, seeds_told=False, model=False),
    small=Small(data={COCO: MEADOW}, run={"model": "cnn", "epochs": 6, "batch_size": 64, "learning_rate": 0.03}),
    note=ONE_SEED,
)

TABLES = (TABLE_I, SUPPLEMENT, TABLE_II, TABLE_III)
