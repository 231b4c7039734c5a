"""A trained run is used: opened again, asked about new rows, and asked for their sets."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from small_runs import CLOUDS, clouds, small, stripes, tags, threads
from torch import nn

import workbench as wb
from workbench.datasets import Dataset, Normalise, load_dataset
from workbench.losses import AverageKTwoHead, CrossEntropy, NoisedTopKImbalanced, Quasibinary
from workbench.store import Store
from workbench.training import TrainedRun, train

pytestmark = pytest.mark.usefixtures("one_thread")
COLUMNS = ["a", "b", "c", "d", "e"]


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A store that the tests of this file only add to."""
    return Store(tmp_path_factory.mktemp("shop"))


@pytest.fixture(scope="module")
def of_arrays(shop):
    """A run on arrays, opened again by its key alone."""
    return TrainedRun.open(train(small(), store=shop, progress=False).stored.key, shop)


@pytest.fixture(scope="module")
def of_named_columns(shop):
    rows = pd.DataFrame(CLOUDS.train.inputs, columns=COLUMNS)
    data = Dataset.from_arrays(rows, CLOUDS.train.labels, class_names=[f"cloud {j}" for j in range(6)])
    return TrainedRun.open(train(small(data), store=shop, progress=False).stored.key, shop)


def folder_of_images(path, images, size=(28, 28)):
    """Each image as a PNG in the folder of its class."""
    for number, (image, label) in enumerate(zip(images.inputs, images.labels, strict=True)):
        (path / f"class {label}").mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).resize(size).save(path / f"class {label}" / f"{number:03}.png")
    return path


def test_a_run_on_arrays_is_opened_again_and_says_of_the_test_rows_what_it_said(of_arrays):
    table = of_arrays.predict(CLOUDS.test.inputs)
    stored = of_arrays.tables["test"]
    np.testing.assert_array_equal(table.scores, stored.scores)
    assert table.labels is None
    assert (table.link, table.class_names, table.groups) == (stored.link, stored.class_names, stored.groups)


@pytest.mark.parametrize(
    ("data", "fields"),
    [
        (CLOUDS, {"model": "mlp"}),
        (CLOUDS, {"loss": AverageKTwoHead(K=2)}),
        (CLOUDS, {"loss": NoisedTopKImbalanced(K=2)}),
        (CLOUDS, {"loss": CrossEntropy(), "monitor": "val_accuracy"}),
        (tags(), {"loss": Quasibinary()}),
        (clouds(n=6000, n_columns=3), {"epochs": 1}),  # a test split of more than one block
        (stripes(), {"model": "cnn", "epochs": 1, "batch_size": 16}),
        (stripes(), {"model": "linear", "transforms": (Normalise((0.3,) * 3, (0.2,) * 3),)}),
    ],
    ids=["mlp", "two heads", "cosines", "a monitor", "quasibinary", "several blocks", "cnn", "normalised"],
)
def test_the_test_rows_get_their_stored_scores_bit_for_bit(shop, data, fields):
    trained = TrainedRun.open(train(small(data, **fields), store=shop, progress=False).stored.key, shop)
    table, stored = trained.predict(data.test.inputs), trained.tables["test"]
    np.testing.assert_array_equal(table.scores, stored.scores)
    assert (table.link, table.link_constant) == (stored.link, stored.link_constant)


def test_a_head_on_cached_features_says_the_same_too(shop):
    backbone = train(small(stripes(), model="cnn", epochs=1, batch_size=16), store=shop, progress=False)
    head = train(small(stripes(), model="cnn", features=backbone), store=shop, progress=False)
    opened = TrainedRun.open(head.stored.key, shop)
    np.testing.assert_array_equal(opened.predict(stripes().test.inputs).scores, head.tables["test"].scores)


def test_the_number_of_threads_does_not_show_in_the_scores_of_a_small_network(of_arrays):
    rows = clouds(n=2000, seed=3).train.inputs
    with threads(1):
        alone = of_arrays.predict(rows)
    with threads(4):
        np.testing.assert_array_equal(of_arrays.predict(rows).scores, alone.scores)


