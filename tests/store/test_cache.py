"""What is kept beside the runs and can be computed again: under a key of what decides it, whole or not there."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.files.cache import FEATURES, PLANES, Cache, content_key

KEY = content_key(["garden", 0])
ROWS = np.arange(12.0).reshape(6, 2)


def keep(store, rows=ROWS, cache: Cache = FEATURES) -> None:
    with cache.writing(store, KEY) as folder:
        np.save(folder / "train.npy", rows)


def test_what_was_kept_is_read_back_and_what_was_not_is_none(store):
    assert FEATURES.arrays(store, KEY, ["train"]) is None
    keep(store)
    kept = FEATURES.arrays(store, KEY, ["train"])
    np.testing.assert_array_equal(kept["train"], ROWS)
    assert FEATURES.arrays(store, content_key(["garden", 1]), ["train"]) is None


def test_whatever_is_done_to_a_kept_array_the_file_stays_as_it_is(store):
    keep(store)
    FEATURES.arrays(store, KEY, ["train"])["train"][:] = 0
    np.testing.assert_array_equal(FEATURES.arrays(store, KEY, ["train"])["train"], ROWS)


@pytest.mark.parametrize("content", [b"", b"PK", ROWS.tobytes()])
def test_what_is_damaged_counts_as_not_there_with_a_warning_until_it_is_written_again(store, content):
    keep(store)
    (store.root / FEATURES.folder / KEY / "train.npy").write_bytes(content)
    with pytest.warns(UserWarning, match=rf"features are computed anew: .features/{KEY[:12]}: train.npy is damaged"):
        assert FEATURES.arrays(store, KEY, ["train"]) is None
    keep(store)
    np.testing.assert_array_equal(FEATURES.arrays(store, KEY, ["train"])["train"], ROWS)


def test_a_block_that_fails_leaves_nothing_behind_and_the_old_one_in_its_place(store):
    keep(store)

    def fails() -> None:
        with FEATURES.writing(store, KEY) as folder:
            np.save(folder / "train.npy", 2 * ROWS)
            raise RuntimeError("halfway")

    with pytest.raises(RuntimeError, match="halfway"):
        fails()
    np.testing.assert_array_equal(FEATURES.arrays(store, KEY, ["train"])["train"], ROWS)
    assert [path.name for path in (store.root / FEATURES.folder).iterdir()] == [KEY]


def test_kinds_of_things_do_not_meet_and_none_of_them_is_a_run(store):
    keep(store)
    keep(store, 2 * ROWS, PLANES)
    np.testing.assert_array_equal(FEATURES.arrays(store, KEY, ["train"])["train"], ROWS)
    assert not store.has(KEY)
    assert not [run for run in store.runs() if run.path.parent == store.root]
