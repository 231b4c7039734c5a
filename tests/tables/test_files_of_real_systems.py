"""Files as other programs and services write them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import workbench as wb
from workbench.cli.main import main
from workbench.store import Store
from workbench.store.tags import pinned_first

rng = np.random.default_rng(0)
P = rng.dirichlet(np.ones(4), 24)
NAMES = ["oak", "elm", "fir", "ash"]
GROUPS = {"oak": "broad", "elm": "broad", "ash": "broad", "fir": "needle"}
LABELS = np.arange(24) % 4


def frame(label: str = "label") -> pd.DataFrame:
    return pd.DataFrame(P, columns=NAMES).assign(**{label: [NAMES[j] for j in LABELS]})


@pytest.mark.parametrize("name", ["a.tsv", "a.csv.gz", "a.feather", "a.jsonl", "a.json"])
def test_columns_are_read_from_every_kind_of_file(tmp_path, name):
    path = tmp_path / name
    match path.suffix:
        case ".feather":
            frame().to_feather(path)
        case ".jsonl":
            frame().to_json(path, orient="records", lines=True, double_precision=15)
        case ".json":
            frame().to_json(path, orient="records", double_precision=15)
        case _:
            frame().to_csv(path, index=False, sep="\t" if ".tsv" in name else ",")
    table = wb.import_table(path)
    assert table.class_names == tuple(NAMES)
    assert np.array_equal(table.labels, LABELS)
    np.testing.assert_allclose(table.probabilities(), P, rtol=1e-6)


@pytest.mark.parametrize("label", ["ground_truth", "gt"])
@pytest.mark.parametrize("called", ["image", "file"])
def test_labels_ids_and_superclasses_are_known_by_their_usual_names(tmp_path, label, called):
    columns = frame(label).assign(superclass=[GROUPS[NAMES[j]] for j in LABELS])
    columns[called] = [f"{i:03}.jpg" for i in range(24)]
    columns.to_csv(tmp_path / "a.csv", index=False)
    table = wb.import_table(tmp_path / "a.csv")
    assert np.array_equal(table.labels, LABELS)
    assert table.ids[3] == "003.jpg"
    assert table.groups == tuple(GROUPS[name] for name in NAMES)


def test_val_and_test_in_one_file_are_its_split(tmp_path):
    np.savez(tmp_path / "a.npz", val_logits=P[:10], val_y=LABELS[:10], test_logits=P[10:], test_y=LABELS[10:])
    table = wb.import_table(tmp_path / "a.npz")
    assert table.n == 24
    assert table.attributes["split"].tolist() == ["val"] * 10 + ["test"] * 14
    assert np.array_equal(table.labels, LABELS)


def test_one_of_several_stacked_networks_is_chosen_by_its_name(tmp_path):
    np.savez(tmp_path / "a.npz", logits=np.stack([P, 2 * P]), models=["resnet20", "resnet32"], y=LABELS)
    assert np.array_equal(wb.import_table(tmp_path / "a.npz", scores="logits[resnet32]").scores, 2 * P)
    assert np.array_equal(wb.import_table(tmp_path / "a.npz", scores="logits[0]").scores, P)


@pytest.mark.parametrize("called", ["observation", "object_id"])
def test_the_object_that_several_rows_show_is_an_attribute_and_no_class(tmp_path, called):
    columns = pd.DataFrame(P, columns=NAMES).assign(label=LABELS)
    columns.insert(0, called, np.arange(24) // 3)
    columns.to_csv(tmp_path / "a.csv", index=False)
    table = wb.import_table(tmp_path / "a.csv")
    assert table.class_names == tuple(NAMES)
    assert table.attributes[called].tolist() == (np.arange(24) // 3).tolist()


def answers(row: np.ndarray) -> object:
    return [{"label": name, "score": float(p)} for name, p in sorted(zip(NAMES, row, strict=True), key=lambda x: -x[1])]


@pytest.mark.parametrize(
    "scores", [answers, lambda row: dict(zip(NAMES, row.tolist(), strict=True))], ids=["pairs", "by name"]
)
def test_the_answers_of_a_service_name_their_classes(tmp_path, scores):
    lines = [{"id": f"q{i}", "truth": NAMES[LABELS[i]], "answer": scores(P[i])} for i in range(24)]
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    table = wb.import_table(tmp_path / "a.jsonl")
    order = [table.class_names.index(name) for name in NAMES]
    np.testing.assert_allclose(table.probabilities()[:, order], P)
    assert [table.class_names[j] for j in table.labels] == [NAMES[j] for j in LABELS]
    assert table.ids[5] == "q5"


def test_answers_of_which_each_names_other_classes_are_refused(tmp_path):
    lines = [{"answer": {"oak": 0.9, "elm": 0.1}}, {"answer": {"oak": 0.9, "fir": 0.1}}]
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    with pytest.raises(ValueError, match="row 1 has no score of fir"):
        wb.import_table(tmp_path / "a.jsonl")


@pytest.mark.parametrize("ending", [".csv", ".json", ".parquet"])
def test_the_sets_of_a_file_are_written_with_the_rows_of_the_file(tmp_path, ending):
    frame().to_csv(tmp_path / "a.csv", index=False)
    out = tmp_path / f"sets{ending}"
    assert main(["sets", str(tmp_path / "a.csv"), "--rule", "LAC(0.6)", "--output", str(out)]) == 0
    match ending:
        case ".csv":
            written = pd.read_csv(out)
        case ".parquet":
            written = pd.read_parquet(out)
        case _:
            written = pd.DataFrame(json.loads(out.read_text())["rows"])
    assert written["label"].tolist() == [NAMES[LABELS[row]] for row in written["id"]]
    assert len(written) == 12


def test_after_an_import_the_app_opens_on_what_was_imported(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    frame().to_csv(tmp_path / "mine.csv", index=False)
    assert main(["import", str(tmp_path / "mine.csv")]) == 0
    assert pinned_first(Store(), Store().runs())[0].title == "mine"


def test_an_attribute_of_many_numbers_is_grouped_by_its_quartiles():
    table = wb.LogitTable(P, LABELS, attributes={"latitude": np.linspace(40, 60, 24)})
    found = wb.metrics.size_by(wb.TopK(1).fit(table)(table), "latitude")
    assert list(found) == ["≤ 45", "45 to 50", "50 to 55", "> 55"]


def test_the_class_around_which_sets_are_shared_is_a_number_or_a_name():
    table = wb.LogitTable.from_probabilities(P, LABELS, class_names=NAMES)
    sets = wb.TopK(2).fit(table)(table)
    by_name, by_number = (wb.figures.shared_sets(sets, around=around).frame for around in ("elm", 1))
    pd.testing.assert_frame_equal(by_name, by_number)
    with pytest.raises(TypeError, match="give the number of a class, or its name"):
        wb.figures.shared_sets(sets, around=1.5)
    with pytest.raises(ValueError, match="no class is called so"):
        wb.figures.shared_sets(sets, around="yew")


VOTES = {str(task): {str(worker): (task + worker) % 3 for worker in range(4)} for task in range(24)}


def votes_in(folder: Path, name: str) -> Path:
    """The same votes as a folder of peerannot, its answers alone, or a spreadsheet with a time beside each."""
    path = folder / name
    if path.suffix == ".csv":
        lines = [f"{task},{worker},{label},12:30" for task, given in VOTES.items() for worker, label in given.items()]
        path.write_text("\n".join(["task,worker,label,time", *lines]))
    elif path.suffix == ".json":
        path.write_text(json.dumps(VOTES))
    else:
        path.mkdir()
        (path / "answers.json").write_text(json.dumps(VOTES))
    return path


@pytest.mark.parametrize("name", ["peerannot", "answers.json", "votes.csv"])
def test_a_file_of_votes_is_not_taken_for_scores(tmp_path, capsys, name):
    path = votes_in(tmp_path, name)
    assert len(wb.import_any(path)) == 96
    with pytest.raises(ValueError, match=r"votes of annotators, not scores.*import_votes"):
        wb.import_table(path)
    for command in (["import", str(path)], ["evaluate", str(path)], ["sets", str(path), "--rule", "LAC(0.8)"]):
        assert main(command) == 2
        assert f"{name} holds votes of annotators, not scores" in capsys.readouterr().err


def test_scores_beside_a_user_are_scores(tmp_path):
    frame().assign(id=range(24), user="ann").to_csv(tmp_path / "scores.csv", index=False)
    table = wb.import_any(tmp_path / "scores.csv")
    assert table.class_names == tuple(NAMES)
    assert table.attributes["user"].tolist() == ["ann"] * 24


def test_lists_that_hold_every_class_of_each_row_are_read(tmp_path):
    order = np.argsort(-P, axis=1)
    np.savez(tmp_path / "topk.npz", indices=order, values=np.take_along_axis(P, order, axis=1), labels=LABELS)
    table = wb.import_any(tmp_path / "topk.npz", n_classes=4)
    assert np.allclose(table.label_probabilities, P[np.arange(24), LABELS])
