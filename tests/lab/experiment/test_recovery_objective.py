"""A policy that knows nothing of failures keeps an objective about them, because its limits do."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from rheostat.cli.display.tables import recoveries
from rheostat.engine.simulated import Plant
from rheostat.engine.testbed.loads import Constant, Sine
from rheostat.job.slo import SLO, Bounds
from rheostat.lab.experiment.comparison import Comparison, compare
from rheostat.lab.experiment.run import caught_up_s
from rheostat.lab.experiment.simulated import Simulated
from rheostat.lab.experiment.trial import Trial
from rheostat.lab.jobs.phoebe import top_speed

FAILURES_S = (1500.0, 3300.0, 5100.0)
LOAD = Sine(mean=70e3, amplitude=40e3, period_s=3600.0)


@cache
def run(policy: str, promised: bool, noise: float = 0.0) -> Comparison[Plant]:
    slo = SLO(headroom=0.2, max_recovery_s=180.0 if promised else None)
    trial = Trial(top_speed(), replace(LOAD, noise=noise), 6000.0, 60.0, slo, failures_s=FAILURES_S)
    return compare(Simulated(), trial, [policy])


@pytest.mark.parametrize("policy", ["ds2", "conttune"])
def test_a_objective_that_is_broken_without_the_limit_is_kept_with_it(policy: str) -> None:
    plain = run(policy, False).run(policy, 0).recoveries_s(FAILURES_S)
    promised = run(policy, True).run(policy, 0).recoveries_s(FAILURES_S)
    assert max(plain) > 180.0
    assert max(promised) <= 180.0
    assert min(promised) > 60.0  # it did fail


def test_it_costs_slots_but_not_the_largest_size() -> None:
    plain, promised = run("ds2", False), run("ds2", True)
    assert plain.rows[0].slot_seconds < promised.rows[0].slot_seconds < 24 * 6000.0


def test_every_decision_expects_a_recovery_within_the_objective() -> None:
    steps = [step for step in run("ds2", True).run("ds2", 0).steps if step.intent]
    assert steps
    for step in steps:
        assert step.decision.expects.recovery_s is not None
        assert step.decision.expects.recovery_s.high <= 180.0


def test_what_was_expected_is_about_what_came() -> None:
    """The last expectation before a failure, beside the recovery that was measured from offsets."""
    told = run("ds2", True).run("ds2", 0)
    for failure_s, came in zip(FAILURES_S[1:], told.recoveries_s(FAILURES_S)[1:], strict=True):
        before = [s for s in told.steps if s.observation.at_s <= failure_s and s.decision.expects.recovery_s]
        expected = before[-1].decision.expects.recovery_s
        assert expected is not None
        # It is an upper quantile: not below what came, and not far above it.
        assert 0.9 * came <= expected.high <= 1.6 * came


def test_a_load_beyond_every_size_takes_the_largest_and_says_so() -> None:
    slo = SLO(max_recovery_s=180.0, job=Bounds(1, 6))
    trial = Trial(top_speed(), Constant(70e3), 1800.0, 60.0, slo)
    told = compare(Simulated(), trial, ["ds2"]).run("ds2", 0)
    assert told.trace["slots"][-1] == 6
    notes = [note.why for step in told.steps for note in step.decision.guards if note.guard == "recovery"]
    assert notes
    assert "is broken: job cannot be large enough" in notes[-1]


def test_the_table_says_how_long_it_took() -> None:
    (line,) = recoveries(run("ds2", True))
    assert line.startswith("ds2: caught up after ")
    assert line.endswith("; 0 of 3 too late")
    (line,) = recoveries(run("ds2", False))
    assert "too late" not in line


def test_catching_up_is_measured_from_the_failure() -> None:
    lag = np.zeros(1000)
    lag[120:200] = 50.0
    assert caught_up_s(lag, 100.0) == 100.0
    assert caught_up_s(lag, 600.0) == 0.0
    lag[100:104] = 50.0  # still behind from something else
    assert caught_up_s(lag, 100.0) == 100.0
    lag[900:] = 50.0
    assert caught_up_s(lag, 890.0) == math.inf


def test_failures_in_the_first_minute_and_during_a_recovery_are_survived() -> None:
    slo = SLO(headroom=0.2, max_recovery_s=180.0)
    failures = (20.0, 1200.0, 1290.0)
    trial = Trial(top_speed(), Constant(60e3), 2400.0, 60.0, slo, failures_s=failures)
    told = compare(Simulated(), trial, ["ds2"]).run("ds2", 0)
    numbers = [value for step in told.steps for value in step.decision.evidence.values()]
    assert not any(math.isnan(value) for value in numbers)
    assert not any("failed" in step.decision.sentence for step in told.steps)
    assert all(0 <= time < 900.0 for time in told.recoveries_s(failures))
    assert told.trace["lag_s"][-1] <= 2.0


@pytest.mark.parametrize("value", [0.0, 1e9])
def test_no_load_and_far_too_much_of_it_are_survived(value: float) -> None:
    slo = SLO(max_recovery_s=180.0)
    trial = Trial(top_speed(), Constant(value), 1200.0, 60.0, slo, failures_s=(500.0,))
    told = compare(Simulated(), trial, ["ds2"]).run("ds2", 0)
    assert not any("failed" in step.decision.sentence for step in told.steps)
    if value:
        assert told.trace["slots"][-1] == 24
        assert any("is broken" in note.why for step in told.steps for note in step.decision.guards)
