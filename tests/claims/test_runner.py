"""From a table to its runs: composed and checked before anything is trained, trained once, laid beside what is printed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from workbench.claims import TABLES, runner
from workbench.claims.reproduction import Reproduction, with_ours
from workbench.claims.runner import over_seeds, planned
from workbench.datasets import Dataset, LabelNoise, LongTail, load_dataset
from workbench.losses import Loss, NoisedTopK, NoisedTopKImbalanced
from workbench.runs.recipes import RECIPES

pytestmark = pytest.mark.usefixtures("one_thread")
TRAINED = [name for name, table in TABLES.items() if table.protocol is not None]
SMALL = [name for name in TRAINED if TABLES[name].small is not None]


@pytest.fixture(scope="module")
def stub() -> Dataset:
    """Photographs with all that a table may need: groups of classes, and some of few, of medium and of many shots."""
    counts = np.full(30, 26)
    counts[0], counts[1:4] = 130, 10
    labels = np.repeat(np.arange(30), counts)
    images = np.random.default_rng(0).integers(0, 256, (len(labels), 8, 8, 3), dtype=np.uint8)
    return Dataset.from_arrays(images, labels, groups=[f"group {j // 5}" for j in range(30)], name="photographs")


@pytest.fixture(scope="module")
def many_labels() -> Dataset:
    images = np.random.default_rng(0).integers(0, 256, (60, 8, 8, 3), dtype=np.uint8)
    labels = np.random.default_rng(1).random((60, 8)) < 0.4
    return Dataset.from_arrays(images, labels | np.eye(8, dtype=bool)[np.arange(60) % 8], name="scenes")


@pytest.fixture(scope="module")
def letters() -> Dataset:
    return load_dataset("letters")


@pytest.mark.parametrize("name", SMALL)
def test_every_table_composes_runs_at_its_reduced_scale(name):
    table = TABLES[name]
    tries = planned(table, small=True)
    assert table.small is not None
    assert {(one.row.label, one.column.label) for one in tries} <= set(table.cells)
    for one in tries:
        assert len(one.runs) == table.small.seeds == len({run.seed for run in one.runs})
        assert one.runs[0].epochs == table.small.run["epochs"] < 30
        watched = {one.monitor(part) for part in one.column.parts} - {None}
        assert watched <= {monitor.name for monitor in one.runs[0].monitors}


@pytest.mark.parametrize("name", TRAINED)
def test_every_table_composes_runs_at_the_scale_of_the_paper(name, stub, many_labels):
    table = TABLES[name]
    data = {one.name: many_labels if "many labels" in one.needs else stub for one in table.data}
    tries = planned(table, data, model=None if table.protocol_of.model else "linear")
    assert {(one.row.label, one.column.label) for one in tries} == {
        (row.label, column.label) for row, column, _ in table.settings()
    }
    for one in tries:
        which = next(each for each in table.data if one.setting.data in ("", each.name))
        recipe = RECIPES[table.recipe_of(which)]
        own = {**recipe.settings, **one.setting.run}
        for run in one.runs:
            assert {field: getattr(run, field) for field in ("epochs", "batch_size", "learning_rate")} == {
                field: own[field] for field in ("epochs", "batch_size", "learning_rate")
            }
        assert len(one.runs) == (which.seeds or table.protocol_of.seeds)


@pytest.mark.parametrize("name", TRAINED)
def test_the_losses_of_a_table_are_those_that_its_recipe_compares(name):
    table = TABLES[name]
    for _, _, setting in table.settings():
        data = next(each for each in table.data if setting.data in ("", each.name))
        recipe = RECIPES[table.recipe_of(data)]
        (loss,) = runner._losses(setting, tune=False)
        known = [one["loss"] for one in (*recipe.compared, *recipe.grid) if "loss" in one]
        assert but_for_K(loss) in [but_for_K(each) for each in known], (setting, recipe)


def but_for_K(loss: Loss) -> tuple[str, dict[str, object]]:
    """A loss by its name and its knobs, at any K; of a distribution what rounding leaves of it."""
    knobs = {name: value for name, value in loss.settings().items() if name != "K"}
    return type(loss).__name__, knobs | {"p_k": [round(p, 9) for p in knobs.get("p_k", ())]}


def test_each_number_may_be_of_the_epoch_where_it_is_best(stub):
    (one, *_) = planned(TABLES["003 Table 1"], stub, seeds=1)
    assert [one.monitor(part) for part in one.column.parts] == ["top_k_accuracy@K=1", "top_k_accuracy@K=5"]
    assert one.runs[0].monitor == ("top_k_accuracy@K=1", "top_k_accuracy@K=5")


def test_images_are_augmented_as_the_recipe_says_and_labels_mixed_up_as_the_row_says(stub):
    (one, *_) = planned(TABLES["003 Table 1"], stub, seeds=1)
    assert one.runs[0].transforms == RECIPES["cifar100-resnet18-adam"].settings["transforms"]
    noisy = [one.runs[0].transforms for one in planned(TABLES["002 Table 4"], stub, seeds=1)]
    assert noisy[-1] == (LabelNoise(0.4), *RECIPES["cifar100-label-noise"].settings["transforms"])


def test_a_run_serves_every_cell_that_differs_in_the_kept_epoch_alone(stub):
    tries = {(one.row.label, one.column.label): one for one in planned(TABLES["001 Table 2"], stub, seeds=1)}
    (two,), (ten,) = (tries["CE", f"K = {K}"].runs for K in (2, 10))
    assert two is ten
    assert two.monitor == tuple(f"average_k_accuracy@K={K}" for K in (2, 3, 5, 10))
    (noised,) = tries["TOP-K", "K = 3"].runs
    assert noised.loss == NoisedTopK(K=3, epsilon=1.0)
    assert noised.monitor in ("average_k_accuracy@K=3", ("average_k_accuracy@K=3",))


def test_a_search_tries_every_combination_of_the_grid_of_a_loss(stub):
    table = TABLES["002 Table 5"]
    tries = [one for one in planned(table, stub, seeds=1, tune=True) if one.row.label == "3"]
    imbalanced = [one.runs[0].loss for one in tries if isinstance(one.runs[0].loss, NoisedTopKImbalanced)]
    assert len(imbalanced) == len({repr(loss) for loss in imbalanced}) == 12  # three ε, four margins: appendix E
    assert {loss.K for loss in imbalanced} == {3}


def test_each_loss_of_table_9_has_its_own_learning_rate_and_weight_decay(stub):
    runs = [one.runs[0] for one in planned(TABLES["002 Table 9"], stub, seeds=1)][:3]
    assert [(run.learning_rate, run.weight_decay) for run in runs] == [(0.1, 1e-4), (1.0, 2.5e-5), (0.1, 1.5e-4)]


def test_data_that_lack_what_a_table_needs_say_which_and_nothing_is_trained(letters, stub, many_labels, monkeypatch):
    monkeypatch.setattr(runner, "train_all", lambda *_, **__: pytest.fail("something was trained"))
    for name, data, lacking in (
        ("001 Table 2", letters, r"which lacks: counts of training rows that make few-shot \(< 20\)"),
        ("002 Table 4", letters, "which lacks: groups of classes"),
        ("002 Table 5", many_labels, "which lacks: one label a row; counts of training rows"),
        ("004 Table III", {"MS-COCO": letters}, "004 Table III cannot be run on letters, which lacks: many labels"),
        ("004 Table II", letters, "which lacks: groups of classes"),
        ("002 Table 8", load_dataset("digits").transformed(LongTail(20)), "digits.* has 10 classes; it needs more"),
        ("001 Table 2", None, r"001 Table 2 is about Pl@ntNet-300K: give data=PATH .*, or small=True \(--small\)"),
        ("003 Table 2", stub, "is about ImageNet-1K, ImageNet-21K-P: give data={'ImageNet-1K': PATH"),
        ("003 Table 2", {"ImageNet": stub}, "has no data ImageNet; it has ImageNet-1K, ImageNet-21K-P"),
        ("003 Table 2", {"ImageNet-1K": stub}, "fine-tunes networks that others published.*give model="),
    ):
        with pytest.raises(ValueError, match=lacking):
            TABLES[name].reproduce(data)
    with pytest.raises(ValueError, match="leave data out"):
        TABLES["001 Table 2"].reproduce(letters, small=True)
    with pytest.raises(ValueError, match="model = 'resnet50': small runs have networks of their own; leave model out"):
        TABLES["001 Table 2"].reproduce(small=True, model="resnet50")
    with pytest.raises(ValueError, match="has no reduced scale"):
        TABLES["004 Table I (supplement)"].reproduce(small=True)
    with pytest.raises(ValueError, match=r"000 Table 3\.2 is not run: it says how people made these datasets"):
        TABLES["000 Table 3.2"].reproduce()
    with pytest.raises(ValueError, match="seeds = 0"):
        TABLES["001 Table 2"].reproduce(small=True, seeds=0)


def test_a_small_table_is_reproduced_from_end_to_end_once_and_kept(store):
    table = TABLES["000 Table 3.1"]
    found = table.reproduce(small=True, seeds=1, store=store, progress=False)
    assert len(found.runs) == 1  # one run gives all rows
    assert "letters with long tail for Pl@ntNet-300K" in found.conditions
    ours = found.frame.set_index("row")["ours"]
    assert ours["0 − 10"] < ours["50 − 500"]  # accuracy grows with images per class
    assert np.isnan(ours["> 2000"])  # letters have no such class
    assert (found.frame["seeds"] == 1).all()
    assert "| > 2000 | 0.93 | — |" in found.markdown()

    written = {key: store.open(key).path.stat().st_mtime_ns for key in found.runs}
    again = table.reproduce(small=True, seeds=1, store=store, progress=False)
    pd.testing.assert_frame_equal(again.frame, found.frame)
    assert {key: store.open(key).path.stat().st_mtime_ns for key in again.runs} == written  # none was trained again
    (kept,) = table.reproductions(store)
    assert kept.small
    pd.testing.assert_frame_equal(kept.frame, found.frame)
    assert (kept.conditions, kept.runs) == (again.conditions, again.runs)


def test_of_what_was_searched_the_best_on_val_is_reported(stub, monkeypatch):
    tries = [
        one for one in planned(TABLES["000 Table 4.5"], stub, seeds=1, tune=True) if one.row.label.startswith("focal")
    ]
    on_val = dict(zip((0.5, 1.0, 2.0, 5.0), (0.3, 0.6, 0.5, 0.1), strict=True))  # by γ
    of_run = {run.key: run.loss.gamma for one in tries for run in one.runs}
    monkeypatch.setattr(
        runner,
        "_values",
        lambda one, gamma: {"": gamma / 10, "few": 0, "medium": 0, "many": 0, "val": on_val[gamma]},
    )
    found = runner._measured(TABLES["000 Table 4.5"], tries, of_run)
    assert found["focal (γ = 2.0)", "K = 3", ""] == pytest.approx(
        {**over_seeds([10.0]), "loss": "Focal(gamma=1.0)"}, nan_ok=True
    )


def test_machines_share_the_runs_and_lay_out_what_is_stored(store, monkeypatch):
    trained = []

    def fail(runs, **_):
        trained.append(len(runs))
        return (FloatingPointError("a test trains nothing") for _ in runs)

    monkeypatch.setattr(runner, "train_all", fail)
    table = TABLES["001 Table 1"]
    parts = [table.reproduce(small=True, share=(part, 5), store=store, progress=False) for part in (1, 2, 3, 4, 5)]
    assert sum(trained) == 12  # six losses, two seeds
    assert all(part.frame["run"].sum() < 6 for part in parts)  # a cell is laid out when both of its runs are there
    for wrong in ((0, 4), (5, 4), 3, ("2", "4")):
        with pytest.raises(ValueError, match="give which part of the runs to train and of how many"):
            table.reproduce(small=True, share=wrong, store=store)


def test_depths_of_networks_are_computed_and_equal(store):
    found = TABLES["003 Table 7"].reproduce(store=store)
    assert found.agrees
    assert len(found.frame) == found.frame["run"].sum() == 68


@pytest.mark.parametrize("name", ["000 Table 3.3", "000 Table 5.3", "000 Table 5.4"])
def test_settings_that_the_thesis_prints_are_those_of_the_recipes(name, store):
    assert TABLES[name].reproduce(store=store).agrees


def of_table_9() -> Reproduction:
    table = TABLES["002 Table 9"]
    ours = {
        ("1", "CE", ""): {"ours": 72.125, "low": 72.0, "high": 72.25, "seeds": 2},
        ("5", "CE", ""): {"ours": np.nan, "low": np.nan, "high": np.nan, "seeds": 0},
    }
    return Reproduction(table, with_ours(table, ours), small=True, conditions="reduced: data: letters")


def test_ours_is_laid_out_beside_theirs():
    found = of_table_9()
    assert found.markdown() == (
        "| K | CE | ours | Smoothed Hinge (τ = 0.1) | Noised bal. (ε = 0.5, 10 draws) |\n"
        "| --- | ---: | ---: | ---: | ---: |\n"
        "| 1 | 72.24±0.15 | 72.12 ± 0.12 | 71.43±0.14 | 72.46±0.15 |\n"
        "| 5 | 90.60±0.05 | × | 90.71±0.06 | 90.52±0.07 |\n\n"
        "reduced: data: letters\n"
    )
    assert r"1 & 72.24$\pm$0.15 & 72.12 $\pm$ 0.12 & 71.43$\pm$0.14 & 72.46$\pm$0.15 \\" in found.latex()
    assert "<b>72.12 ± 0.12</b>" in found._repr_html_()
    assert not found.agrees
    columns = ["row", "column", "part", "printed", "printed_low", "printed_high", "ours", "low", "high", "seeds"]
    assert list(found.frame.columns) == [*columns, "loss", "run"]


def test_the_picture_shows_what_both_have_and_its_code_makes_it_again(store, monkeypatch):
    monkeypatch.setenv("WORKBENCH_HOME", str(store.root))
    found = of_table_9()
    found.save()
    figure = found.figure
    assert figure.frame[["cell", "printed", "ours"]].to_numpy().tolist() == [["1", 72.24, 72.125]]
    assert figure.title == "002 Table 9, at a reduced scale: ours beside theirs"
    made: dict[str, object] = {}
    exec(figure.code, made)
    pd.testing.assert_frame_equal(made["figure"].frame, figure.frame)


def test_a_damaged_reproduction_is_none(store):
    path = of_table_9().save(store)
    assert [one.title for one in TABLES["002 Table 9"].reproductions(store)] == ["002 Table 9, at a reduced scale"]
    path.write_text(path.read_text(encoding="utf-8")[:100], encoding="utf-8")
    assert TABLES["002 Table 9"].reproductions(store) == []
    assert store.unreadable() == {}


def test_the_interval_over_seeds_is_student_s():
    found = over_seeds([90.0, 91.0, 92.0])
    assert (found["ours"], found["seeds"]) == (91.0, 3)
    assert found["high"] - 91 == pytest.approx(4.3027 / np.sqrt(3), abs=1e-4)
    assert np.isnan(over_seeds([90.0])["low"])


def test_points_that_a_paper_only_draws_are_drawn_of_ours():
    frame = with_ours(TABLES["000 Fig. 5.5"], {("average-5 accuracy", "1.0", ""): {"ours": 97.0, "seeds": 1}})
    figure = Reproduction(TABLES["000 Fig. 5.5"], frame).figure
    assert figure.frame["cell"].tolist() == ["average-5 accuracy"]
    assert "The paper prints none of them." in figure.text
    assert figure.plot().data
    assert figure.static()
