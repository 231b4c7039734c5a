"""The views of the app, each in one line: navigation, links and “Open in …” are made from this table."""

from __future__ import annotations

from session.navigation import Page
from views import calibration, classes, compare, labels, landscapes, lessons, runs, samples, sets, start, train

# The first is shown to whoever asks for none. A symbol is a name from fonts.google.com/icons.
PAGES = (
    Page("start", "Start", "home", start.page, of_run=False),
    Page("sets", "Sets", "stacks", sets.page, rules=True, opens_runs=True),
    Page("samples", "Samples", "photo_library", samples.page, rules=True),
    Page("classes", "Classes", "category", classes.page, rules=True),
    Page("calibration", "Calibration", "balance", calibration.page),
    Page("train", "Train", "model_training", train.page, parts=tuple(train.PARTS)),
    Page("compare", "Compare", "compare_arrows", compare.page, rules=True, opens_runs=True),
    Page("labels", "Labels", "label", labels.page),
    Page("landscapes", "Landscapes", "landscape", landscapes.page, parts=tuple(landscapes.PARTS)),
    Page("lessons", "Lessons", "school", lessons.page, parts=lessons.PARTS, of_run=False),
    Page("runs", "Runs", "inventory_2", runs.page, of_run=False),
)
