"""HPA: recommendations, stabilisation and partial windows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rheostat.errors import InvalidValue
from rheostat.job.decision import Decision, Reason
from rheostat.job.frozen import from_json, to_json
from rheostat.job.observation import Observation, Status
from rheostat.job.slo import SLO, Bounds
from rheostat.policy.hpa import HPA
from rheostat.ports import Situation
from rheostat.testing.situations import limits_of, read, situation, window, word_count

WORDS = word_count()


def look(split: float | None, count: float | None, tasks: int = 10, at_s: float = 60.0, **rest: Any) -> Observation:
    """A window with these CPU shares."""
    observation = replace(window(WORDS, 100.0, tasks, 1000.0, at_s=at_s), **rest)
    return read(read(observation, "split", cpu_share=split), "count", cpu_share=count)


def at(observation: Observation, **rest: Any) -> Situation[None]:
    return situation(WORDS, observation, None, **rest)


def asked(decision: Decision) -> tuple[int, int] | None:
    return None if decision.target is None else (decision.target.tasks["split"], decision.target.tasks["count"])


AT_ONCE = HPA(stabilise_down_s=0.0)


@pytest.mark.parametrize(
    ("split", "count", "target", "reason"),
    [
        pytest.param(0.8, 0.8, None, Reason.STEADY, id="on target"),
        pytest.param(0.88, 0.72, None, Reason.STEADY, id="within the tolerance"),
        pytest.param(0.89, 0.8, (12, 10), Reason.UNDER_PROVISIONED, id="just outside: ceil(10 x 0.89 / 0.8)"),
        pytest.param(1.0, 0.8, (13, 10), Reason.UNDER_PROVISIONED, id="full"),
        pytest.param(0.8, 0.4, (10, 5), Reason.OVER_PROVISIONED, id="half"),
        pytest.param(1.0, 0.4, (13, 5), Reason.MIXED, id="one each way"),
        pytest.param(0.0, 0.0, (1, 1), Reason.OVER_PROVISIONED, id="idle: the minimum"),
        pytest.param(8.0, 0.8, (20, 10), Reason.UNDER_PROVISIONED, id="at most double"),
        pytest.param(1.0, None, (13, 10), Reason.UNDER_PROVISIONED, id="a missing share stays"),
    ],
)
def test_decisions(split: float, count: float | None, target: tuple[int, int] | None, reason: Reason) -> None:
    decision = AT_ONCE.decide(at(look(split, count)))
    assert asked(decision) == target
    assert decision.reason is reason


def test_few_tasks_may_grow_by_four() -> None:
    assert asked(HPA().decide(at(look(8.0, 0.8, tasks=1)))) == (5, 1)


@pytest.mark.parametrize(
    ("tasks", "ready", "share", "target", "recommended"),
    [
        pytest.param(3, 3, 0.50, 0.30, 5, id="scale up"),
        pytest.param(3, 2, 0.60, 0.30, 4, id="scale up less, one is not ready"),
        pytest.param(3, 1, 0.40, 0.30, 3, id="no scale up, two are not ready"),
        pytest.param(5, 5, 0.28, 0.50, 3, id="scale down"),
        pytest.param(5, 3, 0.30, 0.50, 2, id="scale down to what the ready ones need"),
        pytest.param(5, 1, 0.10, 0.50, 1, id="scale down, one is ready"),
        pytest.param(3, 3, 1.02, 1.00, 3, id="within the tolerance"),
        pytest.param(3, 3, 1.10, 1.00, 3, id="at the tolerance"),
        pytest.param(3, 3, 0.90, 1.00, 3, id="at the tolerance, below"),
        pytest.param(3, 3, 20 / 15, 1.00, 4, id="rounded up"),
        pytest.param(5, 5, 12 / 20, 1.00, 3, id="three fifths"),
        pytest.param(4, 0, 1.00, 0.50, 4, id="none is ready"),
    ],
)
def test_kubernetes_own_cases(tasks: int, ready: int, share: float, target: float, recommended: int) -> None:
    """The replica calculator's cases: pods, ready pods, their mean utilisation, its target, the expected pods."""
    assert HPA().recommend(tasks, share, target, ready=ready) == recommended


