"""A suite: its sizes, what it makes of its parts, and what several suites make of a failure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest

from rheostat.errors import InvalidValue, PolicyError
from rheostat.job.decision import Decision, Reason
from rheostat.lab.jobs import job
from rheostat.lab.papers import campaign, registry
from rheostat.lab.papers.campaign import Failed
from rheostat.lab.papers.claim import HOLDS, Claim, less
from rheostat.lab.papers.difference import INSIDE
from rheostat.lab.papers.dragster import paper
from rheostat.lab.papers.dragster.play import play
from rheostat.lab.papers.parallel import PartFailed, run_in_processes
from rheostat.lab.papers.play import Method
from rheostat.lab.papers.result import Fit, Result
from rheostat.lab.papers.suite import Suite
from rheostat.lab.papers.table import Cell, Table
from rheostat.ports import Policy

RATES = Table("1", "records/s")
FAST, SLOW = ("1", "fast", "Q1"), ("1", "slow", "Q1")
SLOWER = Claim("1", "slow is slower", (less(SLOW, FAST),))


def broken(_: int) -> float:
    raise ZeroDivisionError("nothing arrived\nin any window")


def failing_policy(_: int) -> float:
    raise PolicyError("ds2 failed: KeyError: no such rate (step 3, at 60 s)")


def rates(found: dict[str, float]) -> list[Cell]:
    fast = [found["fast"], found["fast"] + 2, found["fast"] + 4]
    return [RATES.exact("slow", "Q1", found["slow"]), RATES.mean("fast", "Q1", fast, 9.0)]


SUITE: Suite[int, dict[str, float]] = Suite(
    name="tiny",
    title="A tiny paper",
    quick=1,
    full=2,
    parts=lambda size: [("slow", float, (size,)), ("fast", float, (5 * size,))],
    alone=lambda size: [("time", float, (size,))],
    gather=lambda size, done: dict(done),
    tables=(rates,),
    claims=(SLOWER,),
    fits=(Fit("the rate", "Table 1", "1: fast"),),
    figures=lambda found, cells: (),
    notes=lambda found: (f"{len(found)} parts",),
)


def silent(what: str, share: float) -> None:
    pass


def one_process(tasks: Any) -> Any:
    return run_in_processes(tasks, 1)


def test_an_unknown_size_is_named_with_the_nearest_one() -> None:
    with pytest.raises(InvalidValue, match="unknown size 'quik' of tiny, did you mean 'quick'"):
        SUITE.measure("quik", silent, 1)


def test_each_size_runs_its_own_parts_and_what_measures_time_comes_last() -> None:
    ended: list[tuple[str, float]] = []
    assert SUITE.measure("quick", lambda *what: ended.append(what), 1) == {"slow": 1.0, "fast": 5.0, "time": 1.0}
    assert SUITE.measure("full", silent, 1)["fast"] == 10.0
    assert [name for name, _ in ended] == ["slow", "fast", "time"]
    assert [share for _, share in ended] == pytest.approx([1 / 3, 2 / 3, 1.0])


def test_a_part_that_raises_surfaces_with_its_first_line() -> None:
    bad = replace(SUITE, parts=lambda size: [("slow", float, (1,)), ("fast", broken, (1,))])
    with pytest.raises(PartFailed, match=r"^fast failed: ZeroDivisionError: nothing arrived$"):
        bad.reproduce("quick", silent, 1)


def test_a_result_has_cells_claims_differences_fits_and_notes() -> None:
    result = SUITE.reproduce("quick", silent, 1)
    (judgement,) = result.judgements
    assert (judgement.verdict, judgement.cause) == (HOLDS, "")
    assert [(found.what, found.cause) for found in result.differences] == [("fast, Q1: 7, paper 9 (-22%)", INSIDE)]
    assert result.notes == ("3 parts",)
    assert [fit.what for fit in result.fits] == ["the rate"]
    assert (result.count(HOLDS), result.count(HOLDS, fitted=True)) == (1, 0)


def test_rows_are_cells_and_then_claims_with_their_verdicts() -> None:
    *cells, claim = SUITE.reproduce("quick", silent, 1).rows()
    names = ["suite", "table", "row", "column", "paper", "ours", "unit", "fitted", "low", "high"]
    assert all(list(cell) == names for cell in cells)
    assert list(claim) == [*names, "claim", "verdict", "cause"]
    assert (claim["claim"], claim["verdict"], claim["ours"]) == ("1: slow is slower", "holds", -6.0)
    assert claim["low"] < -6.0 < claim["high"] < 0.0


def test_several_suites_run_as_one_set_of_parts() -> None:
    other = replace(SUITE, name="other", title="Another")
    ended: list[str] = []
    results = campaign.reproduce([SUITE, other], "quick", lambda what, _: ended.append(what), one_process)
    assert [result.suite for result in results] == ["tiny", "other"]
    assert all(what.endswith(" s)") for what in ended)
    assert [what.partition(" (")[0] for what in ended] == [
        "tiny: slow", "tiny: fast", "other: slow", "other: fast", "tiny: time", "other: time",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("work", "error"),
    [
        (failing_policy, "other: fast: ds2 failed: KeyError: no such rate (step 3, at 60 s)"),
        (broken, "other: fast failed: ZeroDivisionError: nothing arrived"),
    ],
)
def test_a_failure_fails_its_suite_by_name_and_no_other(work: Any, error: str) -> None:
    bad = replace(SUITE, name="other", parts=lambda size: [("slow", float, (1,)), ("fast", work, (1,))])
    good, failed = campaign.reproduce([SUITE, bad], "quick", silent, one_process)
    assert isinstance(good, Result)
    assert failed == Failed("other", error)


@dataclass(frozen=True)
class Broken(Policy[None]):
    """A policy that raises at its third decision."""

    name: ClassVar[str] = "broken"

    def learn(self, knowledge: None, record: Any) -> None:
        pass

    def decide(self, situation: Any) -> Decision:
        if situation.step >= 2:
            raise KeyError("no such rate")
        return Decision.hold(Reason.STEADY, "fine so far")


def run_broken() -> Any:
    return play(job(paper.WORDCOUNT.job), [Method("broken", Broken)], (paper.HIGH,) * 4, 1)


def test_a_policy_that_raises_on_the_simulator_fails_its_suite() -> None:
    bad = replace(SUITE, name="other", parts=lambda size: [("WordCount", run_broken, ())])
    _, failed = campaign.reproduce([SUITE, bad], "quick", silent, one_process)
    assert isinstance(failed, Failed)
    assert failed.error.startswith("other: WordCount: broken failed: KeyError")
    assert "step 2" in failed.error


def test_the_failure_of_the_only_suite_ends_it() -> None:
    bad = replace(SUITE, parts=lambda size: [("fast", failing_policy, (1,))])
    with pytest.raises(PolicyError, match=r"^tiny: fast: ds2 failed"):
        campaign.reproduce([bad], "quick", silent, one_process)


@pytest.mark.parametrize("name", registry.SUITES)
def test_every_paper_is_a_suite_with_both_sizes_claims_and_fits(name: str) -> None:
    suite = registry.suite(name)
    assert suite.name == name
    assert set(suite.sizes) == {"quick", "full"}
    assert suite.quick != suite.full
    assert suite.claims
    assert suite.fits or name == "grounds"  # nothing is fitted to a ground
    keys = [claim.key for claim in suite.claims]
    assert len(keys) == len(set(keys))
