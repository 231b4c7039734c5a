"""The tables of Garcin et al. 2023: average-K accuracy of the two-head loss and its rivals."""

from __future__ import annotations

from workbench.claims.printed.small import on_a_long_tail, on_letters
from workbench.claims.table import PaperTable
from workbench.claims.table_spec import Column, Data, Part, Protocol, Row, Setting

PAPER = "Garcin et al. 2023"
CIFAR100, PLANTNET = "CIFAR-100", "Pl@ntNet-300K"
NO_GRIDS = "the paper prints no grids: those here, which a search goes through, are ours, around what it settled on"

BEST = "average_k_accuracy@K={K}"
OVERALL = (Part("", BEST),)
BY_SHOTS = (*OVERALL, *(Part(shot, f"{shot}_{BEST}") for shot in ("few", "medium", "many")))
ALPHAS, BETAS, EPSILONS = (0.1, 0.3, 1.0, 5.0), (0.001, 0.01, 0.1), (0.2, 0.5, 1.0)


def rivals(alpha: float, beta: float, epsilon: float) -> dict[str, Setting]:
    """The losses that are compared, with the knobs of Tables 5.3 and 5.4 of the thesis."""
    return {
        "CE": Setting(loss="CrossEntropy"),
        "TOP-K": Setting(loss="NoisedTopK", knobs={"epsilon": epsilon}, grid={"epsilon": EPSILONS}),
        "AVG-K": Setting(loss="AverageKTwoHead", knobs={"alpha": alpha}, grid={"alpha": ALPHAS}),
        "AN": Setting(loss="AssumeNegative"),
        "EPR": Setting(loss="ExpectedPositive", knobs={"beta": beta}, grid={"beta": BETAS}),
    }


ON_CIFAR = rivals(alpha=0.3, beta=0.01, epsilon=0.2) | {
    "ROLE": Setting(loss="ROLE", knobs={"beta": 0.0, "estimate_rate": 1.0}, grid={"beta": (0.0, 0.01)})
}
ON_PLANTNET = rivals(alpha=5.0, beta=0.001, epsilon=1.0)

TABLE_1 = PaperTable(
    name="001 Table 1",
    title="Average-5 accuracy on CIFAR-100 (DenseNet 40-40), in %",
    paper=PAPER,
    place="Table 1, section 6.2",
    rows=(Row("average-5 accuracy", Setting(K=5)),),
    columns=tuple(Column(name, OVERALL, ON_CIFAR[name]) for name in ("CE", "AVG-K", "ROLE", "AN", "EPR", "TOP-K")),
    text="96.83 ± 0.16  97.35 ± 0.06  96.12 ± 0.11  96.71 ± 0.02  95.88 ± 0.05  96.32 ± 0.05",
    data=(Data(CIFAR100, ("one label",)),),
    protocol=Protocol(recipe="cifar100-densenet", seeds=3, seeds_told=False, monitor=BEST),
    small=on_letters(CIFAR100),
    note=NO_GRIDS,
)

TABLE_2 = PaperTable(
    name="001 Table 2",
    title="Average-K accuracy on Pl@ntNet-300K (ResNet-18), and of few-, medium- and many-shot classes, in %",
    paper=PAPER,
    place="Table 2, section 6.3",
    corner="loss",
    rows=tuple(Row(name, ON_PLANTNET[name]) for name in ("CE", "TOP-K", "AVG-K", "AN", "EPR")),
    columns=tuple(Column(f"K = {K}", BY_SHOTS, Setting(K=K)) for K in (2, 3, 5, 10)),
    text="""
    89.63 ± 0.08 (27.08/65.83/85.97)  92.64 ± 0.17 (38.44/75.55/90.50)  95.11 ± 0.18 (35.39/83.65/94.59)  97.11 ± 0.09 (46.58/91.71/97.30)
    90.48 ± 0.05 (24.98/63.08/87.21)  93.60 ± 0.09 (38.46/73.67/91.85)  95.75 ± 0.07 (49.90/81.39/95.00)  97.26 ± 0.03 (56.49/88.78/97.26)
    90.34 ± 0.06 (23.77/61.81/86.74)  93.81 ± 0.10 (40.39/76.50/92.17)  96.42 ± 0.09 (55.83/88.19/95.90)  98.23 ± 0.03 (75.75/94.14/98.08)
    85.41 ± 0.15 (2.05/30.26/76.64)  90.15 ± 0.17 (7.46/47.20/86.04)  93.88 ± 0.12 (20.31/67.55/92.66)  96.86 ± 0.06 (42.61/85.49/96.87)
    86.30 ± 0.17 (9.01/37.27/77.72)  90.49 ± 0.14 (18.49/51.58/85.19)  93.63 ± 0.04 (31.02/65.85/90.79)  95.99 ± 0.04 (41.44/78.61/95.09)
    """,
    data=(Data(PLANTNET, ("one label", "a long tail")),),
    protocol=Protocol(recipe="plantnet300k-resnet18", seeds=3, seeds_told=False, monitor=BEST),
    small=on_a_long_tail(PLANTNET),
    note=NO_GRIDS,
)

TABLES = (TABLE_1, TABLE_2)
