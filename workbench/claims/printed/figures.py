"""Figures of the papers whose points are numbers: as tables, with what the texts say of them; the rest is drawn alone.

`?` stands where a point is drawn and no number printed. What a text says of a whole figure is in its note.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from workbench.claims.printed import garcin_2022, garcin_2023, garcin_thesis, liao, petersen_2022
from workbench.claims.printed.small import on_a_long_tail, on_letters
from workbench.claims.table import DRAWN, PaperTable
from workbench.claims.table_spec import Column, Data, Part, Place, Protocol, Row, Setting
from workbench.runs.recipes import RECIPES

THESIS, NOISED, TWO_HEADS, SORTS, QUASIBINARY = (
    "Garcin, thesis",
    "Garcin et al. 2022",
    "Garcin et al. 2023",
    "Petersen et al. 2022",
    "Liao et al.",
)
PLANTNET, IMAGENET = garcin_thesis.PLANTNET, garcin_2022.IMAGENET
CIFAR100 = garcin_2022.CIFAR100
CROSS_ENTROPY = Setting(loss="CrossEntropy")


def drawn(rows: int, columns: int) -> str:
    """Cells of which no number is printed."""
    return "\n".join(["  ".join([DRAWN] * columns)] * rows)


# Thesis, chapter 3: networks on Pl@ntNet-300K

# Recipe → the networks of footnote 3 that torchvision has; inception_v3, inception_v4, inception_resnet_v2 and squeezenet are
# not to be had.
NETWORKS = {
    recipe: tuple(setting["model"].split(":")[1] for setting in RECIPES[recipe].grid)
    for recipe in dict.fromkeys(garcin_thesis.SETTINGS_OF.values())
}
LEFT_OUT = ("inception_v3", "inception_v4", "inception_resnet_v2", "squeezenet")
USUAL = "plantnet300k-cross-entropy"


def on_plantnet(recipe: str, network: str) -> Setting:
    """A network of torchvision, trained with the line of Table 3.3 that it stands in."""
    own = {name: RECIPES[recipe].settings[name] for name in ("learning_rate", "epochs", "milestones")}
    return Setting(run={"model": f"torchvision:{network}:IMAGENET1K_V1", **own})


NETWORK_ROWS = (
    *(Row(network, on_plantnet(recipe, network)) for recipe, of in NETWORKS.items() for network in of),
    *(Row(network, None) for network in LEFT_OUT),
)
TOP_1, MACRO_TOP_1 = (Part("", f"{of}top_k_accuracy@K=1") for of in ("", "macro_"))
MACRO_TOP_5, MACRO_AVERAGE_5 = (Part("", f"macro_{sets}_accuracy@K=5") for sets in ("top_k", "average_k"))
ONE_LABEL = ("one label",)
OF_PLANTNET, OF_IMAGENET = Data(PLANTNET, ONE_LABEL), Data(IMAGENET, ONE_LABEL, recipe="imagenet-resnet18")
ONE_SEED = Protocol(recipe=USUAL, seeds=1, seeds_told=False)
THE_SAME_NETWORKS = (
    "on ImageNet the thesis takes networks as they are published; here they are trained on as for Pl@ntNet-300K"
)


def of_networks(number: str, title: str, columns: tuple[Column, ...], data: tuple[Data, ...], note: str) -> PaperTable:
    return PaperTable(
        name=f"000 Fig. {number}",
        title=title,
        paper=THESIS,
        place=f"Figure {number}, section 3.3.3",
        corner="network",
        rows=NETWORK_ROWS,
        columns=columns,
        text=drawn(len(NETWORK_ROWS), len(columns)),
        data=data,
        protocol=ONE_SEED,
        note=note,
    )


def on(name: str, label: str, part: Part) -> Column:
    """A number of the networks on one of the two data sets."""
    return Column(f"{label}, {name}", (part,), Setting(loss="CrossEntropy", data=name))


FIGURE_3_2 = PaperTable(
    name="000 Fig. 3.2",
    title="Share of the images that the rarest 80 % of the species hold, in %",
    paper=THESIS,
    place="Figure 3.2, section 3.2.3",
    rows=(Row("Pl@ntNet database", None), Row(PLANTNET, None)),
    columns=(Column("rarest 80 %", (Part("", "share"),)),),
    text=f"{DRAWN}\n11",
    not_run="the counts of the database are not published; `wb.figures.lorenz(dataset.class_counts)` draws the curve of a dataset",
    note="two Lorenz curves, of species with at least 4 images; the text says 11 % of one curve, and that both show the "
    "same imbalance",
)
FIGURE_3_5 = of_networks(
    "3.5",
    "Top-1 accuracy on Pl@ntNet-300K, of all rows and mean over classes, in %",
    (Column("top-1", (TOP_1,), CROSS_ENTROPY), Column("macro top-1", (MACRO_TOP_1,), CROSS_ENTROPY)),
    (OF_PLANTNET,),
    "macro top-1 does not exceed 40 %",
)
FIGURE_3_6 = of_networks(
    "3.6",
    "Macro average-5 accuracy of the same networks on two data sets, in %",
    tuple(on(name, "macro average-5", MACRO_AVERAGE_5) for name in (PLANTNET, IMAGENET)),
    (OF_PLANTNET, OF_IMAGENET),
    f"some networks reach 97 % on ImageNet, none exceeds 80 % on Pl@ntNet-300K; {THE_SAME_NETWORKS}",
)
FIGURE_3_7 = PaperTable(
    name="000 Fig. 3.7",
    title="Error of sets of 4.1 species on average, on 83 images of Crotalaria and Lupinus, in %",
    paper=THESIS,
    place="Figure 3.7, section 3.3.3",
    rows=(Row("botanist", None), Row("best network", None)),
    columns=(Column("error", (Part("", "error"),)),),
    text="20.5\n33",
    not_run="which images were drawn and what the botanist said is not published; claim 25 tries the same with the votes of "
    "CIFAR-10H",
    note="the text says that the gap is from 0.2 to 0.33; the other networks are drawn alone",
)
FIGURE_3_8A = of_networks(
    "3.8(a)",
    "Macro top-1 accuracy of the same networks on two data sets, in %",
    tuple(on(name, "macro top-1", MACRO_TOP_1) for name in (IMAGENET, PLANTNET)),
    (OF_PLANTNET, OF_IMAGENET),
    f"up to 80 % on ImageNet, at most 40 % on Pl@ntNet-300K; {THE_SAME_NETWORKS}",
)
FIGURE_3_8B = of_networks(
    "3.8(b)",
    "Macro average-5 and macro top-5 accuracy on Pl@ntNet-300K, in %",
    (
        Column("macro average-5", (MACRO_AVERAGE_5,), CROSS_ENTROPY),
        Column("macro top-5", (MACRO_TOP_5,), CROSS_ENTROPY),
    ),
    (OF_PLANTNET,),
    "",
)
FIGURE_3_9 = of_networks(
    "3.9",
    "Top-5 accuracy on Pl@ntNet-300K with cross-entropy and with the smooth top-5 hinge, τ = 1, in %",
    tuple(
        Column(name, (Part("", "top_k_accuracy@K=5"),), setting)
        for name, setting in {
            "CE": CROSS_ENTROPY,
            "Smoothed Hinge": Setting(loss="SmoothTopKHinge", knobs={"temperature": 1.0}, K=5),
        }.items()
    ),
    (OF_PLANTNET,),
    "the two are close to each other",
)

# Chapters 4 and 5: sweeps on CIFAR-100

OF_CIFAR = (Data(CIFAR100, ONE_LABEL),)
EPSILONS = ("0.0", "1e-4", "1e-3", "1e-2", "1e-1", "1.0", "10.0", "100.0")
FIGURE_4_2 = PaperTable(
    name="000 Fig. 4.2",
    title="Non-zero coordinates of the gradient of a row in the first epoch on CIFAR-100 (DenseNet 40-40) against ε",
    paper=THESIS,
    place="Figure 4.2, section 4.4.1",
    corner="ε",
    rows=(Row("non-zero of 100", Setting(K=5)),),
    columns=tuple(
        Column(
            text,
            (Part("", "history.nonzero_gradients", percent=False),),
            Setting(loss="NoisedTopK", knobs={"epsilon": float(text), "n_samples": 3}),
        )
        for text in EPSILONS
    ),
    text=drawn(1, len(EPSILONS) - 1) + "  4",
    data=OF_CIFAR,
    protocol=Protocol(recipe="cifar100-gradients", seeds=1, seeds_told=False),
    small=on_letters(CIFAR100, epochs=1),
    note="4 of 100 on average 'even when ε is large', which is put at the largest ε here; the values of ε are those of Table 4.2",
)
LOSSES_IN_TIME = {
    "CE": CROSS_ENTROPY,
    "Noised bal., 3 draws": Setting(loss="NoisedTopK", knobs={"epsilon": 0.2, "n_samples": 3}),
    "Smoothed Hinge": Setting(loss="SmoothTopKHinge", knobs={"temperature": 1.0}),
}
FIGURE_4_3 = PaperTable(
    name="000 Fig. 4.3",
    title="Seconds of an epoch on CIFAR-100 (DenseNet 40-40) against K",
    paper=THESIS,
    place="Figure 4.3, section 4.4.3",
    corner="loss",
    rows=tuple(Row(name, setting.joined(Setting(run={"epochs": 2}))) for name, setting in LOSSES_IN_TIME.items()),
    columns=tuple(Column(f"K = {K}", (Part("", "history.seconds", percent=False),), Setting(K=K)) for K in (5, 10)),
    text=f"65  {DRAWN}\n68  60\n81  90",
    data=OF_CIFAR,
    protocol=Protocol(recipe="cifar100-label-noise", seeds=1, seeds_told=False),
    small=on_letters(CIFAR100, epochs=2),
    note="the time of the second epoch, on this machine; that three draws take 68 s at K = 5 and 60 s at K = 10 is as printed",
)
RATIO = Setting(loss="AverageKTwoHead", knobs={"alpha": 5.0})
BY_LOSS = {"CE": CROSS_ENTROPY, "AVG-K": RATIO}
SIZES = range(1, 11)
FIGURE_5_4A = PaperTable(
    name="000 Fig. 5.4(a)",
    title="Share of the average-5 sets of each size on Pl@ntNet-300K (ResNet-18), in %",
    paper=THESIS,
    place="Figure 5.4(a), section 5.6.3",
    corner="loss",
    rows=tuple(Row(name, setting.joined(Setting(K=5))) for name, setting in BY_LOSS.items()),
    columns=tuple(Column(f"size {size}", (Part("", f"average_k_share_of_size_{size}@K=5"),)) for size in SIZES),
    text=drawn(2, len(SIZES)),
    data=garcin_2023.TABLE_2.data,
    protocol=Protocol(
        recipe="plantnet300k-resnet18", seeds=1, seeds_told=False, monitor=garcin_2023.BEST, split="test"
    ),
    small=on_a_long_tail(PLANTNET),
    note="cross-entropy has many sets of size one, AVG-K fewer of size one and more of two, three and four",
)
FIGURE_5_4B = FIGURE_5_4A.renamed(
    "000 Fig. 5.4(b)",
    title="Mean size of the average-5 sets of few-, medium- and many-shot rows of Pl@ntNet-300K (ResNet-18)",
    place="Figure 5.4(b), section 5.6.3",
    rows=FIGURE_5_4A.rows[1:],
    columns=tuple(
        Column(shot, (Part("", f"{shot}_average_k_size@K=5", percent=False),)) for shot in ("few", "medium", "many")
    ),
    text=drawn(1, 3),
    note="the figure draws histograms; rows of many-shot classes have small sets, those of few-shot classes up to about 50 classes",
)
OF_AVERAGE_5 = (Part("", "average_k_accuracy@K=5"),)
judged_on_val = partial(Protocol, monitor=garcin_2023.BEST, split="val", seeds=1, seeds_told=False)
ALPHAS = ("1e-5", "1e-4", "1e-3", "1e-2", "1e-1", "1.0", "10.0", "100.0")
FIGURE_5_5 = PaperTable(
    name="000 Fig. 5.5",
    title="Best validation average-5 accuracy on CIFAR-100 (DenseNet 40-40) against α, in %",
    paper=THESIS,
    place="Figure 5.5, section 5.9.1",
    corner="α",
    rows=(Row("average-5 accuracy", Setting(K=5)),),
    columns=tuple(
        Column(text, OF_AVERAGE_5, Setting(loss="AverageKTwoHead", knobs={"alpha": float(text)})) for text in ALPHAS
    ),
    text=drawn(1, len(ALPHAS)),
    data=OF_CIFAR,
    protocol=judged_on_val(recipe="cifar100-alpha"),
    small=on_letters(CIFAR100),
    note="stable from about 1e-2 to 1e1, and drops sharply above; the values of α are those of the axis",
)
BATCHES = (16, 32, 64, 128, 256, 512, 1024)
FIGURE_5_6 = PaperTable(
    name="000 Fig. 5.6",
    title="Best validation average-5 accuracy on CIFAR-100 (DenseNet 40-40) against the batch size, in %",
    paper=THESIS,
    place="Figure 5.6, section 5.9.1",
    corner="loss",
    rows=(
        Row("CE", CROSS_ENTROPY.joined(Setting(K=5))),
        Row("AVG-K", Setting(loss="AverageKTwoHead", knobs={"alpha": 0.3}, K=5)),
    ),
    columns=tuple(
        Column(str(n), OF_AVERAGE_5, Setting(run={"batch_size": n, "learning_rate": 0.1 * n / 64})) for n in BATCHES
    ),
    text=drawn(2, len(BATCHES)),
    data=OF_CIFAR,
    protocol=judged_on_val(recipe="cifar100-batch-size"),
    small=on_letters(CIFAR100),
    note="the learning rate is in proportion to the batch size; the sizes are ours, for no axis is printed. Both losses are worse "
    "with small batches, and AVG-K stands large ones better",
)

# Garcin et al. 2023, appendix E, which is not in the published text: three more networks

MORE_NETWORKS = {"ResNet34": "resnet34", "DenseNet169": "densenet169", "ViT-16": "vit_b_16"}
APPENDIX_E = garcin_2023.TABLE_2.renamed(
    "001 Appendix E",
    title="Average-K accuracy on Pl@ntNet-300K of three more networks, in %",
    place="Appendix E",
    rows=tuple(
        Row(f"{name}, {loss}", setting.joined(Setting(run={"model": f"torchvision:{network}:IMAGENET1K_V1"})))
        for name, network in MORE_NETWORKS.items()
        for loss, setting in garcin_2023.ON_PLANTNET.items()
        if loss in ("CE", "AVG-K")
    ),
    columns=tuple(Column(f"K = {K}", garcin_2023.OVERALL, Setting(K=K)) for K in (2, 3, 5, 10)),
    text=drawn(2 * len(MORE_NETWORKS), 4),
    small=None,
    note="the appendix is not in the published text; networks are those that section 6.3 names, knobs those of Table 5.4 of the "
    "thesis",
)

# Petersen et al. 2022


def weights_of_ranks(table: PaperTable) -> Mapping[Place, float]:
    """The weight of each rank for P_K, as the loss computes it."""
    import torch

    from workbench.losses.ranked import rank_weights

    weights = rank_weights(torch.tensor(FIRST_OR_SECOND)).tolist()
    cells = zip(table.columns, FIRST_OR_SECOND, weights, strict=True)
    return {
        (row, column.label, ""): value
        for column, *values in cells
        for row, value in zip(("P_K", "weight of the rank"), values, strict=True)
    }


FIRST_OR_SECOND = (0.5, 0.5, 0.0, 0.0, 0.0)
FIGURE_1 = PaperTable(
    name="003 Fig. 1",
    title="From P_K to the weights of ranks: half top-1, half top-2",
    paper=SORTS,
    place="Figure 1, section 3",
    rows=(Row("P_K"), Row("weight of the rank")),
    columns=tuple(Column(f"{k}", (Part("", "weight"),)) for k in range(1, 6)),
    text="0.5  0.5  0  0  0\n1  0.5  0  0  0",
    computed=weights_of_ranks,
    note="a cumulative sum from the right; nothing is trained",
)


def sinkhorn(top_5: float) -> Setting:
    """Head of a published network, by SinkhornSort, with this weight of top-5."""
    return petersen_2022.by("SinkhornSort", petersen_2022.HEADS_AT, petersen_2022.ends(1 - top_5))


TOP_1_AND_5 = petersen_2022.top(1, 5)
ON_IMAGENET = Setting(knobs=petersen_2022.OF_1K)
FIGURE_2_LEFT = PaperTable(
    name="003 Fig. 2 (left)",
    title="Top-1 | top-5 accuracy on ImageNet against the weight of top-5, heads of ResNeXt-101 32x48d WSL, SinkhornSort, in %",
    paper=SORTS,
    place="Figure 2, section 5.4",
    corner="weight of top-5",
    rows=(Row("SinkhornSort", ON_IMAGENET),),
    columns=tuple(Column(f"{share:g}", TOP_1_AND_5, sinkhorn(share)) for share in (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)),
    text=f"{DRAWN}  {DRAWN}  86.29 | 97.971  86.24 | 97.989  86.18 | 97.987  85.65 | 97.991",
    data=(petersen_2022.HEADS_1K,),
    protocol=petersen_2022.HEAD,
    small=petersen_2022.TABLE_2.small,
    note=f"the numbers are those of Tables 2 and 3; the figure averages over 5 runs; {petersen_2022.HEADS}",
)
FIGURE_2_RIGHT = FIGURE_2_LEFT.renamed(
    "003 Fig. 2 (right)",
    title="Top-1 | top-5 accuracy on ImageNet against the number m of ranked classes, heads of ResNeXt-101 32x48d WSL, in %",
    place="Figure 2, section 5.5",
    corner="m",
    rows=(Row("SinkhornSort", sinkhorn(0.75)),),
    columns=tuple(Column(str(m), TOP_1_AND_5, Setting(knobs={"m": m})) for m in (10, 16, 20, 30, 40)),
    text=f"{DRAWN}  86.24 | 97.989  {DRAWN}  {DRAWN}  {DRAWN}",
    note=f"weight of top-5 is 0.75; from 10 to 40 'only a moderate impact'; m = 16 is in Table 3; {petersen_2022.HEADS}",
)
MODELS = ("32x8d", "32x16d", "32x32d", "32x48d")
HEADS_OF = {size: f"ImageNet-1K by ResNeXt-101 {size} WSL" for size in MODELS}
FIGURE_3 = PaperTable(
    name="003 Fig. 3",
    title="Top-1 | top-5 accuracy on ImageNet of four sizes of ResNeXt-101 WSL, before and after, in %",
    paper=SORTS,
    place="Figure 3, section 5.3",
    corner="network",
    rows=tuple(Row(size, Setting(data=HEADS_OF[size])) for size in MODELS),
    columns=(
        Column("Softmax", TOP_1_AND_5, petersen_2022.SOFTMAX),
        Column(
            "Top-k",
            TOP_1_AND_5,
            petersen_2022.by("SinkhornSort", petersen_2022.HEADS_AT, petersen_2022.ALL_5).joined(ON_IMAGENET),
        ),
    ),
    text=f"{drawn(3, 2)}\n86.06 | 97.795  86.22 | 97.99",
    data=tuple(Data(name, ONE_LABEL) for name in HEADS_OF.values()),
    protocol=petersen_2022.HEAD,
    note="arrows from the one to the other; the numbers are those of Tables 2 and 5, the sort is not stated: here SinkhornSort with "
    f"[.2, .2, .2, .2, .2]; {petersen_2022.HEADS}",
)


def ranks_of_cascade(table: PaperTable) -> Mapping[Place, float]:
    """Minimum ranks after one splitter cascade."""
    from workbench.operators.networks import minimum_ranks

    ranks = minimum_ranks(len(table.columns))
    return {("minimum rank", column.label, ""): float(rank) for column, rank in zip(table.columns, ranks, strict=True)}


RANK = (Part("", "rank", percent=False),)
FIGURE_4 = PaperTable(
    name="003 Fig. 4",
    title="Minimum ranks of 8 wires after a splitter cascade",
    paper=SORTS,
    place="Figure 4, appendix B",
    corner="wire",
    rows=(Row("minimum rank"),),
    columns=tuple(Column(str(wire), RANK) for wire in range(8)),
    text="0  1  1  3  1  3  3  7",
    computed=ranks_of_cascade,
    note="printed as 2^b − 1, where b counts the bits that are set in the number of the wire",
)
TOP, WIRES, CASCADES = 5, 16, 7


def ranks_of_network(table: PaperTable) -> Mapping[Place, float]:
    """Minimum ranks after each cascade of the network that selects 5 of 16, of wires that are not discarded."""
    from workbench.operators.networks import selecting_cascades

    return {
        (str(wire), f"cascade {at}", ""): float(rank)
        for at, (_, ranks) in enumerate(selecting_cascades(WIRES, TOP), 1)
        for wire, rank in enumerate(ranks)
        if rank < TOP
    }


FIGURE_5 = PaperTable(
    name="003 Fig. 5",
    title="Minimum ranks of 16 wires after each splitter cascade of the network that selects 5, until a wire is discarded",
    paper=SORTS,
    place="Figure 5, appendix B",
    corner="wire",
    rows=tuple(Row(str(wire)) for wire in range(WIRES)),
    columns=tuple(Column(f"cascade {at}", RANK) for at in range(1, CASCADES + 1)),
    text="\n".join(f"{rank}  {drawn(1, CASCADES - 1)}" for rank in "0113133—133—3———"),
    computed=ranks_of_network,
    note="— is a wire that is discarded, for 5 values are known to be larger. The text gives the rule 2^b − 1 of the first "
    "cascade, and the network ends when each of the ranks 0 to 4 has one wire",
)

# Liao et al.

NORMALISER = (Part("mean", "history.normaliser_mean", percent=False), Part("variance", "history.normaliser_variance", percent=False))  # fmt: skip
FIGURE_OF_C = PaperTable(
    name="004 Fig. 2",
    title="Mean | variance of the normaliser on CIFAR100 in the last epoch",
    paper=QUASIBINARY,
    place="Figure 2, section IV",
    rows=(Row("Quasibinary classifier", liao.QUASIBINARY), Row("Softmax classifier", liao.SOFTMAX)),
    columns=(Column(liao.CIFAR100, NORMALISER),),
    text=drawn(2, 1),
    data=(Data(liao.CIFAR100, ONE_LABEL),),
    protocol=liao.TABLE_I.protocol,
    small=on_letters(liao.CIFAR100),
    note="those of softmax are 'up to 8x larger', with spikes from 1.6e9 to 1e2; claim 20 tries it, and "
    "`wb.figures.normalisers` draws the course",
)
FIGURE_OF_RELIABILITY = liao.TABLE_III.renamed(
    "004 Fig. 3",
    title="Calibration error of the four most confident classes on MS-COCO, ten bins, in %",
    place="Figure 3, section V-C",
    columns=(Column(liao.COCO, liao.OF_TOP_4[1:], Setting(data=liao.COCO)),),
    text="26.8\n32.2\n31.4\n2.8",
    data=liao.TABLE_III.data[:1],
    note="the numbers are those of Table III; the figure draws the bins, as `wb.figures.reliability(table, bins=10)` does",
)

TABLES = (
    *(FIGURE_3_2, FIGURE_3_5, FIGURE_3_6, FIGURE_3_7, FIGURE_3_8A, FIGURE_3_8B, FIGURE_3_9),
    *(FIGURE_4_2, FIGURE_4_3, FIGURE_5_4A, FIGURE_5_4B, FIGURE_5_5, FIGURE_5_6, APPENDIX_E),
    *(FIGURE_1, FIGURE_2_LEFT, FIGURE_2_RIGHT, FIGURE_3, FIGURE_4, FIGURE_5, FIGURE_OF_C, FIGURE_OF_RELIABILITY),
)
