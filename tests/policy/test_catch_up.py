"""Max, Proportion and Exponent: a larger allocation until a backlog is cleared, and the return."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rheostat.job.decision import Reason
from rheostat.job.observation import Latency, Observation
from rheostat.job.slo import SLO, Bounds
from rheostat.model.experience import Experience
from rheostat.policy.catch_up import CatchUp
from rheostat.policy.exponent import Exponent
from rheostat.policy.max_tasks import MaxTasks
from rheostat.policy.proportion import Proportion
from rheostat.testing.situations import read, situation, window, word_count

WORDS = word_count(Bounds(1, 40))
RATES = {"lines": 1e6, "split": 100.0, "count": 250.0}
OBJECTIVE = SLO(max_latency_s=0.5, max_recovery_s=600.0)
STEADY = {"split": 4, "count": 8}


def waiting(backlog: float, tasks: Any, event_s: float = 300.0, at_s: float = 60.0) -> Observation:
    now = replace(window(WORDS, 400.0, tasks, RATES, at_s), latency=Latency(0.2, 0.2, 0.2, event_s, event_s, event_s))
    return replace(now, sources=(replace(now.sources[0], backlog=backlog),))


def at(observation: Observation, **rest: Any) -> Any:
    return situation(WORDS, observation, Experience(), slo=OBJECTIVE, **rest)


@pytest.mark.parametrize(
    ("policy", "tasks"),
    [
        (MaxTasks(), {"split": 40, "count": 40}),
        (Proportion(), {"split": 8, "count": 16}),  # 800 of 400 records/s
        (Exponent(), {"split": 8, "count": 16}),
    ],
)
def test_each_has_its_rule_and_returns(policy: CatchUp, tasks: dict[str, int]) -> None:
    go = policy.decide(at(waiting(240e3, STEADY)))
    assert go.target is not None
    assert dict(go.target.tasks) == tasks
    assert go.evidence["target_per_s"] == pytest.approx(800.0, rel=1e-3)
    gone = policy.decide(at(waiting(0.0, tasks, 0.2, 300.0), memo=go.memo, changed_at_s=60.0))
    assert gone.target is not None
    assert dict(gone.target.tasks) == STEADY
    rest = policy.decide(at(waiting(0.0, STEADY, 0.2, 360.0), memo=gone.memo, changed_at_s=300.0))
    assert rest.target is None
    assert rest.reason is Reason.STEADY


@pytest.mark.parametrize(
    ("policy", "tasks"),
    [
        (Exponent(limit_s=600.0), {"split": 16, "count": 32}),
        (Proportion(limit_s=600.0), {"split": 10, "count": 20}),  # 800 of 640 records/s
    ],
)
def test_a_rule_is_applied_again_while_the_throughput_is_below_the_target(
    policy: CatchUp, tasks: dict[str, int]
) -> None:
    """Proportion, too: section V-A gives it O(NM) for M iterations."""
    go = policy.decide(at(waiting(240e3, STEADY)))
    slow = read(waiting(200e3, {"split": 8, "count": 16}, 250.0, 120.0), "lines", records_in_per_s=640.0)
    again = policy.decide(at(slow, memo=go.memo, changed_at_s=60.0))
    assert again.target is not None
    assert dict(again.target.tasks) == tasks


def test_an_unreachable_target_is_reported_and_given_up_after_the_overtime() -> None:
    policy = MaxTasks(limit_s=50.0)  # 5200 records/s are needed
    go = policy.decide(at(waiting(240e3, STEADY)))
    late = policy.decide(at(waiting(200e3, 40, 250.0, 115.0), memo=go.memo, changed_at_s=60.0))
    assert late.target is None
    assert late.evidence["unreachable"] == 1.0
    over = policy.decide(at(waiting(90e3, 40, 90.0, 400.0), memo=late.memo, changed_at_s=60.0))
    assert over.target is not None
    assert "of the backlog are left" in over.sentence


def test_it_holds_when_the_largest_allocation_runs_already() -> None:
    decision = MaxTasks(limit_s=1.0).decide(at(waiting(240e6, 40)))
    assert decision.target is None
    assert decision.reason is Reason.UNDER_PROVISIONED


@pytest.mark.parametrize("objective", [SLO(), SLO(max_latency_s=1000.0)])
def test_it_holds_while_the_objective_is_met(objective: SLO) -> None:
    decision = MaxTasks().decide(situation(WORDS, waiting(240e3, STEADY), Experience(), slo=objective))
    assert decision.target is None
