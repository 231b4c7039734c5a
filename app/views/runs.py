"""Runs: find them, name, tag and pin them, compare them, and remove them with a way back."""

from __future__ import annotations

import base64
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

import workbench as wb
from controls.bar import bar, introduce
from session import cached_data, messages
from session.address import any_text, bound
from session.navigation import go_to
from workbench import display_names
from workbench.figures.base import counted
from workbench.figures.style import Theme, theme
from workbench.metrics.intervals import wilson_interval
from workbench.store import DEMO, Store, StoredRun, tags

ABOUT = "Every run on this machine. Pinned runs are listed first; the last one pinned opens at start."
HEAD, LINE, TALLEST = 35, 56, 820  # pixels of the head of the table, of a line, and of all of it
WIDE, HIGH = 124, 48  # of a drawn interval
MEASURED = 50  # runs whose tables are read for their metrics
CHOSEN, REMOVED = "chosen runs", "removed"  # of a session: keys of the runs that are marked, and that it removed last
COLUMNS = {
    "pinned": st.column_config.TextColumn("Pinned", width="small"),
    "name": st.column_config.TextColumn("Run", width=250),
    "tags": st.column_config.ListColumn("Tags", width="medium"),
    "rows": st.column_config.TextColumn(
        "Test rows", width="small", help="runs with the same letter were tested on the same rows and can be compared"
    ),
    "top_1": st.column_config.NumberColumn(
        "Top-1", format="%.1f%%", width="small", help="accuracy of the likeliest class, on test rows"
    ),
    "f1": st.column_config.NumberColumn(
        "F1",
        format="%.1f%%",
        width="small",
        help="where rows have many labels: micro-F1 of the sets at the threshold that is best on the validation rows",
    ),
    "exact": st.column_config.NumberColumn(
        "Exact", format="%.1f%%", width="small", help="share of these sets that are just the labels of their row"
    ),
    "drawn": st.column_config.ImageColumn(
        "0 to 100 %", width=WIDE, help="top-1 accuracy, or F1, with its 95 % interval, on a line from 0 to 100 %"
    ),
    "interval": st.column_config.TextColumn("95 %", width="small", help="the interval of the top-1 accuracy, or of F1"),
    "learning": st.column_config.LineChartColumn(
        "Learning", width=WIDE, y_min=0, y_max=1, help="accuracy on validation rows from 0 to 1, epoch by epoch"
    ),
    "calibration": st.column_config.NumberColumn(
        "Calibration", format="%.1f%%", width="small", help="expected calibration error of the likeliest class"
    ),
    "state": st.column_config.TextColumn("State", width="small"),
    "data": st.column_config.TextColumn("Data", width="small"),
    "loss": st.column_config.TextColumn("Loss", width=100),
    "finished": st.column_config.TextColumn("Since", width="small"),
    "kept": st.column_config.TextColumn("Kept", width="small"),
}
SELDOM = ("pinned", "tags", "f1", "exact", "data", "loss")  # columns that are shown where a run has something in them


def page() -> None:
    """The view."""
    introduce("Runs", ABOUT)
    body()


@st.fragment
@messages.friendly
def body() -> None:
    """All of the page."""
    offer_undo()
    offer_trash()
    runs = tags.pinned_first(Store(), cached_data.runs())
    if not runs:
        messages.no_runs()
        return
    frame = listed(runs, st.context.theme.type == "dark")
    with bar():
        sought = st.text_input(
            "Find", placeholder="a part of a name, a tag, a loss, a key", width=420, **bound("find", any_text)
        )
    found = frame[frame["sought"].str.contains(sought, case=False, regex=False)].reset_index(drop=True)
    if found.empty:
        st.info("No run is like that.", icon=":material/search_off:")
        return
    by_key = {run.key: run for run in runs}
    actions([by_key[key] for key in marked(found)])


def marked(found: pd.DataFrame) -> list[str]:
    """The keys of the runs that are marked in the table.

    Streamlit remembers lines by their numbers. A pin or a search changes which run is on which line, so that another table
    is drawn then, in which the same runs are marked.
    """
    lines = found["key"].tolist()
    rows = [lines.index(key) for key in st.session_state.get(CHOSEN, []) if key in lines]
    order = [name for name in COLUMNS if name in found and (name not in SELDOM or found[name].map(is_said).any())]
    with st.container(key="listed"):
        event = st.dataframe(
            found, column_config=COLUMNS, column_order=order, hide_index=True, placeholder="", on_select="rerun",
            selection_mode="multi-row", selection_default={"selection": {"rows": rows}}, key=f"runs {' '.join(lines)}",
            height=min(HEAD + LINE * len(lines) + 2, TALLEST), row_height=LINE,
        )  # fmt: skip
    st.session_state[CHOSEN] = [lines[line] for line in event.selection.rows]
    return st.session_state[CHOSEN]


def is_said(cell: Any) -> bool:
    """Whether there is something in a cell."""
    return cell == cell if isinstance(cell, float) else bool(len(cell))


