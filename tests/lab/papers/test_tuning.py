"""Tunings on the simulator: what is counted, and when a tuning ends."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import pytest

from rheostat.engine.simulated import Fleet
from rheostat.engine.testbed.loads import Constant
from rheostat.errors import PolicyError
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Reason
from rheostat.lab.jobs import job
from rheostat.lab.papers.capacity import share_served
from rheostat.lab.papers.tuning import LOOK_S, MOST_CHANGES, Method, cores, prepared, tune
from rheostat.policy.conttune.big_ds2 import BigDS2
from rheostat.policy.ds2 import DS2
from rheostat.ports import Policy, Situation

Q1 = job("q1")
LINEAR = Method("DS2", lambda: DS2(ignore_single_decrease=False))


@dataclass(frozen=True)
class Restless(Policy[None]):
    """Changes for ever: one task more, one task less."""

    name: ClassVar[str] = "restless"

    def decide(self, situation: Situation[Any]) -> Decision:
        size = situation.running.tasks["mapper"]
        target = situation.running.with_tasks({"mapper": 41 - size if size > 1 else 20})
        return Decision(target, Reason.MIXED, "again")


def test_a_level_ends_with_a_size_that_serves_it_and_the_next_starts_without_a_backlog() -> None:
    (levels,) = tune(Q1, [LINEAR], [(2.0, 8.0, 2.0)])["DS2"]
    assert [t.level for t in levels] == [2.0, 8.0, 2.0]
    for before, after in pairwise(levels):
        assert after.start == before.end
    for tuned in levels:
        served = share_served(Q1, tuned.end, {"bids": tuned.level * 700e3})
        assert 0.97 < served < 1.5
        assert tuned.arrived == pytest.approx(600 * tuned.level * 700e3)
    down = levels[2]
    assert down.changes > down.under
    assert levels[1].under >= 1
    assert levels[1].backlog > 10 * down.backlog


def test_cores_are_counted_from_look_to_look() -> None:
    (levels,) = tune(Q1, [LINEAR], [(2.0, 8.0)])["DS2"]
    for tuned in levels:
        changed_s, held = zip(*tuned.at_looks, strict=True)
        ends = (*changed_s[1:], 600.0)
        assert tuned.core_seconds == sum(c * (b - a) for a, b, c in zip(changed_s, ends, held, strict=True))
        assert tuned.most_cores == max(held)
        assert all(second % LOOK_S == 0 for second in changed_s)


def test_a_tuning_that_never_ends_is_given_up() -> None:
    (levels,) = tune(Q1, [Method("restless", Restless)], [(2.0,)])["restless"]
    assert levels[0].changes == MOST_CHANGES


def test_a_lenient_stop_ends_at_the_first_look_without_back_pressure() -> None:
    (levels,) = tune(Q1, [Method("restless", Restless, lenient=True)], [(2.0, 8.0)])["restless"]
    assert levels[0].changes == 1


def test_big_is_counted_apart_and_never_ends_a_tuning() -> None:
    found = tune(Q1, [Method("big", BigDS2), Method("lenient", BigDS2, lenient=True)], [(8.0,)])
    for name in ("big", "lenient"):
        (tuned,) = found[name][0]
        assert tuned.big == 5  # 1 -> 2 -> 4 -> 8 -> 16 -> 32
        assert tuned.most_cores == 32
        assert tuned.changes > tuned.big
        assert cores(tuned.end) < 32


def test_a_level_that_hardly_moved_is_not_tuned() -> None:
    (levels,) = tune(Q1, [LINEAR], [(4.0, 4.2, 6.0, 5.8)], trigger=0.1)["DS2"]
    assert [t.tuned for t in levels] == [True, False, True, False]
    assert [t.changes > 0 for t in levels] == [True, False, True, False]


def test_loads_of_one_method_are_independent_of_the_others() -> None:
    alone = tune(Q1, [LINEAR], [(2.0, 6.0)])["DS2"][0]
    beside = tune(Q1, [Method("restless", Restless), LINEAR], [(2.0, 6.0), (5.0, 1.0)])["DS2"][0]
    assert [t.end for t in alone] == [t.end for t in beside]


def test_a_fleet_finishes_its_backlog_in_no_time() -> None:
    fleet = Fleet(prepared(Q1), [Constant(8.0)], [1], start=[Allocation({"mapper": 2})])
    fleet.advance(100)
    assert fleet.engine(0).observe().backlog or 0 > 1e6
    fleet.finish_backlog()
    assert fleet.engine(0).observe().backlog == 0
    fleet.advance(100)
    assert "mapper" in fleet.engine(0).observe().overloaded


@dataclass(frozen=True)
class Broken(Policy[None]):
    """Raises at its second decision."""

    name: ClassVar[str] = "broken"

    def decide(self, situation: Situation[Any]) -> Decision:
        if situation.step > 0:
            raise ZeroDivisionError("no busy time")
        return Decision.hold(Reason.WAITING, "not yet")


def test_a_policy_that_raises_ends_the_tuning() -> None:
    with pytest.raises(PolicyError, match=r"broken failed: ZeroDivisionError: no busy time \(step 1, at 40 s\)"):
        tune(Q1, [LINEAR, Method("broken", Broken)], [(2.0, 8.0)])
