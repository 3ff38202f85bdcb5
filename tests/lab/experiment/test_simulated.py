"""Comparisons: same plant, loads and seeds for everybody; one cost, and its lower bound."""

from dataclasses import replace

import numpy as np
import pytest

from rheostat.control.limits import limits
from rheostat.engine.simulated.plant import Interference
from rheostat.engine.testbed.loads import Constant, Permutation, Steps
from rheostat.errors import InvalidValue
from rheostat.job.allocation import Allocation
from rheostat.job.slo import SLO, Bounds
from rheostat.journal.memory import MemoryJournal
from rheostat.lab.bench.measure import Measure
from rheostat.lab.data import data_folder
from rheostat.lab.experiment.comparison import compare
from rheostat.lab.experiment.oracle.sizes import peak_allocation, smallest
from rheostat.lab.experiment.score import mean_interval, student
from rheostat.lab.experiment.simulated import Simulated
from rheostat.lab.experiment.trial import Trial
from rheostat.lab.jobs import job
from rheostat.lab.papers.phoebe.recordings import recovery_s, shown

TRIAL = Trial(job("wordcount"), Steps((2.0, 8.0, 3.0), 600), 1800, slo=SLO(max_latency_s=10.0))


def test_peak_allocation_sustains_the_highest_load_with_the_fewest_tasks() -> None:
    found = peak_allocation(TRIAL)
    plant = TRIAL.job
    for name, unit in (("splitter", 1e5), ("count", 1e6)):
        tasks = found.tasks[name]
        assert plant.capacity_per_s(name, tasks, found) >= 8 * unit
        assert plant.capacity_per_s(name, tasks - 1, found) < 8 * unit


def test_the_oracle_sees_through_interference_and_limits() -> None:
    plant = replace(job("wordcount"), interference=Interference(1.0, per_slot=0.01, reference_slots=1))
    spec, demand = plant.spec(), {"splitter": 5e5, "count": 5e6}
    free = smallest(plant.capacity_per_s, demand, plant.start(), limits(spec, SLO()))
    assert all(plant.capacity_per_s(n, free.tasks[n], free) >= demand[n] for n in demand)
    bound = smallest(
        plant.capacity_per_s, demand, plant.start(), limits(spec, SLO(operators={"splitter": Bounds(1, 3)}))
    )
    assert bound.tasks["splitter"] == 3


def test_everybody_gets_the_same_load() -> None:
    trial = replace(TRIAL, load=Permutation(hold_s=300), duration_s=3000)
    found = compare(Simulated(), trial, ["ds2", "static", "oracle"], [1, 2])
    assert [row.policy for row in found.rows] == ["ds2", "static", "oracle"]
    for seed in (1, 2):
        loads = [found.run(p, seed).trace["load_per_s"] for p in ("ds2", "static", "oracle")]
        assert np.array_equal(loads[0], loads[1])
        assert np.array_equal(loads[0], loads[2])
    assert not np.array_equal(found.run("ds2", 1).trace["load_per_s"], found.run("ds2", 2).trace["load_per_s"])
    assert 0 < found.run("oracle", 1).reconfigurations <= 11
    static = next(row for row in found.rows if row.policy == "static")
    assert static.reconfigurations == 0
    assert static.slot_seconds == 3000 * trial.job.start().slots


def test_rows_count_what_happened() -> None:
    trial = replace(TRIAL, load=Constant(3.0), duration_s=600, start=Allocation({"splitter": 1, "count": 1}))
    (row,) = compare(Simulated(), trial, ["static"], [1]).rows
    # One splitter task does about 97K of 300K records/s: behind from the tenth second or so on.
    assert row.slo_seconds_over == pytest.approx(600, abs=20)
    assert row.backlog_max == pytest.approx(600 * (3e5 - 97e3), rel=0.1)
    assert row.slot_seconds == 1200
    # Too few slots cost less than the oracle's and far more in all: no second over the SLO is for free.
    assert row.slot_seconds_over_oracle is not None
    assert row.slot_seconds_over_oracle < 1
    assert row.peak_slots == 6
    assert row.cost == row.slot_seconds + 10 * 6 * row.slo_seconds_over
    assert row.cost_over_oracle is not None
    assert row.cost_over_oracle > 3
    assert row.windows_short == 10
    assert set(row.as_dict()) >= {"policy", "reconfigurations", "latency_p99_s", "decision_ms"}


def test_the_oracles_schedule_is_near_the_bound_and_its_changes_are_paid() -> None:
    trial = replace(TRIAL, start=peak_allocation(TRIAL))
    (row,) = compare(Simulated(journal=MemoryJournal()), trial, ["oracle"], [1, 2]).rows
    assert row.cost_over_oracle is not None
    assert 1.0 <= row.cost_over_oracle < 1.2
    assert row.changes_per_day == pytest.approx(row.reconfigurations * 48)
    # Some 20 s without output per change, with at least the smallest size.
    assert row.slot_seconds_lost > 15 * row.reconfigurations * 2
    assert row.cost_over_oracle_low is not None
    assert row.cost_over_oracle_high is not None
    assert row.cost_over_oracle_low <= row.cost_over_oracle <= row.cost_over_oracle_high


def test_the_interval_of_a_mean_is_students() -> None:
    stats = pytest.importorskip("scipy.stats")
    for count in (2, 3, 11, 12, 20, 60):
        assert student(count - 1) == pytest.approx(stats.t.ppf(0.975, count - 1), rel=1e-3)
    values = [1.0, 2.0, 4.0]
    low, high = stats.t.interval(0.95, 2, loc=np.mean(values), scale=stats.sem(values))
    assert mean_interval(values) == pytest.approx((low, high), rel=1e-3)
    assert mean_interval([1.0]) == (None, None)


def test_shown_is_a_late_trailing_mean() -> None:
    series = np.arange(10.0)[:, None]
    assert shown(series, 3, 0)[6, 0] == pytest.approx((3 + 4 + 5) / 3)
    assert shown(series, 3, 2)[6, 0] == pytest.approx((1 + 2 + 3) / 3)


def test_recovery_ends_when_latency_is_good_for_a_minute() -> None:
    latency = np.full(400, 1.0)
    latency[105:150] = 9.0
    latency[160:170] = 9.0  # less than a minute later: not recovered in between
    latency[300:310] = 9.0
    assert recovery_s(latency, 1.0, 100.0) == 70.0
    assert recovery_s(np.full(50, 1.0), 1.0, 10.0) == 0.0


def test_data_are_read_in_place_or_missed_with_a_clear_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RHEOSTAT_DATA", "no/such/folder")
    with pytest.raises(InvalidValue, match=r"RHEOSTAT_DATA is 'no/such/folder'"):
        data_folder()


def test_a_measure_is_written_under_the_agreed_names() -> None:
    row = Measure("simulator", "job_seconds_per_s", 1.0, "1/s", ">= 300000", "higher", "note").as_dict()
    assert list(row) == ["bench", "measure", "value", "unit", "goal", "better"]


@pytest.mark.parametrize(
    ("goal", "value", "met"), [("<= 5", 5.0, True), ("< 0.4", 0.4, False), (">= 300000", 3e5, True), ("", 1.0, None)]
)
def test_goals_are_compared(goal: str, value: float, met: bool | None) -> None:
    assert Measure("b", "m", value, "", goal, "lower").met is met
