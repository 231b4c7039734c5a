"""The tables of Garcin's thesis: those of the two papers again, and its own on Pl@ntNet-300K and on settings."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.claims.printed import garcin_2022, garcin_2023
from workbench.claims.printed.small import on_a_long_tail
from workbench.claims.table import PaperTable
from workbench.claims.table_spec import Column, Data, Part, Place, Protocol, Row, Setting

PAPER = "Garcin, thesis"
PLANTNET = "Pl@ntNet-300K"

TABLE_2_1 = PaperTable(
    name="000 Table 2.1",
    title="Four formulations of set-valued classification",
    paper=PAPER,
    place="Table 2.1, section 2.2.1",
    corner="name",
    rows=tuple(Row(name, None) for name in ("Point-wise size", "Average size", "Point-wise error", "Average error")),
    columns=tuple(Column(name, ()) for name in ("minimization objective", "constraint", "references")),
    text="""
    R(Γ)  S(Γ, x) ≤ K  [LHS15; LHS16; LHS17]
    R(Γ)  S(Γ) ≤ K  [DH17]
    S(Γ)  R(Γ, x) ≤ ϵ  [FB+21; Lei14; LW14; RSC20]
    S(Γ)  R(Γ) ≤ ϵ  [SLW19]
    """,
    not_run="it holds definitions and no results: `formulation` of a rule says which of them it estimates",
    note="S is the size of a set, R the probability that it misses the label, both at x or on average",
)
TABLE_3_1 = PaperTable(
    name="000 Table 3.1",
    title="Accuracy on Pl@ntNet-300K (ResNet-50) of classes by their number of training images",
    paper=PAPER,
    place="Table 3.1, section 3.3.3",
    corner="number of images",
    rows=tuple(
        Row(bin, Setting(loss="CrossEntropy")) for bin in ("0 − 10", "10 − 50", "50 − 500", "500 − 2000", "> 2000")
    ),
    columns=(Column("mean bin accuracy", (Part("", "count_bin_{row}_accuracy@K=1", percent=False),)),),
    text="""
    0.09
    0.35
    0.59
    0.79
    0.93
    """,
    data=(Data(PLANTNET, ("one label", "a long tail")),),
    protocol=Protocol(recipe="plantnet300k-cross-entropy", seeds=1, seeds_told=False),
    small=on_a_long_tail(PLANTNET),
    note="to which bin a limit belongs is not stated; here to the upper one. The thesis tells of no second seed",
)
DATASETS = (
    *("Plant disease dataset", "CUB200", "Oxford flower dataset", "Aircraft dataset", "Compcars", "Census cars"),
    *("ImageNet", "iNat2017", PLANTNET),
)
PROPERTIES = (
    *("human-in-the-loop labelling", "long-tailed distribution", "intra-class variability", "focused domain"),
    "ambiguity-preserving sampling",
)
TABLE_3_2 = PaperTable(
    name="000 Table 3.2",
    title="What nine datasets are like",
    paper=PAPER,
    place="Table 3.2, section 3.4",
    corner="dataset",
    rows=tuple(Row(name, None) for name in DATASETS),
    columns=tuple(Column(name, (Part("", "fact"),)) for name in PROPERTIES),
    text="""
    ✗  ✗  ✗  ✓  ✗
    ✗  ✗  ✗  ✓  ✗
    ✗  ✗  ✓  ✓  ✗
    ✓  ✗  ✗  ✓  ✗
    ✗  ✗  ✗  ✓  ✓
    ✗  ✗  ✗  ✓  ✓
    ✗  ✗  ✓  ✗  ✗
    ✓  ✓  ✓  ✗  ✗
    ✓  ✓  ✓  ✓  ✓
    """,
    not_run="it says how people made these datasets, which no run can tell",
)

# A line of Table 3.3 → the recipe that has its settings.
SETTINGS_OF = {
    "mobilenet_v2, mobilenet_v3_large, resnets, densenets, inceptions, wide resnets, shufflenet": "plantnet300k-cross-entropy",
    "vgg11, alexnet, mobilenet_v3_small, squeezenet": "plantnet300k-cross-entropy-slow",
    "efficientnet b0, b1, b2, b3, b4": "plantnet300k-efficientnet",
    "vit": "plantnet300k-vit",
}


def settings_of_recipes(table: PaperTable) -> Mapping[Place, float]:
    """Learning rate, epochs and decays of the recipes of the workbench."""
    from workbench.runs.recipes import RECIPES

    found: dict[Place, float] = {}
    for row in table.rows:
        settings = RECIPES[SETTINGS_OF[row.label]].settings
        decays = [round(drop * settings["epochs"]) for drop in settings["milestones"]]
        values = [settings["learning_rate"], settings["epochs"], *decays]
        for column, value in zip(table.columns, values, strict=False):
            found[row.label, column.label, ""] = value
    return found


SETTING = (Part("", "setting"),)
TABLE_3_3 = PaperTable(
    name="000 Table 3.3",
    title="Learning rate, number of epochs and its schedule of the networks on Pl@ntNet-300K",
    paper=PAPER,
    place="Table 3.3, section 3.8.2",
    corner="models",
    rows=tuple(Row(name) for name in SETTINGS_OF),
    columns=tuple(
        Column(name, SETTING) for name in ("initial learning rate", "number of epochs", "first decay", "second decay")
    ),
    text="""
    0.01  30  20  25
    0.001  30  20  25
    0.01  20  10  15
    5e-4  20  15  —
    """,
    computed=settings_of_recipes,
    note="theirs beside the recipes of the workbench; nothing is trained",
)

TABLE_4_1 = garcin_2022.TABLE_1.renamed(
    "000 Table 4.1",
    paper=PAPER,
    place="Table 4.1, section 4.3",
    columns=(Column("parameters", ()),),
    text="\n".join(["K", "_", "m", "γ", "K", "K", "K", "K, τ", "K, ε, M", "K, ε, M, m"]),
    note="its expressions are those of 002 Table 1, with τ_K for top_K and M draws for B",
)


def again(table: PaperTable, number: str, section: str) -> PaperTable:
    """A table of a paper that the thesis prints again."""
    said = table.note.replace("the paper", "the thesis")
    return table.renamed(f"000 Table {number}", paper=PAPER, place=f"Table {number}, section {section}", note=said)


def transposed(table: PaperTable) -> PaperTable:
    """Losses down and K across, where the paper has it the other way round."""
    columns = tuple(Column(f"K = {row.label}", table.columns[0].parts, row.setting or Setting()) for row in table.rows)
    rows = tuple(Row(column.label, column.setting) for column in table.columns)
    lines = ["  ".join(table.cells[row.label, column.label] for row in table.rows) for column in table.columns]
    return table.renamed(table.name, corner="loss", rows=rows, columns=columns, text="\n".join(lines))


def hyperparameters(table: PaperTable) -> Mapping[Place, float]:
    """The knobs of the losses that the recipe of the workbench compares."""
    from workbench.runs.recipes import RECIPES

    recipe, losses = OF_RECIPE[table.name]
    knobs = {type(one["loss"]).__name__: one["loss"].settings() for one in RECIPES[recipe].compared}
    return {
        (row.label, symbol, ""): knobs[losses[row.label].loss][knob]
        for row in table.rows
        for symbol, knob in SYMBOLS.items()
        if (losses[row.label].loss, symbol) in PRINTED_KNOBS
    }


SYMBOLS = {"α": "alpha", "β": "beta", "ε": "epsilon", "λ": "beta", "learning rate of Θ (×)": "estimate_rate"}
PRINTED_KNOBS = {
    *(("AverageKTwoHead", "α"), ("ExpectedPositive", "β"), ("NoisedTopK", "ε")),
    *(("ROLE", "λ"), ("ROLE", "learning rate of Θ (×)")),
}
OF_RECIPE = {
    "000 Table 5.3": ("cifar100-densenet", garcin_2023.ON_CIFAR),
    "000 Table 5.4": ("plantnet300k-resnet18", garcin_2023.ON_PLANTNET),
}
TABLE_5_3 = PaperTable(
    name="000 Table 5.3",
    title="The knobs that were settled on for CIFAR-100",
    paper=PAPER,
    place="Table 5.3, section 5.9.2",
    corner="loss",
    rows=tuple(Row(name) for name in ("CE", "AVG-K", "AN", "EPR", "TOP-K", "ROLE")),
    columns=tuple(Column(symbol, SETTING) for symbol in SYMBOLS),
    text="""
    —  —  —  —  —
    0.3  —  —  —  —
    —  —  —  —  —
    —  0.01  —  —  —
    —  —  0.2  —  —
    —  —  —  0.0  1.0
    """,
    computed=hyperparameters,
    note="theirs beside the recipe of the workbench, one column for each symbol; nothing is trained",
)
TABLE_5_4 = TABLE_5_3.renamed(
    "000 Table 5.4",
    title="The knobs that were settled on for Pl@ntNet-300K",
    place="Table 5.4, section 5.9.2",
    rows=tuple(Row(name) for name in ("CE", "AVG-K", "AN", "EPR", "TOP-K")),
    columns=tuple(Column(symbol, SETTING) for symbol in ("α", "β", "ε")),
    text="""
    —  —  —
    5.0  —  —
    —  —  —
    —  0.001  —
    —  —  1.0
    """,
)

TABLES = (
    *(TABLE_2_1, TABLE_3_1, TABLE_3_2, TABLE_3_3, TABLE_4_1),
    again(garcin_2022.TABLE_2, "4.2", "4.4.1"),
    again(garcin_2022.TABLE_3, "4.3", "4.4.2"),
    again(garcin_2022.TABLE_4, "4.4", "4.4.4"),
    again(transposed(garcin_2022.TABLE_5), "4.5", "4.4.5.1"),
    again(transposed(garcin_2022.TABLE_6), "4.6", "4.4.5.2"),
    again(garcin_2022.TABLE_7, "4.7", "4.6.4, page 62"),
    again(garcin_2022.TABLE_8, "4.8", "4.6.4, page 62"),
    again(garcin_2022.TABLE_9, "4.9", "4.6.4"),
    again(garcin_2023.TABLE_1, "5.1", "5.6.2"),
    again(garcin_2023.TABLE_2, "5.2", "5.6.3"),
    *(TABLE_5_3, TABLE_5_4),
)