def listed(runs: list[StoredRun], dark: bool) -> pd.DataFrame:
    """One line per run: what it is called, its marks, and what can be searched."""
    known, names = tags.all_tags(Store()), cached_data.named(runs)
    lines, groups = [], same_rows(runs)
    for place, run in enumerate(runs):
        record, its = run.record, known.get(run.key, tags.Tags())
        loss, data = display_names.of_loss(record.loss_name) if record.trained else "", record.data_name or ""
        line = {
            "key": run.key,
            "pinned": "pinned" if its.pinned else "",
            "name": names[run.short],
            "tags": list(its.tags),
            "data": "" if names[run.short].startswith(data) else data,  # the name says it already
            "loss": "" if names[run.short].endswith(loss) else loss,
            "state": state(run),
            "rows": f"{groups[run.key]}{counted(run.sizes()['test'])}",
            **(metrics(run.short, dark) if place < MEASURED else {}),
            "finished": record.finished[:10],
            "kept": "package" if run.path.parent == DEMO else "no" if cached_data.is_upload(run.short) else "yes",
        }
        sought = [run.name, *its.tags, run.key, data, loss]
        lines.append({**line, "sought": " ".join(sought)})
    return pd.DataFrame(lines)


def same_rows(runs: list[StoredRun]) -> dict[str, str]:
    """Key → the letter that runs on the same test rows share, as `A · `; nothing where a run can be compared with no other."""
    shared = Counter(rows for run in runs if (rows := run.rows_of("test")) is not None)
    several = (rows for rows, n in shared.items() if n > 1)
    letters = dict(zip(several, map(chr, range(ord("A"), ord("Z") + 1)), strict=False))
    return {
        run.key: f"{letters[rows]} · " if (rows := run.rows_of("test")) is not None and rows in letters else ""
        for run in runs
    }


def state(run: StoredRun) -> str:
    """How the scores of a run came to be, and whether its training went wrong."""
    if not run.record.trained:
        return "scores of a file"
    if run.record.warned:
        return "constant answer"
    return counted(int(run.record.run.get("epochs") or 0), "epoch")


@st.cache_data(show_spinner="Measuring the runs…", max_entries=8 * MEASURED)
def metrics(key: str, dark: bool) -> dict[str, Any]:
    """Top-1 accuracy and calibration error of a run, or F1 and exact match where rows have many labels, with an interval.

    And the course of its training; all as far as known.
    """
    try:
        stored = cached_data.run(key)
        val, test, history = stored.tables["val"], stored.tables["test"], stored.history
    except ValueError:  # the table says what is wrong with it where it is opened
        return {}
    found: dict[str, Any] = {"learning": history["val_accuracy"].tolist() if len(history) > 1 else []}
    n = int(test.labelled.sum()) if test.labels is not None else 0
    if n == 0:
        return found
    if test.many_labels:
        return {**found, **of_many_labels(val, test, theme(dark))}
    accuracy = wb.metrics.top_k_accuracy(test, K=1)
    low, high = (float(end) for end in wilson_interval(np.array(accuracy * n), np.array(n)))
    error = wb.metrics.expected_calibration_error(test)
    return {
        **found,
        **{"top_1": 100 * accuracy, "calibration": 100 * error},
        **with_interval(low, accuracy, high, theme(dark)),
    }


def of_many_labels(val: wb.LogitTable, test: wb.LogitTable, colours: Theme) -> dict[str, Any]:
    """F1 and exact match of the sets at the threshold whose F1 is highest on the validation rows, if these have labels."""
    if val.labels is None or not val.known.any():
        return {}
    threshold, _ = wb.figures.f1_against_threshold({"val": val}).best["val"]
    metrics = [wb.metrics.micro_f1, wb.metrics.exact_match]
    report = wb.report(test, [wb.Threshold(threshold)], metrics, interval=0.95, val=val)
    (low, f1, high), (_, exact, _) = report[["low", "value", "high"]].to_numpy(float).tolist()
    return {"f1": 100 * f1, "exact": 100 * exact, **with_interval(low, f1, high, colours)}


def with_interval(low: float, value: float, high: float, colours: Theme) -> dict[str, Any]:
    """The interval of a share in words and drawn."""
    return {"interval": f"{100 * low:.1f}–{100 * high:.1f}", "drawn": interval_drawn(low, value, high, colours)}


def interval_drawn(low: float, value: float, high: float, colours: Theme) -> str:
    """A share with its interval on a line from 0 to 1, as the address of a picture."""
    left, at, right = (4 + (WIDE - 8) * share for share in (low, value, high))
    picture = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDE}" height="{HIGH}" viewBox="0 {12 - HIGH // 2} {WIDE} {HIGH}">'
        f'<path d="M4 12H{WIDE - 4}" stroke="{colours.grid}" stroke-width="2"/>'
        f'<path d="M{left:.1f} 12H{right:.1f}" stroke="{colours.accent}" stroke-width="8" opacity=".5"/>'
        f'<circle cx="{at:.1f}" cy="12" r="3" fill="{colours.accent}"/></svg>'
    )
    return f"data:image/svg+xml;base64,{base64.b64encode(picture.encode()).decode()}"


