"""Knobs that change while a network learns: their course, how they are written, and what a loss is that holds one."""

from __future__ import annotations

import dataclasses
import json
import math
import subprocess
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench import schedules
from workbench.knobs import knob
from workbench.losses import (
    LDAM,
    LOSSES,
    ROLE,
    AverageKTwoHead,
    CrossEntropy,
    DifferentiableTopK,
    ExactNoisedTopK,
    Focal,
    Loss,
    NoisedTopK,
    from_spec,
)
from workbench.losses.base import FACTS
from workbench.losses.target_size import target_K
from workbench.schedules import COURSES, Schedule, anneal
from workbench.store import RunRecord

ENDS = st.floats(0.01, 100)
SHARES = st.floats(0, 1)


@given(start=ENDS, end=ENDS, over=st.floats(0.01, 1), course=st.sampled_from(list(COURSES)), done=SHARES)
def test_every_course_begins_at_its_start_stays_between_and_is_at_its_end_when_its_time_is_over(
    start, end, over, course, done
):
    schedule = Schedule(start, end, over, course)
    assert schedule.at(0) == pytest.approx(start)
    assert schedule.at(over) == schedule.at(1) == end
    low, high = sorted((start, end))
    assert low * (1 - 1e-12) <= schedule.at(done) <= high * (1 + 1e-12)


@pytest.mark.parametrize(
    ("course", "halfway"),
    [("constant", 4.0), ("linear", 2.5), ("geometric", 2.0), ("cosine", 2.5)],
)
def test_halfway_each_course_is_where_its_name_says(course, halfway):
    assert anneal(4, 1, over=0.5, course=course).at(0.25) == pytest.approx(halfway)


def test_a_cosine_is_slow_at_both_ends_and_a_constant_jumps():
    slow = anneal(1.0, 0.0, over=1.0, course="cosine")
    assert 1 - slow.at(0.1) < 0.1 < 1 - slow.at(0.5) == pytest.approx(0.5)
    assert slow.at(0.9) < 0.1
    jumps = anneal(1, 0, over=0.25, course="constant")
    assert [jumps.at(done) for done in (0, 0.24, 0.25, 1)] == [1, 1, 0, 0]


@given(
    start=ENDS,
    end=ENDS,
    over=st.floats(0, 1, exclude_min=True),
    course=st.sampled_from(list(COURSES)),
)
def test_what_is_printed_can_be_typed_again(start, end, over, course):
    schedule = Schedule(start, end, over, course)
    assert eval(repr(schedule), {"anneal": anneal}) == schedule
    assert schedules.from_text(repr(schedule)) == schedule


def test_what_stands_at_its_default_is_not_printed():
    assert repr(anneal(3.0, 0.2)) == "anneal(3.0, 0.2)"
    assert str(anneal(3.0, 0.2, 0.5, "linear")) == "anneal(3, 0.2, over=0.5, course='linear')"


@pytest.mark.parametrize(
    "text",
    ["anneal(3, 0.2)", " anneal( 3,0.2 ) ", "anneal(start=3, end=0.2)", "wb.schedules.anneal(3, 0.2, 0.75, geometric)"],
)
def test_a_schedule_is_read_as_people_write_it(text):
    assert schedules.from_text(text) == anneal(3, 0.2)


@pytest.mark.parametrize(
    "text",
    [
        "anneal(3)",
        "anneal(3, 0.2, 0.5, 'linear', 7)",
        "anneal(3, 0.2, to=1)",
        "anneal(3, 0.2, end=1)",
        "warm(3, 0.2)",
        "anneal(__import__('os').getpid(), 1)",
        "anneal(3, 2 ** 9)",
        "anneal(",
        "3",
    ],
)
def test_nothing_is_evaluated_and_what_is_no_schedule_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match=r"is not a schedule; write anneal\(3, 0\.2\)"):
        schedules.from_text(text)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"start": "much", "end": 1}, "start = 'much': a schedule goes from a number to a number"),
        ({"start": 1, "end": math.inf}, "end = inf: a schedule goes from a number to a number"),
        ({"start": True, "end": 1}, "start = True"),
        ({"start": 1, "end": 2, "over": 0}, "over = 0; give the share of the training that it takes"),
        ({"start": 1, "end": 2, "over": 1.5}, "over = 1.5; give the share"),
        ({"start": 1, "end": 2, "course": "up"}, "course = 'up'; give one of constant, linear, geometric, cosine"),
        ({"start": 1, "end": 0}, "from 1 to 0; give course='linear' or 'cosine'"),
    ],
)
def test_a_schedule_that_cannot_be_says_what_was_given_and_what_is_allowed(fields, message):
    with pytest.raises(ValueError, match=message):
        anneal(**fields)