@pytest.mark.parametrize(
    ("tasks", "added", "most"),
    [
        pytest.param(1, 0, 5, id="four pods are more than 100 %"),
        pytest.param(10, 0, 20, id="100 % are more than four pods"),
        pytest.param(8, 4, 8, id="used up in this period"),
        pytest.param(8, 2, 12, id="half used up"),
    ],
)
def test_growth_is_limited_per_15_seconds(tasks: int, added: int, most: int) -> None:
    assert HPA().limit(tasks, added) == most


def test_the_limit_counts_what_was_added_in_the_same_period() -> None:
    first = HPA().decide(at(look(8.0, 0.8, tasks=4, at_s=100.0)))
    assert asked(first) == (8, 4)
    soon = HPA().decide(at(look(8.0, 0.8, tasks=8, at_s=110.0), memo=first.memo))
    assert asked(soon) is None
    later = HPA().decide(at(look(8.0, 0.8, tasks=8, at_s=116.0), memo=first.memo))
    assert asked(later) == (16, 8)


@pytest.mark.parametrize(("uptime_s", "target"), [(29.0, None), (30.0, (13, 10)), (0.0, (13, 10))])
def test_tasks_are_not_ready_right_after_a_restart(uptime_s: float, target: tuple[int, int] | None) -> None:
    decision = HPA().decide(at(look(1.0, 0.8, uptime_s=uptime_s)))
    assert asked(decision) == target


def test_a_recommendation_beyond_the_limit_of_a_period_counts_in_the_window() -> None:
    grown = HPA().decide(at(look(8.0, 0.8, at_s=60.0)))
    assert asked(grown) == (20, 10)
    # 100 were recommended a minute ago, so 25 tasks stay although 20 was all that the limit allowed.
    assert asked(HPA().decide(at(look(0.4, 0.8, tasks=25, at_s=120.0), memo=grown.memo))) is None


def test_it_holds_at_its_limits() -> None:
    decision = HPA().decide(at(look(1.0, 1.0), limits=limits_of(word_count(Bounds(1, 10)))))
    assert decision.target is None
    assert decision.reason is Reason.UNDER_PROVISIONED
    assert "the limits allow no more" in decision.sentence


@pytest.mark.parametrize(
    ("policy", "slo", "share"),
    [
        pytest.param(HPA(), SLO(), 0.8, id="Kubernetes' own"),
        pytest.param(HPA(), SLO(headroom=1.0), 0.5, id="from the headroom"),
        pytest.param(HPA(target_cpu=0.35), SLO(), 0.35, id="its own"),
    ],
)
def test_the_target(policy: HPA, slo: SLO, share: float) -> None:
    assert policy.decide(at(look(0.8, 0.8), slo=slo)).evidence["target_cpu"] == pytest.approx(share)


def test_useful_time_replaces_missing_cpu_shares() -> None:
    observation = read(read(look(None, None), "split", useful_share=1.0), "count", useful_share=0.8)
    decision = HPA().decide(at(observation))
    assert asked(decision) == (13, 10)
    assert "useful_share" in decision.sentence


def test_useful_time_is_not_mixed_with_cpu_shares() -> None:
    observation = read(look(0.8, None), "count", useful_share=1.0)
    decision = HPA().decide(at(observation))
    assert decision.target is None
    assert "count reports no cpu_share" in decision.sentence


