"""Claims: one rule gives every verdict, results are kept as they were found, and the page says what they say."""

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench.claims.claim import (
    FAILS,
    HEAD,
    HOLDS,
    IN_PART,
    UNDECIDED,
    Bench,
    Claim,
    Expectation,
    Found,
    Line,
    verdict,
)
from workbench.claims.data import letters
from workbench.claims.experiment import Measure, arm, found, gain, over_rows, over_seeds, trained
from workbench.claims.page import page_of, read_found, run_claim, run_claims, write_found
from workbench.cli.main import main
from workbench.losses import CrossEntropy, NoisedTopK
from workbench.metrics import accuracy
from workbench.store import Store

DOCS = Path(__file__).parents[2] / "docs"
MET = Expectation("met", 2.0, 1.0, 3.0, above=0)
MISSED = Expectation("missed", -2.0, -3.0, -1.0, above=0)
OPEN = Expectation("open", 0.0, -1.0, 1.0, above=0)
POINTS = (Line("noised", 0.1, 60.0, 58.0, 62.0), Line("noised", 1.0, 90.0, 89.0, 91.0))


def tried(check=None, **facts):
    given = Found((MET,), POINTS, {"noised": "epsilon = 1.0"}, ("a" * 64, "b" * 64), "A remark.", 0.5)
    facts = {"x": "ε", "y": "top-5 accuracy, %", "logarithmic": True} | facts
    return Claim(1, "It is so.", "a paper, Table 1", "small data", "above 0", check or (lambda _: given), HEAD, **facts)


@pytest.fixture
def bench(tmp_path):
    return Bench(Store(tmp_path / "store"), progress=False)


@pytest.mark.parametrize(
    ("expectations", "word"),
    [
        ([MET], HOLDS),
        ([MET, MET], HOLDS),
        ([MET, OPEN], IN_PART),
        ([MET, MISSED], IN_PART),
        ([MISSED], FAILS),
        ([MISSED, OPEN], FAILS),
        ([OPEN], UNDECIDED),
    ],
)
def test_a_verdict_follows_from_which_expectations_are_met(expectations, word):
    assert verdict(expectations) == verdict(expectations[::-1]) == word


numbers = st.floats(-100, 100)


@given(ends=st.tuples(numbers, numbers), above=numbers, width=st.floats(0.1, 10))
def test_an_expectation_is_met_or_missed_only_where_the_whole_interval_says_so(ends, above, width):
    low, high = sorted(ends)
    given = Expectation("a number", (low + high) / 2, low, high, above=above, below=above + width)
    inside = [above < end < above + width for end in (low, high)]
    if given.met:
        assert all(inside)
    elif given.met is False:
        assert high <= above or low >= above + width
    else:
        assert low <= above < high or low < above + width <= high


def test_a_number_without_an_interval_decides_nothing():
    assert Expectation("one seed", 2.0, math.nan, math.nan, above=0).met is None


def test_an_expectation_says_where_the_claim_wants_its_number_and_cannot_do_without():
    assert MET.bounds_text == "above 0"
    assert replace(MET, above=None, below=1.5).bounds_text == "below 1.5"
    assert replace(MET, below=1.5).bounds_text == "between 0 and 1.5"
    with pytest.raises(ValueError, match="say where the claim wants it"):
        Expectation("nothing", 0, 0, 0)


def test_the_claims_are_numbered_and_say_what_was_run_and_what_is_expected():
    assert list(dict.fromkeys(claim.number for claim in wb.claims.CLAIMS)) == list(range(1, 33))
    assert len({claim.name for claim in wb.claims.CLAIMS}) == len(wb.claims.CLAIMS)
    for claim in wb.claims.CLAIMS:
        assert claim.says.endswith(".")
        assert all((claim.source, claim.ran, claim.expects, claim.y))


def test_a_result_is_read_as_it_was_written(tmp_path):
    given = run_claim(tried(), Bench(Store(tmp_path)))
    assert Found.from_json(given.to_json()) == given
    write_found(tmp_path, tried(), given)
    assert read_found(tmp_path, tried()) == given
    assert (tmp_path / "01.png").stat().st_size > 5000


def test_a_claim_with_a_result_is_run_again_only_if_it_is_asked_for(tmp_path, bench):
    times = []

    def check(_):
        times.append(1)
        return Found((MET,), POINTS)

    for again in ((), (), (1,)):
        assert run_claims([tried(check)], bench, tmp_path, again=again, told=False) == []
    assert len(times) == 2


def test_a_claim_whose_data_are_missing_names_the_file_and_leaves_nothing(tmp_path, bench):
    [(claim, why)] = run_claims([tried(needs=("votes.npz",))], bench, tmp_path, told=False)
    assert claim.number == 1
    assert "votes.npz" in why
    assert "--data FOLDER" in why
    assert not list(tmp_path.glob("*.json"))


