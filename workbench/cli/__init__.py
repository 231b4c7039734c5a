"""The command line: one file per command; `COMMANDS` lists them all."""

from workbench.cli.app import APP
from workbench.cli.base import Command
from workbench.cli.card import CARD
from workbench.cli.check import CHECK
from workbench.cli.claims import CLAIMS
from workbench.cli.compare import COMPARE
from workbench.cli.data import DATA
from workbench.cli.draw import DRAW
from workbench.cli.evaluate import EVALUATE
from workbench.cli.importing import IMPORT
from workbench.cli.lesson import LESSON
from workbench.cli.losses import LOSSES
from workbench.cli.predict import PREDICT
from workbench.cli.quiz import QUIZ
from workbench.cli.recipes import RECIPES
from workbench.cli.reproduce import REPRODUCE
from workbench.cli.runs import RUNS
from workbench.cli.sets import SETS
from workbench.cli.site import SITE
from workbench.cli.sweep import SWEEP
from workbench.cli.train import TRAIN
from workbench.cli.worker import WORKER

COMMANDS: tuple[Command, ...] = (
    *(APP, DATA, TRAIN, SWEEP, IMPORT, EVALUATE, SETS, COMPARE, PREDICT),
    *(RUNS, LOSSES, RECIPES, REPRODUCE, CLAIMS, LESSON, QUIZ, DRAW, SITE, CHECK, CARD, WORKER),
)

__all__ = ["COMMANDS", "Command"]