def test_a_share_outside_the_training_is_refused():
    with pytest.raises(ValueError, match=r"done = 1\.5; give the share of the training that is done, from 0 to 1"):
        anneal(3, 0.2).at(1.5)


def numeric_knobs() -> list[tuple[type[Loss], str]]:
    return [(loss, name) for loss in LOSSES for name, declared in loss.knobs().items() if declared.numeric]


@pytest.mark.parametrize(("loss_class", "name"), numeric_knobs(), ids=lambda part: getattr(part, "__name__", part))
def test_any_numeric_knob_of_any_loss_may_follow_a_schedule(loss_class, name):
    declared = loss_class.knobs()[name]
    end = declared.default
    start = declared.ends()[-1]  # the largest
    loss = loss_class(**{name: anneal(start, end, course="linear")})
    assert getattr(loss.at(0), name) == start
    assert getattr(loss.at(1), name) == end
    assert type(getattr(loss.at(0.3), name)) is type(end), "a knob of whole numbers is rounded on the way"
    assert loss.at(1) == loss_class().at(1)
    assert from_spec(json.loads(json.dumps(loss.spec()))) == loss
    assert [getattr(loss, fact) for fact in FACTS] == [getattr(loss_class(), fact) for fact in FACTS]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: NoisedTopK(epsilon=anneal(300, 0.2)),
            r"NoisedTopK, anneal\(300, 0.2\): epsilon = 300 is outside \[0, 100\]",
        ),
        (lambda: NoisedTopK(epsilon=anneal(3, 300)), r"epsilon = 300 is outside \[0, 100\]"),
        (lambda: NoisedTopK(K=anneal(2.5, 1)), "K = 2.5 is not allowed; give a whole number ≥ 1"),
        (lambda: DifferentiableTopK(operator=anneal(2, 1)), "only numbers follow a schedule; give one of neural_sort"),
        (
            lambda: DifferentiableTopK(p_k=anneal(2, 1)),
            "only numbers follow a schedule; give numbers ≥ 0 that sum to 1",
        ),
        (lambda: DifferentiableTopK(m=anneal(2, 16)), "p_k reaches rank 5 and m = 2 classes are ranked"),
    ],
)
def test_both_ends_are_what_the_knob_accepts_and_only_numbers_follow_a_schedule(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: wb.Run("digits", learning_rate=anneal(0.1, 0.01)),
            r"learning_rate = anneal\(0.1, 0.01\) is not allowed",
        ),
        (lambda: wb.TopK(anneal(5, 1)), r"K = anneal\(5, 1\) is not allowed; give a whole number"),
        (lambda: wb.load_dataset("digits", seed=anneal(5, 1)), r"seed = anneal\(5, 1\) is not allowed"),
    ],
)
def test_only_knobs_of_losses_take_a_schedule(make, message):
    with pytest.raises(TypeError, match=message):
        make()


def test_a_loss_without_a_schedule_is_itself_at_any_time():
    loss = NoisedTopK(K=3, epsilon=0.2)
    assert loss.at(0.5) is loss
    assert CrossEntropy().at(0) == CrossEntropy()


def test_a_loss_that_is_called_is_the_loss_at_the_end():
    scores, labels = torch.randn(7, 9, generator=torch.Generator().manual_seed(0)), torch.arange(7)
    annealed = ExactNoisedTopK(K=3, epsilon=anneal(3, 0.2))
    torch.testing.assert_close(annealed(scores, labels), ExactNoisedTopK(K=3, epsilon=0.2)(scores, labels))
    torch.testing.assert_close(annealed.at(0)(scores, labels), ExactNoisedTopK(K=3, epsilon=3.0)(scores, labels))
    ranked = DifferentiableTopK(steepness=anneal(1, 4))
    torch.testing.assert_close(ranked(scores, labels), DifferentiableTopK(steepness=4.0)(scores, labels))