def test_heads_that_were_trained_together_say_the_same_too(tmp_path):
    store = Store(tmp_path)
    found = wb.sweep(small(model="mlp"), {"seed": range(2)}, rule=wb.TopK(2), store=store, progress=False)
    for trained in found.runs:
        assert trained.stored.record.together == 2
        opened = TrainedRun.open(trained.stored.key, store)
        np.testing.assert_array_equal(opened.predict(CLOUDS.test.inputs).scores, trained.tables["test"].scores)


def test_a_model_given_as_a_module_is_asked_for_and_gets_the_stored_weights(shop):
    def made():
        return nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 6))

    key = train(small(model=made()), store=shop, progress=False).stored.key
    with pytest.raises(ValueError, match=r"was a Module \(Sequential\).*TrainedRun.open\('\w+', model=…\)"):
        TrainedRun.open(key, shop).predict(CLOUDS.test.inputs)
    opened = TrainedRun.open(key, shop, model=made())
    np.testing.assert_array_equal(opened.predict(CLOUDS.test.inputs).scores, opened.tables["test"].scores)
    with pytest.raises(ValueError, match=r"weights of .* are not those of a"):
        TrainedRun.open(key, shop, model=nn.Linear(5, 6)).predict(CLOUDS.test.inputs)


def test_a_run_whose_data_are_gone_still_predicts(shop, tmp_path):
    folder = folder_of_images(tmp_path / "photos", stripes(60).train)
    data = load_dataset(folder, size=24, resize=28)
    trained = train(small(data, epochs=1), store=shop, progress=False)
    away = folder.rename(tmp_path / "away")
    opened = TrainedRun.open(trained.stored.key, shop)
    again = [str(away / file) for file in data.test.inputs.files]
    np.testing.assert_array_equal(opened.predict(again).scores, opened.tables["test"].scores)


def test_images_in_files_are_cut_as_in_training_also_where_the_dataset_was_brought(shop, tmp_path):
    folder = folder_of_images(tmp_path / "photos", stripes(60).train, size=(40, 30))
    named = load_dataset(folder, size=20, resize=26)
    brought = Dataset.from_arrays(
        named.train.inputs, named.train.labels
    )  # `ImageFiles`, without a name to load them by
    trained = TrainedRun.open(train(small(brought, epochs=1), store=shop, progress=False).stored.key, shop)
    assert trained.stored.record.resize == 26
    files = brought.test.inputs.files
    np.testing.assert_array_equal(trained.predict(brought.test.inputs).scores, trained.tables["test"].scores)
    whole = trained.predict(folder)
    assert whole.ids.tolist() == sorted(whole.ids.tolist())
    rows = [whole.ids.tolist().index(file) for file in files]
    np.testing.assert_allclose(whole.scores[rows], trained.tables["test"].scores, rtol=1e-5, atol=1e-5)
    one = trained.predict(folder / files[0])
    np.testing.assert_allclose(one.scores[0], trained.tables["test"].scores[0], rtol=1e-5, atol=1e-5)


def test_files_serve_a_network_that_was_trained_on_arrays_of_pixels(shop, tmp_path):
    data = stripes()
    trained = train(small(data), store=shop, progress=False)
    folder = folder_of_images(tmp_path / "photos", data.test)
    paths = sorted(folder.rglob("*.png"), key=lambda path: path.name)
    np.testing.assert_array_equal(trained.predict(paths).scores, trained.tables["test"].scores)


def test_columns_are_found_by_their_names(of_named_columns, tmp_path):
    rows = pd.DataFrame(CLOUDS.test.inputs.astype(float), columns=COLUMNS)
    expected = of_named_columns.predict(CLOUDS.test.inputs)
    turned = rows[COLUMNS[::-1]].assign(id=[f"row {i}" for i in range(len(rows))], note="a word")
    turned.to_csv(tmp_path / "new.csv", index=False)
    for given in (turned, tmp_path / "new.csv", str(tmp_path / "new.csv")):
        table = of_named_columns.predict(given)
        np.testing.assert_array_equal(table.scores, expected.scores)
        assert table.ids[2] == "row 2"
    with pytest.raises(ValueError, match=r"lacks the columns b, which the network was trained on; it has e, d, c, a"):
        of_named_columns.predict(turned.drop(columns="b"))