def actions(chosen: list[StoredRun]) -> None:
    """The actions for the chosen runs; one that is not possible says why."""
    if not chosen:
        st.caption("Select runs with the boxes on the left.")
        return
    one = chosen[0] if len(chosen) == 1 else None
    own = [run for run in chosen if run.path.parent not in (DEMO, cached_data.uploads().root)]
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button("Open", icon=":material/stacks:", disabled=one is None, type="primary") and one is not None:
            go_to("sets", {"run": one.short}, {"run": one.short})
        compare(chosen)
        pinned = all(tags.tags_of(Store(), run.key).pinned for run in chosen)
        label, act = ("Unpin", tags.unpin) if pinned else ("Pin", tags.pin)
        if st.button(label, icon=":material/keep:"):
            for run in chosen:
                act(Store(), run.key)
            st.rerun()
        with st.popover("Tags", icon=":material/sell:"):
            tag(chosen)
        with st.popover("Rename", icon=":material/edit:", disabled=len(own) != 1 or one is None):
            if one is not None and own:
                rename(one)
        why = None if own else "runs of the package stay, and files you brought are forgotten by themselves"
        if st.button("Remove", icon=":material/delete:", disabled=not own, help=why):
            for run in own:
                Store().trash(run.key)
            st.session_state[REMOVED] = [run.key for run in own]
            cached_data.forget()
            st.rerun()
    tell_why_not(chosen)


def compare(chosen: list[StoredRun]) -> None:
    """A button to Compare, where all were measured on the same rows."""
    reasons = cached_data.incomparable(chosen[0].short) if chosen else {}
    fits = len(chosen) > 1 and not any(run.short in reasons for run in chosen[1:])
    why = None if fits else "choose two or more that were measured on the same test rows, with labels"
    if st.button("Compare", icon=":material/compare_arrows:", disabled=not fits, help=why):
        first, *others = [run.short for run in chosen]
        go_to("compare", {"run": first, "with": ",".join(others)}, {"run": first})


def tell_why_not(chosen: list[StoredRun]) -> None:
    """Why the first of the chosen runs cannot be compared with the others."""
    reasons = cached_data.incomparable(chosen[0].short)
    names = cached_data.named(chosen)
    told = [
        f"- **{messages.plain(names[each.short])}**: {reasons[each.short]}" for each in chosen if each.short in reasons
    ]
    if told:
        st.markdown(f"Not comparable with **{messages.plain(names[chosen[0].short])}**:\n\n" + "\n".join(told))


@messages.friendly
def tag(chosen: list[StoredRun]) -> None:
    """Tags of the chosen runs: those that all have can be taken, new ones given."""
    shared = [set(tags.tags_of(Store(), run.key).tags) for run in chosen]
    before = sorted(set.intersection(*shared))
    with st.form("tags", border=False):
        typed = st.text_input("With commas in between", ", ".join(before), placeholder="course, to keep")
        left = [each.strip() for each in typed.split(",") if each.strip()]
        if st.form_submit_button("Save"):
            for run in chosen:
                tags.untag(Store(), run.key, *(each for each in before if each not in left))
                tags.tag(Store(), run.key, *left)
            st.rerun()


@messages.friendly
def rename(run: StoredRun) -> None:
    """Another title for a run."""
    with st.form("rename", border=False):
        title = st.text_input("What to call it", run.title if not run.record.trained else "")
        if st.form_submit_button("Save"):
            Store().rename(run.key, title)
            cached_data.forget()
            st.rerun()


@messages.friendly
def offer_undo() -> None:
    """The runs that were removed last, and a button that restores them."""
    removed = st.session_state.get(REMOVED, [])
    if not removed:
        return
    with st.container(horizontal=True, vertical_alignment="center", key="undo"):
        st.markdown(f"{counted(len(removed), 'run')} removed.", width="content")
        if st.button("Undo", icon=":material/undo:"):
            restore(removed)
            cached_data.forget()
            st.rerun()


@messages.friendly
def offer_trash() -> None:
    """The removed runs, with a button that restores them."""
    trashed = Store().trashed()
    if not trashed:
        return
    with st.popover(f"Trash ({len(trashed)})", icon=":material/delete:"):
        names = {run.key: run.display_name for run in trashed}
        chosen = st.multiselect("Removed runs", names, format_func=lambda key: f"{names[key]} ({key[:12]})")
        if st.button("Restore", icon=":material/undo:", disabled=not chosen):
            restore(chosen)
            cached_data.forget()
            st.rerun()
        st.caption("`workbench runs --prune` deletes them for good.")


def restore(keys: list[str]) -> None:
    """Bring runs back, each on its own; those that cannot be stay in the list, with the reason."""
    st.session_state[REMOVED] = []
    for key in keys:
        try:
            Store().restore(key)
        except (ValueError, OSError) as error:
            st.session_state[REMOVED].append(key)
            st.toast(messages.plain(messages.without_places(str(error))), icon=":material/error:")
