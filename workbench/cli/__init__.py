"""The command line: one file per command; `COMMANDS` lists them all."""

from workbench.cli.app import APP
from workbench.cli.base import Command
from workbench.cli.claims import CLAIMS
from workbench.cli.compare import COMPARE
from workbench.cli.evaluate import EVALUATE
from workbench.cli.importing import IMPORT
from workbench.cli.lesson import LESSON
from workbench.cli.losses import LOSSES
from workbench.cli.predict import PREDICT
from workbench.cli.quiz import QUIZ
from workbench.cli.recipes import RECIPES
from workbench.cli.reproduce import REPRODUCE
from workbench.cli.runs import RUNS
from workbench.cli.sweep import SWEEP
from workbench.cli.train import TRAIN
from workbench.cli.worker import WORKER

COMMANDS: tuple[Command, ...] = (
    *(APP, TRAIN, SWEEP, IMPORT, EVALUATE, COMPARE, PREDICT),
    *(RUNS, LOSSES, RECIPES, REPRODUCE, CLAIMS, LESSON, QUIZ, WORKER),
)

__all__ = ["COMMANDS", "Command"]