def test_columns_without_names_are_counted(of_arrays, tmp_path):
    rows = CLOUDS.test.inputs
    np.save(tmp_path / "new.npy", rows)
    np.savetxt(tmp_path / "bare.csv", rows.astype(float), delimiter=",", fmt="%.17g")
    pd.DataFrame(rows.astype(float)).add_prefix("x").to_csv(tmp_path / "named.csv", index=False)
    for name in ("new.npy", "bare.csv", "named.csv"):
        np.testing.assert_array_equal(of_arrays.predict(tmp_path / name).scores, of_arrays.tables["test"].scores)
    pd.DataFrame(rows[:, :4]).to_csv(tmp_path / "four.csv", index=False)
    with pytest.raises(ValueError, match=r"four.csv has 4 columns; the network was trained on 5 numbers a row"):
        of_arrays.predict(tmp_path / "four.csv")


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (
            np.zeros((3, 4)),
            r"inputs have shape \(3, 4\); the network was trained on rows of shape \(5,\), so give \(n, 5\)",
        ),
        (np.zeros((0, 5)), "there are no rows to predict"),
        (np.full((3, 5), np.nan), "NaN or infinite numbers, first in row 0"),
        (["a.png"], "trained on rows of numbers, not on images; give a .csv or .npy file with 5 columns"),
        (
            "nowhere.csv",
            "there is no file and no folder nowhere.csv; give a .csv or .npy file with 5 columns of numbers",
        ),
        (".", "is not what the network was trained on; give a .csv or .npy file"),
    ],
)
def test_rows_of_another_kind_are_refused_in_words(of_arrays, given, error, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ValueError, OSError), match=error):
        of_arrays.predict(given)


def test_files_that_are_no_csv_and_folders_without_images_are_refused(of_arrays, shop, tmp_path):
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(ValueError, match=r"empty.csv cannot be read as a CSV file"):
        of_arrays.predict(tmp_path / "empty.csv")
    (tmp_path / "torn.npy").write_bytes(b"no array")
    with pytest.raises(ValueError, match=r"torn.npy cannot be read as a .npy file"):
        of_arrays.predict(tmp_path / "torn.npy")
    (tmp_path / "words.csv").write_text("a,b,c,d,e\n1,2,3,4,five\n")
    with pytest.raises(ValueError, match="columns that are not numbers: e"):
        of_arrays.predict(tmp_path / "words.csv")
    of_photos = train(small(stripes()), store=shop, progress=False)
    (tmp_path / "none").mkdir()
    with pytest.raises(ValueError, match="none holds no image"):
        of_photos.predict(tmp_path / "none")
    with pytest.raises(FileNotFoundError, match=r"there is no file a.png and 1 more"):
        of_photos.predict(["a.png", "b.png"])
    (tmp_path / "torn.png").write_bytes(b"no image")
    with pytest.raises(ValueError, match=r"torn.png cannot be read as an image"):
        of_photos.predict([tmp_path / "torn.png"])


def test_long_predictions_show_how_far_they_are_block_by_block(of_arrays, monkeypatch):
    output = []

    class Bar:
        def __init__(self, what, unit, *, total, hidden):
            output.append((what, unit, total, hidden))

        __enter__ = __exit__ = lambda *_: None

        def update(self, n):
            output.append(n)

    monkeypatch.setattr("workbench.training.predicting.slow", Bar)
    of_arrays.predict(np.zeros((1100, 5)))
    assert output == [("predicting with clouds · linear · CrossEntropy()", "row", 1100, False), 512, 512, 76]


def test_a_predictor_gives_sets_with_names_by_the_rule_fitted_on_val(of_named_columns):
    predictor = of_named_columns.predictor(wb.AverageK(K=2))
    tables = of_named_columns.tables
    sets = predictor(CLOUDS.test.inputs)
    expected = wb.AverageK(K=2).fit(tables["val"])
    assert predictor.fitted.threshold == expected.threshold
    frame = sets.to_frame()
    assert list(frame.columns) == ["id", "size", "classes", "probabilities"]
    assert frame["classes"][0][0].startswith("cloud ")
    fitted = wb.LAC(0.9).fit(tables["test"])
    assert of_named_columns.predictor(fitted).fitted is fitted
    with pytest.raises(ValueError, match="give a rule such as AverageK"):
        of_named_columns.predictor("AverageK")