class TestStabilisation:
    """An operator shrinks to the largest recommendation of the last five minutes, and grows at once."""

    def run(self, policy: HPA, shares: list[float], tasks: int = 10, every_s: float = 60.0) -> list[Decision]:
        decisions: list[Decision] = []
        memo: Any = {}
        for i, share in enumerate(shares, start=1):
            decision = policy.decide(at(look(share, 0.8, tasks, at_s=i * every_s), memo=memo))
            memo = from_json(Decision, to_json(decision)).memo
            decisions.append(decision)
        return decisions

    def test_the_initial_size_counts_for_five_minutes(self) -> None:
        decisions = self.run(HPA(), [0.4] * 7)
        assert [asked(d) for d in decisions] == [None] * 5 + [(5, 10)] * 2

    def test_a_peak_within_the_window_decides(self) -> None:
        # 0.64 recommends 8, three minutes before the last 0.4, which recommends 5.
        decisions = self.run(HPA(), [0.4, 0.4, 0.4, 0.64, 0.4, 0.4, 0.4])
        assert asked(decisions[-1]) == (8, 10)

    def test_growing_does_not_wait(self) -> None:
        assert asked(self.run(HPA(), [0.4, 0.4, 1.0])[-1]) == (13, 10)

    def test_the_memo_stays_small(self) -> None:
        [*_, last] = self.run(HPA(), [0.4 + 0.001 * (i % 50) for i in range(500)], every_s=1.0)
        assert len(last.memo["recommended"]["split"]) <= 10


@pytest.mark.parametrize(
    ("observation", "reason"),
    [
        pytest.param(replace(look(None, None), operators=()), Reason.UNUSABLE, id="nothing measured"),
        pytest.param(look(0.1, 0.1, running=None), Reason.UNUSABLE, id="running allocation unknown"),
        pytest.param(look(0.1, 0.1, status=Status.DOWN), Reason.DOWN, id="the job is down"),
        pytest.param(
            look(float("nan"), float("nan"), problem="absurd"), Reason.STEADY, id="absurd CPU, useful time left"
        ),
    ],
)
def test_it_holds_without_a_measurement(observation: Observation, reason: Reason) -> None:
    decision = AT_ONCE.decide(at(observation, memo={"recommended": {"split": [[0.0, 7]]}}))
    assert decision.target is None
    assert decision.reason is reason


def test_recommendations_survive_a_blind_window() -> None:
    memo = {"recommended": {"split": ((0.0, 7),)}}
    assert HPA().decide(at(look(0.1, 0.1, running=None), memo=memo)).memo == memo


@pytest.mark.parametrize(
    ("split", "count", "target"),
    [
        pytest.param(0.1, 0.1, None, id="never shrinks"),
        pytest.param(1.0, 0.1, (13, 10), id="may grow"),
        pytest.param(1.0, None, (13, 10), id="with a part missing"),
    ],
)
def test_partial_windows(split: float, count: float | None, target: tuple[int, int] | None) -> None:
    decision = AT_ONCE.decide(at(look(split, count, problem="no rate of source lines")))
    assert asked(decision) == target
    assert "partial window (no rate of source lines)" in decision.sentence


def test_a_partial_window_keeps_the_job_large_for_five_minutes() -> None:
    policy = HPA()
    memo: Any = {"recommended": {"split": [[0.0, 5]], "count": [[0.0, 5]]}}
    partial = policy.decide(at(look(0.4, 0.4, at_s=250.0, problem="late"), memo=memo))
    after = policy.decide(at(look(0.4, 0.4, at_s=320.0), memo=partial.memo))
    assert after.target is None


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("target_cpu", 0.0),
        ("target_cpu", 1.5),
        ("tolerance", -0.1),
        ("stabilise_down_s", -1.0),
        ("max_scale_up_ratio", 0.5),
        ("max_scale_up_tasks", -1),
        ("max_scale_up_tasks", 2.5),
    ],
)
def test_impossible_options_are_refused_by_name_and_value(option: str, value: Any) -> None:
    with pytest.raises(InvalidValue, match=rf"{option} of policy 'hpa'.*{value}"):
        HPA(**{option: value})


shares = st.none() | st.floats(0, 3)


@given(shares, shares, st.floats(0, 3), st.integers(1, 100))
def test_more_cpu_never_requests_fewer_tasks(split: float | None, count: float | None, more: float, tasks: int) -> None:
    def target(share: float | None) -> int:
        decision = AT_ONCE.decide(at(look(share, count, tasks)))
        return tasks if decision.target is None else decision.target.tasks["split"]

    if split is not None and count is not None:
        assert target(split + more) >= target(split)
    assert 1 <= target(split) <= 100
