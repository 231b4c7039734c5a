"""The views of the app, each in one line: navigation, links and “Open in …” are made from this table."""

from __future__ import annotations

from session.navigation import Page
from views import calibration, classes, compare, labels, landscapes, lessons, runs, samples, sets, start, train

# The first is the default page. A symbol is a name from fonts.google.com/icons.
LOOK, MAKE, THEORY, TEACH = "Look", "Make", "Theory", "Teach"
PAGES = (
    Page("start", "Start", "home", start.page, of_run=False),
    Page("sets", "Sets", "stacks", sets.page, rules=True, slices=True, opens_runs=True, group=LOOK),
    Page("samples", "Samples", "photo_library", samples.page, rules=True, group=LOOK),
    Page("classes", "Classes", "category", classes.page, rules=True, slices=True, group=LOOK),
    Page("calibration", "Calibration", "balance", calibration.page, slices=True, group=LOOK),
    Page("labels", "Labels", "label", labels.page, group=LOOK),
    Page("train", "Train", "model_training", train.page, parts=tuple(train.PARTS), group=MAKE),
    Page("compare", "Compare", "compare_arrows", compare.page, rules=True, slices=True, opens_runs=True, group=MAKE),
    Page("runs", "Runs", "inventory_2", runs.page, of_run=False, group=MAKE),
    Page("landscapes", "Landscapes", "landscape", landscapes.page, parts=tuple(landscapes.PARTS), group=THEORY),
    Page("lessons", "Lessons", "school", lessons.page, parts=lessons.PARTS, of_run=False, group=TEACH),
)
