"""An address shows nothing that belongs to another session, no address breaks a page, and no name of a user is markup."""

from __future__ import annotations

import numpy as np
import pytest
from browsing import RUDE, markdown

import workbench as wb
from workbench.store.imported_tables import keep_tables


@pytest.fixture
def upload(drawn):
    """An upload of another session of this server."""
    from session import cached_data

    table = wb.LogitTable(np.random.default_rng(0).normal(size=(80, 3)), np.arange(80) % 3)
    return keep_tables(table, title="secret", store=cached_data.claim_uploads())


def chosen(app):
    return {box.label: box.options for box in app.selectbox}["Run"]


@pytest.mark.writes
def test_an_upload_is_found_by_its_whole_key_and_by_no_part_of_it(drawn, upload):
    for guess in ("", *"0123456789abcdef", upload.key[:4], upload.key[:11], "*", "?" * 12):
        assert not [name for name in chosen(drawn("sets", run=guess)) if "secret" in name], guess
    assert [name for name in chosen(drawn("sets", run=upload.short)) if "secret" in name]


@pytest.mark.parametrize("asked", ["/x", "/", "..", "../..", "/etc/passwd", "[", "\0", "a" * 4000, "%2e%2e", "~"])
def test_a_run_that_cannot_be_is_named_and_the_page_shows_another(drawn, asked):
    app = drawn("sets", run=asked)
    assert "is not here" in app.warning[0].value
    assert app.title[0].value == "Sets"


@pytest.fixture
def rude(store):
    """A run whose every name is a picture from another address, as Markdown reads it."""
    random = np.random.default_rng(0)
    groups = [f"{RUDE} {number}" for number in range(2)]
    table = wb.LogitTable(
        random.normal(size=(120, 4)),
        np.arange(120) % 4,
        class_names=[f"{RUDE} {number}" for number in "abcd"],
        groups=np.repeat(groups, 2),
        class_counts=[5, 10, 50, 200],
        attributes={RUDE: np.resize(groups, 120), f"size {RUDE}": random.random(120)},
        ids=[f"{RUDE} {number}" for number in range(120)],
    )
    return keep_tables(table, title=RUDE, store=store)


@pytest.mark.writes
@pytest.mark.parametrize("view", ["sets", "classes", "samples", "calibration", "compare"])
def test_no_name_of_a_user_is_markdown(drawn, rude, view):
    app = drawn(view, run=rude.short)
    assert app.title
    assert [text for text in markdown(app) if "](" in text.replace(r"\]\(", "") and "elsewhere" in text] == []
