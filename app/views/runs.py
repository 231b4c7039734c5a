"""Runs: find them, name, tag and pin them, compare them, and remove them with a way back."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from session import messages, reading
from session.address import any_text, bound
from session.navigation import go_to
from workbench import words
from workbench.figures.base import counted
from workbench.store import DEMO, Store, StoredRun, marks

CHOSEN, REMOVED = "chosen runs", "removed"  # of a session: keys of the runs that are marked, and that it removed last
COLUMNS = {
    "pinned": st.column_config.TextColumn("Pinned", width="small"),
    "name": st.column_config.TextColumn("Run", width="medium"),
    "tags": st.column_config.ListColumn("Tags", width="medium"),
    "data": st.column_config.TextColumn("Data"),
    "loss": st.column_config.TextColumn("Loss"),
    "rows": st.column_config.NumberColumn("Test rows", width="small"),
    "finished": st.column_config.TextColumn("Since", width="small"),
    "kept": st.column_config.TextColumn("Kept", width="small"),
}


def page() -> None:
    """The view."""
    st.title("Runs", anchor=False)
    st.markdown(
        "Every run on this machine. Choose one or several in the table. A run that is pinned comes first, and the one pinned "
        "last is what opens first."
    )
    body()


@st.fragment
@messages.friendly
def body() -> None:
    """All of the page."""
    offer_undo()
    runs = marks.pinned_first(Store(), reading.runs())
    if not runs:
        messages.no_runs()
        return
    frame = listed(runs)
    sought = st.text_input("Find", placeholder="a part of a name, a tag, a loss, a key", **bound("find", any_text))
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
    event = st.dataframe(
        found, column_config=COLUMNS, column_order=list(COLUMNS), hide_index=True, on_select="rerun",
        selection_mode="multi-row", selection_default={"selection": {"rows": rows}}, key=f"runs {' '.join(lines)}",
    )  # fmt: skip
    st.session_state[CHOSEN] = [lines[line] for line in event.selection.rows]
    return st.session_state[CHOSEN]


def listed(runs: list[StoredRun]) -> pd.DataFrame:
    """One line per run: what it is called, its marks, and what can be searched."""
    known, names = marks.all_marks(Store()), reading.named(runs)
    lines = []
    for run in runs:
        record, its = run.record, known.get(run.key, marks.Marks())
        line = {
            "key": run.key,
            "pinned": "pinned" if its.pinned else "",
            "name": names[run.short],
            "tags": list(its.tags),
            "data": record.data_name or "",
            "loss": words.of_loss(record.loss_name) if record.trained else "",
            "rows": run.sizes().get("test"),
            "finished": record.finished[:10],
            "kept": "package" if run.path.parent == DEMO else "no" if reading.is_brought(run.short) else "yes",
        }
        sought = [run.name, *its.tags, run.key, str(line["data"]), str(line["loss"])]
        lines.append({**line, "sought": " ".join(sought)})
    return pd.DataFrame(lines)


def actions(chosen: list[StoredRun]) -> None:
    """What can be done with the chosen runs; what cannot is there and says why."""
    if not chosen:
        st.caption("Nothing is chosen: mark lines at their left edge.")
        return
    one = chosen[0] if len(chosen) == 1 else None
    own = [run for run in chosen if run.path.parent not in (DEMO, reading.uploads().root)]
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button("Open", icon=":material/stacks:", disabled=one is None, type="primary") and one is not None:
            go_to("sets", {"run": one.short}, {"run": one.short})
        compare(chosen)
        pinned = all(marks.marks_of(Store(), run.key).pinned for run in chosen)
        label, act = ("Unpin", marks.unpin) if pinned else ("Pin", marks.pin)
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
                Store().put_away(run.key)
            st.session_state[REMOVED] = [run.key for run in own]
            reading.forget()
            st.rerun()


def compare(chosen: list[StoredRun]) -> None:
    """A button to Compare, where all were measured on the same rows."""
    rows = {run.rows_of("test") for run in chosen}
    fits = len(chosen) > 1 and len(rows) == 1 and None not in rows
    why = None if fits else "choose two or more that were measured on the same test rows, with labels"
    if st.button("Compare", icon=":material/compare_arrows:", disabled=not fits, help=why):
        first, *others = [run.short for run in chosen]
        go_to("compare", {"run": first, "with": ",".join(others)}, {"run": first})


@messages.friendly
def tag(chosen: list[StoredRun]) -> None:
    """Tags of the chosen runs: those that all have can be taken, new ones given."""
    shared = [set(marks.marks_of(Store(), run.key).tags) for run in chosen]
    before = sorted(set.intersection(*shared))
    with st.form("tags", border=False):
        typed = st.text_input("With commas in between", ", ".join(before), placeholder="course, to keep")
        left = [each.strip() for each in typed.split(",") if each.strip()]
        if st.form_submit_button("Save"):
            for run in chosen:
                marks.untag(Store(), run.key, *(each for each in before if each not in left))
                marks.tag(Store(), run.key, *left)
            st.rerun()


@messages.friendly
def rename(run: StoredRun) -> None:
    """Another title for a run."""
    with st.form("rename", border=False):
        title = st.text_input("What to call it", run.title if not run.record.trained else "")
        if st.form_submit_button("Save"):
            Store().rename(run.key, title)
            reading.forget()
            st.rerun()


@messages.friendly
def offer_undo() -> None:
    """What was removed last, and the way back."""
    removed = st.session_state.get(REMOVED, [])
    if not removed:
        return
    with st.container(horizontal=True, vertical_alignment="center", key="undo"):
        st.markdown(f"{counted(len(removed), 'run')} removed.", width="content")
        if st.button("Undo", icon=":material/undo:"):
            for key in removed:
                Store().bring_back(key)
            st.session_state[REMOVED] = []
            reading.forget()
            st.rerun()
