"""DRS: queueing theory against known values, and the effect of observed rates."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from rheostat.job.decision import Reason
from rheostat.job.observation import Latency, Observation
from rheostat.job.slo import SLO, Bounds
from rheostat.policy.drs import DRS, expected_s, smallest_network, sojourn_s
from rheostat.testing.situations import situation, window, word_count

WORDS = word_count(Bounds(1, 40))
RATES = {"lines": 1e6, "split": 100.0, "count": 250.0}


def look(load: float, tasks: Any, latency_s: float) -> Observation:
    return replace(window(WORDS, load, tasks, RATES), latency=Latency(*(latency_s,) * 6))


def test_an_m_m_k_queue_follows_erlangs_formula() -> None:
    assert sojourn_s(0.5, 1.0, 1) == pytest.approx(2.0)  # M/M/1: 1 / (μ - λ)
    # M/M/2 with λ = 1.5, μ = 1: ρ = 0.75, E[T] = 1 / (μ (1 - ρ²))
    assert sojourn_s(1.5, 1.0, 2) == pytest.approx(1 / (1 - 0.75**2))
    assert sojourn_s(2.0, 1.0, 2) == math.inf


def test_the_fewest_servers_meet_the_target_and_one_fewer_does_not() -> None:
    network = {"a": (10.0, 3.0), "b": (20.0, 4.0)}
    servers = smallest_network(network, 10.0, 1.0, {"a": 50, "b": 50})
    assert expected_s(network, servers, 10.0) <= 1.0
    for name in servers:
        assert expected_s(network, {**servers, name: servers[name] - 1}, 10.0) > 1.0


def test_a_target_below_the_service_time_does_not_grow_for_ever() -> None:
    servers = smallest_network({"a": (10.0, 3.0)}, 10.0, 1e-6, {"a": 1_000_000})
    assert servers["a"] < 100


def test_true_rates_give_the_fewest_tasks_that_keep_up() -> None:
    at = situation(WORDS, look(400.0, 2, 9.0), None, slo=SLO(max_latency_s=1.0))
    decision = DRS().decide(at)
    assert decision.target is not None
    assert dict(decision.target.tasks) == {"split": 5, "count": 9}


def test_with_observed_rates_every_task_seems_full() -> None:
    at = situation(WORDS, look(400.0, 30, 9.0), None, slo=SLO(max_latency_s=1.0))
    decision = DRS(rates="observed").decide(at)
    assert decision.target is not None
    assert min(decision.target.tasks.values()) > 30


def test_it_holds_once_the_target_is_met_and_sizes_again_when_the_demand_moves() -> None:
    objective = SLO(max_latency_s=1.0)
    first = DRS().decide(situation(WORDS, look(400.0, 2, 9.0), None, slo=objective))
    met = DRS().decide(situation(WORDS, look(400.0, 10, 0.5), None, slo=objective, memo=first.memo))
    assert met.target is None
    assert met.reason is Reason.STEADY
    less = DRS().decide(situation(WORDS, look(200.0, 10, 0.5), None, slo=objective, memo=met.memo))
    assert less.target is not None


def test_a_missed_target_that_the_model_considers_met_is_under_provisioned() -> None:
    objective = SLO(max_latency_s=1.0)
    decision = DRS().decide(situation(WORDS, look(400.0, {"split": 5, "count": 9}, 9.0), None, slo=objective))
    assert decision.target is None
    assert decision.reason is Reason.UNDER_PROVISIONED
