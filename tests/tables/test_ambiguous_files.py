"""Files that could be read in two ways: what they say is used, and nothing is guessed that changes which class is which."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import save_file

import workbench as wb
from workbench.cli.main import main
from workbench.store.imported_tables import keep_tables, val_and_test, with_classes_of

rng = np.random.default_rng(0)
SCORES = rng.normal(size=(12, 3))
LABELS = np.arange(12) % 3


def saved(folder, **arrays):
    np.savez(folder / "mine.npz", **arrays)
    return folder / "mine.npz"


def written(folder, *lines):
    path = folder / "mine.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_the_link_that_a_file_names_is_used(tmp_path):
    table = wb.import_table(saved(tmp_path, scores=SCORES, labels=LABELS, link="quasibinary", link_constant=0.3))
    assert (table.link, table.link_constant, table.attributes) == ("quasibinary", 0.3, None)
    assert "scores, quasibinary with log C = 0.3, as the file says" in table.note
    table = wb.import_table(saved(tmp_path, scores=SCORES, labels=SCORES > 0, link=np.array(["softmax"])))
    assert table.link == "softmax"
    with pytest.raises(ValueError, match="it says link = 'probit'; known: softmax"):
        wb.import_table(saved(tmp_path, scores=SCORES, link="probit"))
    with pytest.raises(ValueError, match="quasibinary link needs log C"):
        wb.import_table(saved(tmp_path, scores=SCORES, link="quasibinary"))


def test_the_constant_goes_with_its_link(tmp_path):
    path = saved(tmp_path, scores=SCORES, link_constant=0.3)
    assert wb.import_table(path, link="quasibinary").link_constant == 0.3
    assert wb.import_table(path, link="quasibinary", link_constant=2).link_constant == 2
    assert wb.import_table(path).link_constant is None
    for link in (None, "softmax"):
        with pytest.raises(ValueError, match="link_constant = 2 belongs to"):
            wb.import_table(path, link=link, link_constant=2)


def test_a_saved_table_may_be_read_through_another_link(tmp_path):
    wb.LogitTable(SCORES, LABELS).save(tmp_path / "table")
    assert wb.import_table(tmp_path / "table", link="sigmoid").link == "sigmoid"
    with pytest.raises(ValueError, match="table is a saved table, whose scores and labels are known"):
        wb.import_table(tmp_path / "table", scores="logits")


def test_metadata_of_safetensors_and_parquet_name_link_and_classes(tmp_path):
    facts = {"link": "quasibinary", "link_constant": "0.5", "class_names": json.dumps(["oak", "elm", "fir"])}
    save_file({"scores": torch.tensor(SCORES)}, tmp_path / "mine.safetensors", metadata=facts)
    table = wb.import_table(tmp_path / "mine.safetensors")
    assert (table.link, table.link_constant, table.class_names) == ("quasibinary", 0.5, ("oak", "elm", "fir"))
    frame = pa.table({"oak": SCORES[:, 0], "elm": SCORES[:, 1]}).replace_schema_metadata({"link": "sigmoid"})
    pq.write_table(frame, tmp_path / "mine.parquet")
    assert wb.import_table(tmp_path / "mine.parquet").link == "sigmoid"


def test_a_column_that_names_the_link_is_no_class(tmp_path):
    path = written(
        tmp_path, "oak,elm,label,link,link_constant", "1.5,0.5,elm,quasibinary,0.25", "2.5,0,oak,quasibinary,0.25"
    )
    table = wb.import_table(path)
    assert (table.class_names, table.link, table.link_constant) == (("oak", "elm"), "quasibinary", 0.25)


def test_what_is_asked_for_wins_over_what_is_found(tmp_path):
    path = saved(tmp_path, scores=SCORES, other=-SCORES, labels=LABELS, mine=LABELS[::-1], link="sigmoid")
    table = wb.import_table(path, scores="other", labels="mine", link="quasibinary", link_constant=1)
    assert np.array_equal(table.scores, -SCORES)
    assert np.array_equal(table.labels, LABELS[::-1])
    assert (table.link, table.link_constant) == ("quasibinary", 1.0)
    with pytest.raises(ValueError, match=r"there is no array logit; it has scores \(12, 3\) float64"):
        wb.import_table(path, scores="logit")


def test_labels_may_be_called_as_other_arrays_are(tmp_path):
    path = saved(tmp_path, scores=SCORES[:3], species=["b", "a", "c"])
    assert wb.import_table(path).class_names == ("b", "a", "c")
    table = wb.import_table(path, labels="species")
    assert (table.class_names, table.labels.tolist()) == (("a", "b", "c"), [1, 0, 2])
    with pytest.raises(ValueError, match="does not name one array"):
        wb.import_table(path, scores=["scores", "species"])


def test_the_inputs_of_a_dataset_are_not_taken_for_scores(tmp_path):
    path = saved(tmp_path, X=rng.normal(size=(12, 30)), y=LABELS)
    with pytest.raises(ValueError, match=r"which array holds the scores\? It has X \(12, 30\) float64.*--scores NAME"):
        wb.import_table(path)
    assert wb.import_table(path, scores="X").n_classes == 30
    assert "3 of the 30 classes occur" in wb.import_table(path, scores="X").note
    with pytest.raises(ValueError, match="which array holds the scores"):
        wb.import_table(saved(tmp_path, X=SCORES))


def test_one_of_several_stacked_arrays_is_named_by_its_place(tmp_path):
    stacked = np.stack([SCORES, 2 * SCORES])
    path = saved(tmp_path, logits=stacked, y=np.stack([LABELS, LABELS[::-1]]))
    with pytest.raises(ValueError, match=r"take one: scores='logits\[0\]', --scores 'logits\[0\]'"):
        wb.import_table(path)
    table = wb.import_table(path, scores="logits[1]", labels="y[1]")
    assert np.array_equal(table.scores, stacked[1])
    assert np.array_equal(table.labels, LABELS[::-1])
    assert "logits[1] (float64) read as scores" in table.note
    heads = saved(tmp_path, logits=stacked.transpose(1, 0, 2))
    assert np.array_equal(wb.import_table(heads, scores="logits[:, 1]").scores, stacked[1])
    with pytest.raises(ValueError, match="no such part"):
        wb.import_table(heads, scores="logits[50]")
    np.save(tmp_path / "mine.npy", stacked)
    assert np.array_equal(wb.import_table(tmp_path / "mine.npy", scores="scores[1]").scores, stacked[1])


def test_probabilities_above_one_are_refused_and_not_put_through_softmax(tmp_path):
    path = saved(tmp_path, probabilities=np.abs(SCORES), labels=LABELS)
    with pytest.raises(ValueError, match=r"probabilities go from .*are they probabilities\? Say .*--link"):
        wb.import_table(path)
    assert wb.import_table(path, link="softmax").link == "softmax"


def test_probabilities_that_do_not_sum_to_one_are_asked_about(tmp_path):
    path = saved(tmp_path, probs=1 / (1 + np.exp(-SCORES)), labels=LABELS)
    with pytest.raises(ValueError, match="are they probabilities"):
        wb.import_table(path)
    assert wb.import_table(path, link="identity").link == "identity"


def test_counts_that_become_probabilities_further_down_are_noticed(tmp_path):
    counts = rng.integers(1, 9, size=(513, 3)).astype(float)
    chances = rng.dirichlet(np.ones(3), 200)
    for mixed in (np.concatenate([counts, chances]), np.concatenate([np.repeat(chances, 4, axis=0), counts])):
        with pytest.raises(ValueError, match="are they probabilities"):
            wb.import_table(saved(tmp_path, scores=mixed))


def test_logits_of_two_classes_are_scores_although_some_row_sums_to_one(tmp_path):
    logits = rng.normal(size=(4000, 2))
    logits[7] = 0.3, 0.7
    assert wb.import_table(saved(tmp_path, scores=logits)).link == "softmax"


def test_a_cell_that_is_no_number_is_named_and_drops_no_class(tmp_path):
    for lines in (
        ["oak,elm,fir,label", "1.5,0.5,2.5,1", "0.5,n.d.,1.5,2"],
        ["oak,elm,fir,label", "1.5,2.5,0.5,1", "0.5,1.5,n.d.,2", "0.5,1.5,2.5,2"],
        ["oak,elm,fir,label", "1.5,n.d.,0.5,elm", "0.5,n.d.,1.5,oak"],
        ["oak,elm,fir,label", "1.5,,0.5,1", "0.5,,1.5,1"],
    ):
        with pytest.raises(ValueError, match=r"column (elm|fir), row \d: ('n\.d\.'|'') is not a number"):
            wb.import_table(written(tmp_path, *lines))
    with pytest.raises(ValueError, match="column elm, row 2 is empty or NaN"):
        wb.import_table(written(tmp_path, "oak,elm,label", "1.5,0.5,1", "0.5,,0"))


def test_whole_numbers_before_the_classes_are_asked_about_where_labels_are_positions(tmp_path):
    lines = ["3,5.5,0.5,0", "2,1.5,0.25,1", "3,1.5,0.25,1"]
    path = written(tmp_path, "oak,elm,fir,label", *lines)
    with pytest.raises(ValueError, match="column oak holds whole numbers and stands before the classes: is it one"):
        wb.import_table(path)
    assert wb.import_table(path, scores=["oak", "elm", "fir"]).class_names == ("oak", "elm", "fir")
    assert wb.import_table(path, scores=["elm", "fir"]).attributes["oak"].tolist() == [3, 2, 3]
    by_name = written(tmp_path, "age,elm,fir,label", *(line[:-1] + "fir" for line in lines))
    assert wb.import_table(by_name).class_names == ("elm", "fir")
    numbered = written(tmp_path, "row,elm,fir,label", "7,5.5,0.5,0", "8,1.5,0.25,1", "9,1.5,0.25,1")
    assert wb.import_table(numbered).class_names == ("elm", "fir")


def test_rows_longer_than_the_first_line_are_refused(tmp_path):
    with pytest.raises(ValueError, match="Expected 3 columns, got 4"):
        wb.import_table(written(tmp_path, '"oak","elm","label"', '"1",1.5,0.5,"oak"', '"2",0.5,2.5,"elm"'))


def test_words_between_the_classes_say_something_about_the_row(tmp_path):
    table = wb.import_table(written(tmp_path, "oak,place,elm,label", "1.5,wood,0.5,elm", "0.5,field,1.5,oak"))
    assert (table.class_names, table.attributes["place"].tolist()) == (("oak", "elm"), ["wood", "field"])


def test_names_with_leading_zeros_are_names(tmp_path):
    table = wb.import_table(written(tmp_path, "001,002,003,label", "0.5,1.5,2.5,001", "1.5,0.5,2.5,002"))
    assert (table.class_names, table.labels.tolist()) == (("001", "002", "003"), [0, 1])
    table = wb.import_table(written(tmp_path, "001,002,003", "0.5,1.5,2.5", "1.5,0.5,2.5"))
    assert (table.class_names, table.n) == (("001", "002", "003"), 2)
    assert "its first line read as names of classes" in table.note


def test_a_file_without_names_says_so_and_its_whole_numbers_are_asked_about(tmp_path):
    assert "its first line read as scores" in wb.import_table(written(tmp_path, "0.5,1.5", "1.5,2.5")).note
    with pytest.raises(ValueError, match="column 3 holds whole numbers: labels, or scores"):
        wb.import_table(written(tmp_path, "0.5,1.5,1", "1.5,2.5,0"))


def test_a_class_may_be_called_as_labels_are(tmp_path):
    table = wb.import_table(written(tmp_path, "X,Y,Z,label", "0.5,1.5,2.5,Y", "1.5,0.5,2.5,X"))
    assert (table.class_names, table.labels.tolist()) == (("X", "Y", "Z"), [1, 0])
    table = wb.import_table(written(tmp_path, "X,Y,Z", "0.5,1.5,2.5", "1.5,0.5,2.5"))
    assert (table.class_names, table.labels) == (("X", "Y", "Z"), None)
    whole = written(tmp_path, "X,Y,Z", "0.5,1,2.5", "1.5,0,2.5")
    with pytest.raises(ValueError, match=r"column Y stands among the classes.*--labels Y"):
        wb.import_table(whole)
    assert wb.import_table(whole, labels="Y").labels.tolist() == [1, 0]
    assert wb.import_table(whole, scores=["X", "Y", "Z"]).n_classes == 3


def test_labels_that_are_numbers_and_names_say_how_they_were_read(tmp_path):
    table = wb.import_table(written(tmp_path, "1,2,3,label", "0.5,1.5,2.5,1", "1.5,0.5,2.5,2"))
    assert table.labels.tolist() == [0, 1]
    assert "labels are names of classes, not positions" in table.note
    table = wb.import_table(written(tmp_path, "1,2,3,label", "0.5,1.5,2.5,0", "1.5,0.5,2.5,2"))
    assert table.labels.tolist() == [0, 2]
    assert "labels are positions from 0, not names of classes" in table.note


def test_equal_class_names_are_kept_and_never_guessed_between(tmp_path):
    table = wb.import_table(written(tmp_path, "crane,wren,crane,label", "0.5,1.5,2.5,wren", "1.5,0.5,2.5,wren"))
    assert table.class_names == ("crane", "wren", "crane")
    assert "several classes are called crane" in table.note
    with pytest.raises(ValueError, match="labels name crane, and several classes are called so"):
        wb.import_table(written(tmp_path, "crane,wren,crane,label", "0.5,1.5,2.5,crane"))


@pytest.mark.parametrize("name", ["NA", "None", "true", "1.5", "nan", "null", "-"])
def test_a_class_may_have_any_name(tmp_path, name):
    frame = pd.DataFrame({name: [0.5, 1.5], "other": [1.25, 0.75], "label": [name, "other"]})
    frame.to_csv(tmp_path / "mine.csv", index=False)
    frame.to_parquet(tmp_path / "mine.parquet")
    for suffix in ("csv", "parquet"):
        table = wb.import_table(tmp_path / f"mine.{suffix}")
        assert (table.class_names, table.labels.tolist()) == ((name, "other"), [0, 1])


def test_decimal_commas_may_begin_in_any_row(tmp_path):
    table = wb.import_table(written(tmp_path, "oak;elm;label", "1;2;oak", "1,5;-2,25;elm"))
    assert table.scores.tolist() == [[1, 2], [1.5, -2.25]]


def test_names_may_hold_commas_where_semicolons_part_the_columns(tmp_path):
    table = wb.import_table(
        written(tmp_path, "oak, white, old;elm, red;label", "1,5;2;elm, red", "2,5;1,5;oak, white, old")
    )
    assert (table.class_names, table.labels.tolist()) == (("oak, white, old", "elm, red"), [1, 0])


def test_an_empty_label_and_minus_one_are_rows_without_a_label(tmp_path):
    for cells in (("elm", "", "oak"), ("1", "", "0"), ("1", "-1", "0"), ("1.0", "", "0.0")):
        lines = [f"{a},{b},{cell}" for (a, b), cell in zip(SCORES[:, :2], cells, strict=False)]
        table = wb.import_table(written(tmp_path, "oak,elm,label", *lines))
        assert table.labels.tolist() == [1, -1, 0]
        assert "1 rows without a label" in table.note
    frame = pd.DataFrame(SCORES[:3], columns=["oak", "elm", "fir"]).assign(label=["elm", None, "oak"])
    frame.to_parquet(tmp_path / "mine.parquet")
    assert wb.import_table(tmp_path / "mine.parquet").labels.tolist() == [1, -1, 0]


def test_several_labels_of_a_row_are_written_with_semicolons_or_as_lists(tmp_path):
    expected = [[True, True, False], [False, False, False], [False, False, True]]
    path = written(tmp_path, "oak,elm,fir,label", "0.5,1.5,-2.5,oak;elm", "1,0.5,2.5,", "1,0,1.5,fir")
    table = wb.import_table(path)
    assert (table.labels.tolist(), table.link) == (expected, "sigmoid")
    path = written(tmp_path, "oak,elm,fir,label", "0.5,1.5,-2.5,0;1", "1,0.5,2.5,", "1,0,1.5,2")
    assert wb.import_table(path).labels.tolist() == expected
    frame = pd.DataFrame({"logits": SCORES[:3].tolist(), "labels": [[0, 1], [], [2]]})
    frame.to_parquet(tmp_path / "mine.parquet")
    assert wb.import_table(tmp_path / "mine.parquet").labels.tolist() == expected
    assert wb.import_table(frame).labels.tolist() == expected


def test_scores_of_all_classes_may_stand_in_one_cell(tmp_path):
    table = wb.import_table(written(tmp_path, "logits,label", "1.5;0.5;2,1", "2.5;1.5;0.5,0"))
    assert (table.scores.tolist(), table.labels.tolist()) == ([[1.5, 0.5, 2], [2.5, 1.5, 0.5]], [1, 0])
    with pytest.raises(ValueError, match="column logits holds 1 to 2 numbers a row"):
        wb.import_table(written(tmp_path, "logits,label", "1.5;0.5,1", "2.5,0"))


def test_a_frame_is_read_like_a_file_of_columns():
    frame = pd.DataFrame({"oak": [0.5, 1.5], "elm": [2.5, 1], "label": ["elm", "oak"], "place": ["wood", None]})
    table = wb.import_table(frame)
    assert (table.class_names, table.labels.tolist()) == (("oak", "elm"), [1, 0])
    assert table.attributes["place"].tolist() == ["wood", ""]
    assert table.note.startswith("frame: 2 rows × 2 classes")
    table = wb.import_table(frame.rename(columns={"label": "kind"}), labels="kind", scores=["elm", "oak"])
    assert (table.class_names, table.labels.tolist()) == (("elm", "oak"), [0, 1])


def test_columns_of_classes_are_named_by_a_pattern(tmp_path):
    path = written(tmp_path, "height,p_oak,p_elm,label", "0.5,0.25,0.75,p_elm", "1.5,0.5,0.5,p_oak")
    table = wb.import_table(path, scores="p_*")
    assert (table.class_names, table.link) == (("p_oak", "p_elm"), "identity")
    assert table.attributes["height"].tolist() == [0.5, 1.5]
    with pytest.raises(ValueError, match=r"there is no column q_\*; it has height, p_oak"):
        wb.import_table(path, scores="q_*")


def test_names_groups_and_counts_of_another_length_are_refused(tmp_path):
    for name in ("class_names", "class_counts", "groups"):
        with pytest.raises(ValueError, match=rf"{name} has shape \(2,\), and scores have 3 classes"):
            wb.import_table(saved(tmp_path, scores=SCORES, **{name: [1, 2]}))


def test_a_header_that_declares_fewer_rows_than_follow_is_refused(tmp_path):
    np.save(tmp_path / "mine.npy", SCORES)
    whole = (tmp_path / "mine.npy").read_bytes()
    (tmp_path / "mine.npy").write_bytes(whole.replace(b"(12, 3)", b"(11, 3)"))
    with pytest.raises(ValueError, match=r"says \(11, 3\) float64, 264 bytes, and 288 bytes follow"):
        wb.import_table(tmp_path / "mine.npy")
    save_file({"scores": torch.tensor(SCORES)}, tmp_path / "mine.safetensors")
    whole = (tmp_path / "mine.safetensors").read_bytes()
    (tmp_path / "mine.safetensors").write_bytes(whole.replace(b"[12,3]", b"[11,3]").replace(b"288]", b"264]"))
    with pytest.raises(ValueError, match="gives the arrays 264 bytes, and 288 follow it"):
        wb.import_table(tmp_path / "mine.safetensors")
    written(tmp_path, "oak,elm,label", "0.5,1.5,oak", "2.5,1.5")
    with pytest.raises(ValueError, match="Expected 3 columns, got 2"):
        wb.import_table(tmp_path / "mine.csv")


def test_two_tables_are_aligned_by_the_names_of_their_classes(tmp_path, store):
    val = pd.DataFrame(SCORES, columns=["oak", "elm", "fir"]).assign(label=["oak", "elm", "fir"] * 4)
    val.to_csv(tmp_path / "val.csv", index=False)
    val[["fir", "oak", "elm"]].add(1).assign(label=val["label"]).to_csv(tmp_path / "test.csv", index=False)
    first, second = (wb.import_table(tmp_path / f"{name}.csv") for name in ("val", "test"))
    assert second.class_names == ("fir", "oak", "elm")
    kept = keep_tables(first, test=second, title="both", store=store)
    assert kept.tables["test"].class_names == ("oak", "elm", "fir")
    assert np.array_equal(kept.tables["test"].scores, SCORES + 1)
    assert np.array_equal(kept.tables["test"].labels, LABELS)
    assert "stood in another order" in kept.record.note


def test_everything_about_a_class_moves_with_it():
    order = [2, 0, 1]
    marks, votes = SCORES > 0, rng.integers(0, 9, (12, 3))
    facts = {"groups": ["a", "b", "c"], "class_counts": [3, 4, 5], "votes": votes, "class_names": ["oak", "elm", "fir"]}
    moved = {name: np.array(values)[..., order] for name, values in facts.items()}
    one, many = (wb.LogitTable(SCORES, labels, **facts) for labels in (np.append(LABELS[1:], -1), marks))
    for table, labels in ((one, [order.index(label) for label in LABELS[1:]] + [-1]), (many, marks[:, order])):
        back, _ = with_classes_of(table, wb.LogitTable(SCORES[:, order], labels, **moved))
        for name in ("scores", "labels", "groups", "class_counts", "votes", "class_names"):
            assert np.array_equal(getattr(back, name), getattr(table, name)), name


def test_two_tables_with_other_classes_are_refused(store):
    first = wb.LogitTable(SCORES, class_names=["oak", "elm", "fir"])
    for names in (["oak", "elm", "ash"], ["oak", "oak", "fir"]):
        with pytest.raises(ValueError, match="the tables have other classes"):
            keep_tables(first, test=wb.LogitTable(SCORES[::-1], class_names=names), title="both", store=store)
    kept = keep_tables(first, test=wb.LogitTable(SCORES + 1), title="both", store=store)
    assert "Only one of the two tables names its classes" in kept.record.note


def test_rows_are_split_as_the_file_says(tmp_path, store):
    split = np.array(["train", "val", "val", "test"] * 3)
    table = wb.import_table(saved(tmp_path, scores=SCORES, labels=LABELS, split=split))
    kept = keep_tables(table, title="mine", store=store)
    assert np.array_equal(kept.tables["val"].scores, SCORES[split == "val"])
    assert np.array_equal(kept.tables["test"].scores, SCORES[split == "test"])
    assert kept.record.note.endswith("evaluated on the 3 rows of split test; 3 others are left out.")
    table = wb.import_table(
        saved(tmp_path, scores=SCORES, labels=LABELS, split=np.where(split == "train", split, "test"))
    )
    val, test, note = val_and_test(table)
    assert val.n + test.n == 9
    assert "Rows of split train are left out" in note


def test_what_a_file_leaves_open_is_said_on_the_command_line(tmp_path, capsys):
    labels = np.arange(40) % 3
    stacked = rng.normal(size=(2, 40, 3)) + 3 * np.eye(3)[labels]
    path = saved(tmp_path, out=stacked, truth_of_it=labels, split=["val", "test"] * 20)
    asked = ["--scores", "out[1]", "--labels", "truth_of_it", "--link", "quasibinary", "--link-constant", "0.5"]
    assert main(["import", str(path), *asked]) == 0
    output = capsys.readouterr().out
    assert "out[1] (float64) read as scores, quasibinary; labels from truth_of_it" in output
    assert "evaluated on the 20 rows of split test." in output
    assert main(["evaluate", *asked, str(path), "--K", "1"]) == 0
    assert "Rules are fitted on the 20 rows of split val" in capsys.readouterr().err
    key = output.split("stored as ")[1].split()[0]
    assert main(["evaluate", key, "--link", "softmax"]) == 2
    assert "a run knows what it holds" in capsys.readouterr().err
    assert main(["import", str(path)]) == 2
    assert "which array holds the scores? It has out (2, 40, 3) float64" in capsys.readouterr().err
    assert main(["import", str(path), "--scores", "out[1]", "--link", "probit"]) == 2
    assert "link = 'probit' is unknown; give one of softmax" in capsys.readouterr().err


@pytest.mark.parametrize("labels", [["oak", "elm", "oak"], ["0", "1", "0"]], ids=["names", "positions"])
def test_numbers_apart_from_the_classes_that_no_label_names_are_not_read_as_a_class(tmp_path, labels):
    rows = [f"2.5,1.25,{label},0.75" for label in labels]
    path = written(tmp_path, "oak,elm,label,weight", *rows)
    with pytest.raises(ValueError, match=r"weight beside the classes: no label is of it.*scores=\[…\]"):
        wb.import_table(path)
    table = wb.import_table(path, scores=["oak", "elm"])
    assert table.class_names == ("oak", "elm")
    assert table.attributes["weight"].tolist() == [0.75] * 3


def test_classes_on_both_sides_of_the_labels_are_read_where_labels_name_both(tmp_path):
    path = written(tmp_path, "oak,elm,label,fir", "2.5,1.25,oak,0.5", "1.5,1.25,fir,2.5")
    assert wb.import_table(path).class_names == ("oak", "elm", "fir")


def test_a_number_that_only_python_reads_is_named_as_none(tmp_path):
    with pytest.raises(ValueError, match=r"column oak, row 1: '1_0\.5' is not a number"):
        wb.import_table(written(tmp_path, "oak,elm,label", "1_0.5,0.25,oak", "0.5,0.25,elm"))


def test_the_same_rows_in_another_order_are_not_fitted_on_and_judged(store):
    table = wb.LogitTable(SCORES, LABELS, class_names=["oak", "elm", "fir"])
    columns = [2, 0, 1]
    moved = wb.LogitTable(SCORES[:, columns], [columns.index(y) for y in LABELS], class_names=["fir", "oak", "elm"])
    for again in (table.rows(np.arange(12)[::-1]), moved, table.rows(slice(0, 5))):
        with pytest.raises(ValueError, match="the same rows"):
            keep_tables(table, title="mine", test=again, store=store)


def test_rows_that_two_files_share_are_counted_and_said(store):
    val, test = (wb.LogitTable(SCORES[rows], LABELS[rows]) for rows in (slice(0, 8), slice(5, 12)))
    note = keep_tables(val, title="mine", test=test, store=store).record.note
    assert note == "3 of the 7 rows to judge on are rows to fit on, too: they have the same scores and label."


def test_rows_that_are_alike_because_few_scores_occur_are_no_shared_rows(store):
    val, test = (wb.LogitTable(-np.eye(3)[rows], rows) for rows in (LABELS, LABELS[:9]))
    assert keep_tables(val, title="mine", test=test, store=store).record.note == ""
