"""Sets of another system, votes of annotators, and arrays as papers publish them: read, described and judged."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import workbench as wb
from workbench.cli.main import main
from workbench.metrics.given_sets import OURS, given_against_ours
from workbench.tables.vote_files import vote_counts, with_votes

rng = np.random.default_rng(0)
NAMES = ["oak", "elm", "fir", "ash"]
LABELS = np.arange(40) % 4
P = np.array([rng.dirichlet(1 + 3 * np.eye(4)[label]) for label in LABELS])
TABLE = wb.LogitTable.from_probabilities(P, LABELS, class_names=NAMES, ids=[f"q{i}" for i in range(40)])
SETS = wb.Threshold(0.2).fit(TABLE)(TABLE)


@pytest.mark.parametrize("name", ["sets.csv", "sets.json", "sets.parquet", "sets.npz"])
def test_sets_are_judged_as_they_are_from_every_file(tmp_path, name):
    frame = SETS.to_frame()[["id", "label", "classes"]]
    path = tmp_path / name
    match path.suffix:
        case ".csv":
            frame.assign(classes=[";".join(each) for each in frame["classes"]]).to_csv(path, index=False)
        case ".json":
            frame.to_json(path, orient="records")
        case ".parquet":
            frame.to_parquet(path)
        case _:
            np.savez(path, sets=SETS.matrix(), labels=LABELS, class_names=NAMES, ids=TABLE.ids)
    given = wb.import_any(path)
    assert isinstance(given, wb.PredictionSets)
    assert given.source == name
    assert given.sizes.tolist() == SETS.sizes.tolist()
    assert wb.metrics.coverage(given) == wb.metrics.coverage(SETS)
    assert wb.metrics.macro_accuracy(given) == pytest.approx(wb.metrics.macro_accuracy(SETS))
    assert wb.figures.set_sizes(given).frame["share"].sum() == pytest.approx(1)


def test_what_workbench_sets_writes_is_read_as_sets_and_compared_with_ours(tmp_path, capsys):
    out = tmp_path / "sets.csv"
    TABLE.save(tmp_path / "table")
    assert main(["sets", str(tmp_path / "table"), "--rule", "TopK(2)", "--output", str(out)]) == 0
    assert main(["evaluate", str(out), "--against", str(tmp_path / "table")]) == 0
    assert OURS in capsys.readouterr().out
    compared = given_against_ours(wb.import_sets(out, TABLE))
    ours = compared[compared["sets"] == OURS].iloc[0]
    assert compared["mean_size"].tolist() == [2.0, 2.0]
    rows = wb.import_sets(out, TABLE).table
    assert ours["coverage"] == wb.metrics.coverage(wb.AverageK(2).fit(rows)(rows))


def test_sets_of_other_classes_or_rows_are_refused_in_words():
    with pytest.raises(ValueError, match="sets name yew, not among the classes"):
        wb.import_sets(pd.DataFrame({"id": ["q0"], "classes": [["yew"]]}), TABLE)
    with pytest.raises(ValueError, match="none match"):
        wb.import_sets(pd.DataFrame({"id": ["z9"], "classes": [["oak"]]}), TABLE)
    with pytest.raises(ValueError, match="every set is empty"):
        wb.import_sets(pd.DataFrame({"label": ["oak"], "classes": [[]]}))


def peerannot(folder, **metadata: int):
    folder.mkdir()
    (folder / "answers.json").write_text(json.dumps({"0": {"7": 1, "9": 0}, "1": {"7": 1}, "2": {"9": 3, "8": 3}}))
    (folder / "metadata.json").write_text(json.dumps({"name": "toy", **metadata}))
    return folder


def test_the_answers_of_peerannot_become_votes_of_rows_and_labels_by_the_weighted_vote(tmp_path, capsys):
    votes = wb.import_any(peerannot(tmp_path / "toy", n_classes=4, n_workers=3))
    assert votes.to_dict("list") == {"item": [*"00122"], "user": [*"79798"], "label": [1, 0, 1, 3, 3]}
    assert vote_counts(votes, ["2", "0"], 4).tolist() == [[0, 0, 0, 2], [1, 1, 0, 0]]
    table = wb.LogitTable(np.zeros((3, 4)), ids=["0", "1", "2"])
    assert with_votes(table, votes).votes.sum() == 5
    labels = wb.crowd_labels.validated_labels(votes, b0=1, threshold=1).labels
    assert labels.loc[labels["item"] == "2", "label"].item() == 3
    assert main(["data", str(tmp_path / "toy")]) == 0
    assert "5 by 3 people on 3 items" in capsys.readouterr().out


def test_a_folder_with_more_classes_or_people_than_it_says_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"n_classes = 2, and answers\.json has 3"):
        wb.import_votes(peerannot(tmp_path / "toy", n_classes=2))
    with pytest.raises(ValueError, match="give ids that match"):
        with_votes(TABLE, pd.DataFrame({"item": ["x"], "user": ["a"], "label": ["oak"]}))


def test_votes_come_with_scores_on_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    lines = pd.DataFrame(
        {"task": np.repeat(TABLE.ids, 2), "worker": ["ann", "bob"] * 40, "answer": np.repeat(NAMES, 20)}
    )
    lines.to_csv(tmp_path / "votes.csv", index=False)
    pd.DataFrame(P, columns=NAMES).assign(id=TABLE.ids).to_csv(tmp_path / "a.csv", index=False)
    arguments = ["import", str(tmp_path / "a.csv"), "--votes", str(tmp_path / "votes.csv"), "--json"]
    assert main(arguments) == 0
    key = json.loads(capsys.readouterr().out)["key"]
    assert wb.Store().open(key).tables["test"].votes.sum() == 40


def test_arrays_as_papers_on_long_tails_publish_them_are_one_table_with_counts(tmp_path):
    train = np.repeat(np.arange(4), [50, 20, 5, 1])
    arrays = {
        "best-plantnet-model_val_softmax": P[:16], "best-plantnet-model_val_labels": LABELS[:16],
        "best-plantnet-model_test_softmax": P[16:], "best-plantnet-model_test_labels": LABELS[16:],
        "plantnet_train_labels": train,
    }  # fmt: skip
    folder = tmp_path / "plantnet"
    folder.mkdir()
    for name, values in arrays.items():
        np.save(folder / f"{name}.npy", values)
    np.savez(tmp_path / "a.npz", **arrays)
    (tmp_path / "a.npz").rename(tmp_path / "plantnet.zip")
    for path in (folder, tmp_path / "plantnet.zip"):
        table = wb.import_table(path)
        assert table.class_counts.tolist() == [50, 20, 5, 1]
        assert table.attributes["split"].tolist() == ["val"] * 16 + ["test"] * 24
        np.testing.assert_array_equal(table.labels, LABELS)
        assert table.link == "identity"


def test_a_folder_of_scores_labels_and_training_labels_is_a_table(tmp_path):
    for name, values in {"softmax": P, "labels": LABELS, "train_labels": np.repeat(np.arange(4), [9, 4, 2, 1])}.items():
        np.save(tmp_path / f"{name}.npy", values)
    table = wb.import_table(tmp_path)
    np.testing.assert_array_equal(table.labels, LABELS)
    assert table.class_counts.tolist() == [9, 4, 2, 1]
    table.save(tmp_path / "saved")
    np.testing.assert_array_equal(wb.import_table(tmp_path / "saved").class_counts, table.class_counts)
    np.save(tmp_path / "test_softmax.npy", P)
    with pytest.raises(ValueError, match="softmax and test_softmax; leave one of them"):
        wb.import_table(tmp_path)


def test_a_folder_of_other_arrays_says_how_to_name_them(tmp_path):
    np.save(tmp_path / "my_model.npy", P)
    with pytest.raises(FileNotFoundError, match=r"names them softmax\.npy and labels\.npy"):
        wb.import_table(tmp_path)


def test_training_labels_of_other_classes_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", softmax=P, labels=LABELS, train_labels=[0, 9])
    with pytest.raises(ValueError, match="go up to 9, and scores have 4 classes"):
        wb.import_table(tmp_path / "a.npz")


def test_every_kind_of_data_is_described_before_a_model_is_trained(tmp_path, capsys):
    assert main(["data", "letters", "--lorenz", str(tmp_path / "lorenz.png")]) == 0
    assert "15974 train, 2013 val, 2013 test" in capsys.readouterr().out
    assert (tmp_path / "lorenz.png").stat().st_size > 1000
    about = wb.describe(SETS)
    assert about.classes["sets"].sum() == SETS.sizes.sum()
    grouped = wb.LogitTable(P, LABELS, link="identity", groups=[*"aabb"], attributes={"organ": ["leaf", "fruit"] * 20})
    described = repr(wb.describe(grouped))
    assert "2 (a, b" in described
    assert "leaf (20)" in described
    with pytest.raises(TypeError, match="cannot be described"):
        wb.describe(3)