def test_the_page_tells_claim_source_run_numbers_verdict_picture_and_runs(tmp_path):
    claim = replace(tried(), decides="the noise")
    other = replace(tried(needs=("votes.npz",)), number=2)
    write_found(tmp_path, claim, run_claim(claim, Bench(Store(tmp_path))))
    page = page_of([claim, other], tmp_path, "claims")
    for words in (
        *("It is so.", "a paper, Table 1", "small data", "**holds**", "| met | 2 | [1, 3] | above 0 | met |"),
        *(
            "A remark.",
            "epsilon = 1.0",
            "- *What decides*: the noise.\n",
            "](claims/01.png)",
            f"compare?run={'a' * 12}&with={'b' * 12})",
            "not run",
            "`votes.npz`",
        ),
    ):
        assert words in page


def test_arms_are_tuned_on_validation_rows_and_compared_seed_by_seed_on_test_rows(bench):
    top_5 = Measure(accuracy, wb.TopK(5))
    arms = [
        arm("cross-entropy", loss=CrossEntropy(), learning_rate=[1e-2, 0.3, 3.0]),
        arm("noised", loss=NoisedTopK(5, 1.0), learning_rate=1e-2),
    ]
    sides = trained(bench, letters("linear", epochs=1), arms, tuned_by=top_5.on_val, seeds=2)
    assert sides["cross-entropy"].setting["learning_rate"] == 0.3
    points = gain(sides["noised"], sides["cross-entropy"], top_5)
    values = [
        100 * (top_5.parts(one.tables).value() - top_5.parts(other.tables).value())
        for one, other in zip(sides["noised"].runs, sides["cross-entropy"].runs, strict=True)
    ]
    assert points.value == pytest.approx(sum(values) / 2)
    assert points.low < points.value < points.high
    given = found([points.expected("points", above=-100)], [points.at("noised", 1.0)], sides)
    assert given.settled["cross-entropy"].endswith("learning_rate = 0.3")
    assert len(given.runs) == 4
    assert all(bench.store.has(key) for key in given.runs)


def test_settings_may_be_chosen_by_fewer_seeds_than_arms_are_compared_with(bench):
    chosen_by = []

    def tuned_by(run):
        chosen_by.append(run.run.seed)
        return -abs(math.log10(run.run.learning_rate) + 2)  # best at 1e-2

    grid = arm("cross-entropy", loss=CrossEntropy(), learning_rate=[1e-3, 1e-2, 1e-1])
    run = letters("linear", epochs=1)
    side = trained(bench, run, [grid], tuned_by=tuned_by, seeds=3, tuned_on=1)["cross-entropy"]
    assert chosen_by == [0, 0, 0]
    assert [(one.run.learning_rate, one.run.seed) for one in side.runs] == [(1e-2, 0), (1e-2, 1), (1e-2, 2)]
    assert len(bench.seconds) == 5


def test_numbers_without_rows_have_students_interval_over_seeds():
    given = over_seeds([1.0, 2.0, 3.0])
    assert given.value == 2
    assert given.high - given.value == pytest.approx(4.303 / math.sqrt(3), rel=0.1)


def test_what_is_a_function_of_rows_is_resampled_over_them():
    given = over_rows(lambda rows: float(rows.mean()), 100)
    assert given.low < given.value == 49.5 < given.high
    assert (given * 2 - 1).value == 98


def test_a_page_is_written_from_stored_results_without_a_run(tmp_path, capsys):
    assert main(["claims", "--write", "--page", str(tmp_path / "page.md")]) == 0
    assert (tmp_path / "page.md").read_text("utf-8") == page_of(wb.claims.CLAIMS, tmp_path / "page", "page")
    assert not (tmp_path / "page").exists()
    assert capsys.readouterr().out == f"written: {tmp_path / 'page.md'}\n"


def test_an_unknown_claim_is_told_which_there_are(capsys):
    assert main(["claims", "99"]) == 2
    assert "there is no claim 99; there are 1 to 32" in capsys.readouterr().err


def test_claims_are_listed_without_being_run(capsys):
    assert main(["claims", "--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(wb.claims.CLAIMS)


@pytest.mark.parametrize(
    ("given", "words"), [(["--data", "nowhere"], "is not a folder"), (["--page", "claims.txt"], "ends in .md")]
)
def test_a_folder_that_is_none_and_a_page_that_is_no_markdown_are_refused(given, words, capsys):
    assert main(["claims", *given]) == 2
    assert words in capsys.readouterr().err


def test_the_published_page_is_that_of_the_published_results():
    page = (DOCS / "claims.md").read_text("utf-8")
    assert page == page_of(wb.claims.CLAIMS, DOCS / "claims", "claims"), (
        "run: workbench claims --write --page docs/claims.md"
    )
    assert not re.search(r"\bnan\b", page)


@pytest.mark.parametrize("number", [17, pytest.param(23, marks=pytest.mark.long), 24])
def test_the_cheapest_claims_give_again_what_the_page_says(number, bench):
    claim = next(claim for claim in wb.claims.CLAIMS if claim.number == number)
    published, again = read_found(DOCS / "claims", claim), run_claim(claim, bench)
    assert published is not None
    assert again.verdict == published.verdict
    for one, other in zip(again.expectations, published.expectations, strict=True):
        assert one.what == other.what
        assert one.value == pytest.approx(other.value, abs=0.01)