def test_facts_of_a_loss_follow_the_end():
    assert NoisedTopK(K=5, epsilon=anneal(3, 0.2)).calibrated
    assert not NoisedTopK(K=5, epsilon=anneal(0.2, 3)).calibrated
    falls = Focal(gamma=anneal(2, 0, course="linear"))
    assert falls.convex
    assert falls.proper
    assert AverageKTwoHead(K=anneal(5, 1)).smooth


def test_a_loss_of_ones_own_has_schedules_too():
    @dataclasses.dataclass(frozen=True)
    class Mixture(Loss):
        share: float = knob(0.5, low=0, high=1, meaning="weight of cross-entropy")

        @property
        def convex(self) -> bool:
            return self.share == 1

        def values(self, scores, labels, **_):
            return self.share * CrossEntropy().values(scores, labels)

    first = Mixture(share=anneal(1, 0, over=0.25, course="constant"))
    scores, labels = torch.zeros(2, 4), torch.tensor([0, 1])
    assert first.at(0)(scores, labels).sum() > 0
    assert first(scores, labels).sum() == 0
    assert (first.at(0).convex, first.convex) == (True, False)


def test_margins_of_classes_are_filled_in_and_kept_with_a_schedule():
    filled = LDAM(max_margin=anneal(0.1, 0.5)).for_classes([16, 1])
    assert filled.scheduled() == {"max_margin": anneal(0.1, 0.5)}
    assert filled.at(0).margins(torch.zeros(1, 2)).tolist() == pytest.approx([0.05, 0.1])


def test_a_schedule_is_part_of_the_printed_loss_and_of_its_short_name():
    loss = NoisedTopK(K=3, epsilon=anneal(3, 0.2))
    assert repr(loss) == "NoisedTopK(K=3, epsilon=anneal(3.0, 0.2), n_samples=5)"
    assert NoisedTopK(K=3, epsilon=anneal(3, 0.5)).short() == "NoisedTopK(K=3, epsilon=anneal(3, 0.5))"
    assert loss != NoisedTopK(K=3, epsilon=0.2)
    assert loss == NoisedTopK(K=3)


def test_the_exact_loss_follows_the_same_schedule():
    assert NoisedTopK(K=3, epsilon=anneal(3, 0.2)).exact() == ExactNoisedTopK(K=3, epsilon=anneal(3, 0.2))


def test_sets_of_a_run_whose_K_follows_a_schedule_are_those_of_its_end():
    loss = ROLE(K=anneal(8.0, 3.0)).spec()
    record = RunRecord(title="mine", run={"loss": json.loads(json.dumps(loss))})
    assert record.K == target_K({"K": anneal(8, 3)}, 10) == 3
    assert record.settings["loss.K"] == "anneal(8.0, 3.0)"
    odd = RunRecord(title="mine", run={"loss": {"loss": "his:Loss", "knobs": {"K": "many"}}})
    assert odd.K == 5, "a file is only data, of anybody"


def test_the_default_of_epsilon_is_a_schedule_that_ends_where_the_paper_is():
    assert NoisedTopK().epsilon == ExactNoisedTopK().epsilon == anneal(3, 0.2)
    assert NoisedTopK().at(1) == NoisedTopK(epsilon=0.2)
    assert NoisedTopK.knobs()["epsilon"].default == 0.2, "where a slider stands"
    assert NoisedTopK(K=3).short() == "NoisedTopK(K=3)"
    assert "(default anneal(3, 0.2))" in str(NoisedTopK.__doc__)


@pytest.mark.parametrize("K", [1, 3])
def test_outside_training_the_default_is_read_as_the_epsilon_of_the_paper(K):
    scores, labels = torch.randn(50, 6, generator=torch.Generator().manual_seed(0)), torch.arange(50) % 6
    assert torch.equal(ExactNoisedTopK(K)(scores, labels), ExactNoisedTopK(K, 0.2)(scores, labels))
    draws = torch.randn(50, 5, 6, generator=torch.Generator().manual_seed(1))
    assert torch.equal(NoisedTopK(K)(scores, labels, noise=draws), NoisedTopK(K, 0.2)(scores, labels, noise=draws))
    assert NoisedTopK(K).calibrated == NoisedTopK(K, 0.2).calibrated


def test_schedules_are_public_and_need_no_torch():
    code = "import sys, workbench as wb; print(wb.schedules.anneal(3, 0.2)); assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "anneal(3, 0.2)\n"
