"""Stored verdicts: what is worse than recorded, what is new, and what a record replaces."""

from __future__ import annotations

from pathlib import Path

import pytest

from rheostat.lab.papers import interval, registry
from rheostat.lab.papers.claim import FAILS, HOLDS, UNKNOWN, Claim, Judgement, at_most
from rheostat.lab.papers.result import Result
from rheostat.lab.papers.verdicts import find_news, find_regressions, read_verdicts, record_verdicts, verdict_file


def result(suite: str = "tiny", **verdicts: str) -> Result:
    judgements = []
    for sentence, verdict in verdicts.items():
        (part,) = at_most(1.0, ("1", "a", "b"))
        claim = Claim("1", sentence, (part,))
        judgements.append(Judgement(claim, verdict, part, interval.exact(1.0), None, 1, (), ""))
    return Result(suite, "A tiny paper", (), tuple(judgements), ())


BEFORE = {"tiny": {"1: a": HOLDS, "1: b": HOLDS, "1: c": UNKNOWN}}


@pytest.mark.parametrize("now", [FAILS, UNKNOWN])
def test_a_claim_that_held_must_hold(now: str) -> None:
    (line,) = find_regressions(BEFORE, result(a=now, b=HOLDS, c=UNKNOWN))
    assert line == f"tiny, 1: a: {now}, recorded as 'holds'"


def test_a_missing_claim_is_worse_whatever_it_was() -> None:
    assert [line[:13] for line in find_regressions(BEFORE, result(a=HOLDS))] == ["tiny, 1: b: m", "tiny, 1: c: m"]


def test_the_same_or_better_is_not_worse() -> None:
    assert not list(find_regressions(BEFORE, result(a=HOLDS, b=HOLDS, c=FAILS)))
    better = result(a=HOLDS, b=HOLDS, c=HOLDS, d=FAILS)
    assert not list(find_regressions(BEFORE, better))
    assert list(find_news(BEFORE, better)) == [
        "tiny, 1: c: holds, recorded as 'cannot be told'",
        "tiny, 1: d: does not hold, not recorded",
    ]


def test_without_a_record_nothing_is_compared_and_that_is_said() -> None:
    (line,) = find_regressions({}, result(a=HOLDS))
    assert line == "tiny: no verdicts are recorded; record them with --record"


def test_a_record_replaces_its_own_suites_only(tmp_path: Path) -> None:
    file = tmp_path / "recorded" / "quick.json"
    record_verdicts(file, [result(a=HOLDS, b=FAILS), result("other", a=UNKNOWN)])
    record_verdicts(file, [result(a=FAILS)])
    assert read_verdicts(file) == {"tiny": {"1: a": FAILS}, "other": {"1: a": UNKNOWN}}


@pytest.mark.parametrize("size", ["quick", "full"])
def test_the_projects_records_are_of_claims_that_exist(size: str) -> None:
    stored = read_verdicts(verdict_file(size))
    for name, verdicts in stored.items():
        assert set(verdicts) <= {claim.key for claim in registry.suite(name).claims}
        assert set(verdicts.values()) <= {HOLDS, FAILS, UNKNOWN}
