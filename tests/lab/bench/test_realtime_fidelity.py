"""The simulator against a real-time run: what counts as an error."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rheostat.lab.bench.realtime_fidelity import COURSES, backlog_error, real_paces, simulate, throughput_error
from rheostat.lab.jobs.realtime import word_count


def run(backlogs: dict[float, float | None], rates: dict[str, float] | None = None, drained_s: float = 60.0) -> Any:
    operators = [SimpleNamespace(name=name, tasks=2, true_rate_per_s=rate) for name, rate in (rates or {}).items()]
    steps = [
        SimpleNamespace(observation=SimpleNamespace(at_s=1000 + at_s, backlog=seen, usable=True, operators=operators))
        for at_s, seen in backlogs.items()
    ]
    schedule = SimpleNamespace(seconds=60)
    trial = SimpleNamespace(schedule=schedule, job=word_count())
    return SimpleNamespace(trial=trial, start_s=1000.0, steps=steps, drained_s=drained_s)


def test_throughput_is_compared_by_the_time_until_the_last_result() -> None:
    backlog = np.zeros(120)
    assert throughput_error(run({}, drained_s=63.0), backlog) == pytest.approx(0.05)
    backlog[:80] = 100.0
    assert throughput_error(run({}, drained_s=76.0), backlog) == pytest.approx(0.05)
    unfinished = run({})
    unfinished.drained_s = None
    assert throughput_error(unfinished, backlog) is None


def test_backlogs_are_compared_by_level() -> None:
    backlog = np.full(120, 100.0)
    # 90 and 110 in one level are no error; 50 in the next one is. After the load nothing is compared.
    seen: dict[float, float | None] = {0.5: 90.0, 5.5: 110.0, 16.0: 50.0, 31.0: None, 70.0: 0.0}
    assert backlog_error(run(seen), backlog) == pytest.approx(50.0 / 150.0)
    assert backlog_error(run({}), backlog) is None


def test_a_stage_that_waits_too_long_is_simulated_as_slow_as_it_is() -> None:
    [split, count] = [word_count().operator(name).curve.capacity_per_s(2) / 2 for name in ("split", "count")]
    shares = real_paces(run({1.0: 0.0}, {"split": 0.9 * split, "count": count, "lines": 5.0}))
    assert shares == pytest.approx({"split": 0.9, "count": 1.0})
    assert np.count_nonzero(simulate(COURSES[0], shares)) > np.count_nonzero(simulate(COURSES[0], {}))
