"""The micro-batch discipline: batches computed by hand, executors that start and stop, the windows of its engine."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rheostat import ports
from rheostat.engine.simulated import Fleet, FleetClock, MicroBatch, Plant, simulated_run
from rheostat.engine.simulated.curves import Linear, Usl
from rheostat.engine.simulated.microbatch.scripted import ScriptedRun
from rheostat.engine.simulated.plant import Interference, Memory, Metrics, PlantOperator, Restart
from rheostat.engine.testbed.loads import Constant, Load, Steps
from rheostat.engine.testbed.simulated import SimulatedTestbed
from rheostat.errors import EngineError, InvalidValue
from rheostat.job.allocation import Allocation
from rheostat.job.graph import Edge, Graph, JobSpec
from rheostat.job.observation import Change, Observation, Status
from rheostat.job.slo import SLO
from rheostat.lab.experiment.comparison import compare
from rheostat.lab.experiment.config import make_config
from rheostat.lab.experiment.oracle.sizes import peak_allocation
from rheostat.lab.experiment.simulated import Simulated
from rheostat.lab.experiment.trial import Trial
from rheostat.lab.jobs import job
from rheostat.ports import Clock, Engine
from rheostat.testing.engine import EngineConformance, intent_to, silent
from rheostat.testing.testbed import TestbedConformance

BARE = MicroBatch(fixed_s=0.0, grow_s=0.0, grow_each_s=0.0, shrink_s=0.0, boundary_s=0.0)
"""No fixed costs, and no delay between a request and its slots."""
Script = list[tuple[float, int]]


def burst(records: float, discipline: MicroBatch, script: Script, seconds: int = 60, **rest: object) -> ScriptedRun:
    """Simulate a burst in the first second, at 100 records/s per slot; its batch starts when that second is over."""
    return simulated_run([records, *([0.0] * seconds)], script, 100.0, discipline, **rest)  # type: ignore[arg-type]


# -- batches ------------------------------------------------------------------------------------------------------


def test_one_batch_after_another_at_a_constant_load() -> None:
    run = simulated_run(np.full(20, 50.0), [(0, 1)], 100.0, MicroBatch(trigger_s=2.0, fixed_s=0.5))
    # A batch holds two seconds of input and takes half a second of planning and one of work.
    for number, batch in enumerate(run.batches, start=1):
        assert (batch.start_s, batch.records) == (2.0 * number, 100.0)
        assert batch.busy_s == pytest.approx(1.0)
        assert batch.end_s == pytest.approx(2.0 * number + 1.5)
        assert batch.oldest_s == pytest.approx(2.0 * number - 2.0)
    assert len(run.batches) == 9
    assert run.backlog[:6].tolist() == pytest.approx([50.0, 100.0, 150.0, 100.0, 150.0, 100.0])
    assert run.throughput_per_s[:6].tolist() == pytest.approx([0.0, 0.0, 0.0, 100.0, 0.0, 100.0])


def test_a_batch_has_its_results_after_its_commits() -> None:
    discipline = replace(BARE, partitions=2, commit_s=1.0, shrink_s=0.5, boundary_s=60.0)
    run = burst(200.0, discipline, [(0, 2), (2.2, 1)])
    (batch,) = run.batches
    # Tasks work from 1 s to 2 s; the batch ends a second later.
    assert (batch.end_s, batch.work_s) == pytest.approx((3.0, 1.0))
    assert run.worked[:3].tolist() == pytest.approx([0.0, 200.0, 200.0])
    assert run.backlog[:3].tolist() == pytest.approx([200.0, 200.0, 0.0])
    # During the commits no task runs: an executor stops at once.
    assert run.slots[:4].tolist() == pytest.approx([2, 2, 1.7, 1])


def test_after_a_batch_longer_than_the_trigger_interval_the_next_starts_at_once() -> None:
    run = simulated_run([250.0, 0, 0, 90.0, 0, 30.0, 0, 0, 0, 0], [(0, 1)], 100.0, replace(BARE, trigger_s=2.0))
    assert [(b.start_s, b.end_s, b.records) for b in run.batches] == [
        (2.0, 4.5, 250.0),  # past its trigger at 4 s
        (4.5, pytest.approx(5.4), 90.0),  # it started late, but the next trigger is still at 6 s
        (6.0, pytest.approx(6.3), 30.0),
    ]


def test_triggers_follow_the_clock_and_sources_release_whole_steps() -> None:
    late = replace(BARE, trigger_s=2.0, trigger_phase_s=0.5)
    run = simulated_run([10.0, 20.0, 40.0, 80.0, 0.0], [(0, 1)], 1e3, late)
    assert [(b.start_s, b.records) for b in run.batches] == [(2.5, 30.0), (4.5, 120.0)]
    run = simulated_run([10.0, 20.0, 40.0, 80.0, 0.0], [(0, 1)], 1e3, replace(late, source_step_s=0.0))
    assert [(b.start_s, b.records) for b in run.batches] == [(0.5, 5.0), (2.5, 45.0), (4.5, 100.0)]


def test_back_to_back_batches_grow_until_they_keep_up() -> None:
    """A batch holds the input that arrived during the one before: L (f + B / c), with fixed point L f / (1 - L / c)."""
    run = simulated_run(np.full(200, 50.0), [(0, 1)], 100.0, replace(BARE, fixed_s=0.5, source_step_s=0.0))
    for before, after in pairwise(run.batches[1:]):
        assert after.records == pytest.approx(50.0 * (0.5 + before.records / 100.0))
    assert run.batches[-1].records == pytest.approx(50.0)
    assert run.batches[-1].end_s - run.batches[-1].start_s == pytest.approx(1.0)


def test_catching_up_takes_the_analytic_time() -> None:
    """150/s for a minute and then 50/s, at 100/s: the backlog is gone when 100 (t - 2) = 9000 + 50 (t - 60)."""
    load = np.where(np.arange(240) < 60, 150.0, 50.0)
    run = simulated_run(load, [(0, 1)], 100.0, replace(BARE, trigger_s=2.0))
    gap = next(before.end_s for before, after in pairwise(run.batches) if after.start_s > before.end_s + 0.1)
    assert gap == pytest.approx(124.0, abs=2.0)
    assert run.backlog[-1] <= 150.0


@pytest.mark.parametrize(("partitions", "slots", "waves"), [(12, 1, 12), (12, 4, 3), (12, 5, 3), (12, 6, 2), (3, 6, 1)])
def test_equal_tasks_run_in_waves(partitions: int, slots: int, waves: int) -> None:
    discipline = replace(BARE, fixed_s=0.25, partitions=partitions, task_s=0.1)
    (batch,) = burst(600.0, discipline, [(0, slots)]).batches
    assert batch.end_s - batch.start_s == pytest.approx(0.25 + waves * (0.1 + 600.0 / partitions / 100.0))
    assert batch.busy_s == pytest.approx(6.0)
    assert batch.work_s == pytest.approx(batch.end_s - batch.start_s - 0.25)


def test_the_curve_is_the_capacity_of_the_usable_slots() -> None:
    curve = Usl(100.0, 0.1)
    run = simulated_run([1000.0, *([0.0] * 30)], [(0, 8)], curve, replace(BARE, partitions=4))
    assert run.batches[0].end_s == pytest.approx(1.0 + 1000.0 / curve.capacity_per_s(4))


def test_a_limit_per_batch_leaves_the_rest_for_the_next_batch() -> None:
    capped = replace(BARE, max_records_per_batch=300.0, fixed_s=0.5)
    run = burst(1000.0, capped, [(0, 1)])
    assert [b.records for b in run.batches] == pytest.approx([300.0, 300.0, 300.0, 100.0])
    assert [b.latest - b.before for b in run.batches] == pytest.approx([1000.0, 700.0, 400.0, 100.0])
    assert run.batches[-1].end_s == pytest.approx(1.0 + 4 * 0.5 + 10.0)
    # 300 records every 3.5 s, and with a trigger of 10 s every 10 s.
    assert capped.sustained_per_s(1, 100.0) == pytest.approx(300 / 3.5)
    assert replace(capped, trigger_s=10.0).sustained_per_s(1, 100.0) == pytest.approx(30.0)


@pytest.mark.parametrize("trigger_s", [0.0, 2.0])
@pytest.mark.parametrize("source_step_s", [0.0, 1.0])
def test_seconds_without_input_run_no_batch(trigger_s: float, source_step_s: float) -> None:
    discipline = replace(BARE, trigger_s=trigger_s, source_step_s=source_step_s, fixed_s=0.5)
    run = simulated_run([*([0.0] * 10), 100.0, *([0.0] * 10)], [(0, 1)], 100.0, discipline)
    assert sum(b.records for b in run.batches) == pytest.approx(100.0)
    assert run.batches[0].start_s >= 10.0
    assert run.backlog[:10].tolist() == [0.0] * 10
    assert run.backlog[-1] == 0.0


def test_batches_grow_without_end_above_the_sustained_load() -> None:
    """12 tasks need three waves on 5 slots and on 4: the fifth slot adds nothing."""
    discipline = replace(BARE, fixed_s=0.2, partitions=12)
    assert discipline.sustained_per_s(5, 500.0) == pytest.approx(400.0)
    for load, keeps_up in ((390.0, True), (410.0, False)):
        run = simulated_run(np.full(1200, load), [(0, 5)], 100.0, discipline)
        late = run.batches[-1].end_s - run.batches[-1].start_s
        assert (late < 15.0) is keeps_up


# -- executors ----------------------------------------------------------------------------------------------------


def test_without_partitions_a_running_batch_gets_faster_at_once() -> None:
    (batch,) = burst(1000.0, BARE, [(0, 1), (6, 2)]).batches
    assert batch.end_s == pytest.approx(8.5)
    assert batch.busy_s == pytest.approx(10.0)


def test_running_tasks_go_on_and_waiting_ones_take_new_slots() -> None:
    # Four tasks of 2.5 s: the second runs from 3.5 to 6 s, the third takes the new slot at 4 s, the last starts at 6 s.
    (batch,) = burst(1000.0, replace(BARE, partitions=4), [(0, 1), (4, 2)]).batches
    assert batch.end_s == pytest.approx(8.5)
    # In the last wave no task waits for a slot.
    (batch,) = burst(1000.0, replace(BARE, partitions=4), [(0, 1), (9, 4)]).batches
    assert batch.end_s == pytest.approx(11.0)


def test_executors_stop_between_two_batches() -> None:
    discipline = replace(BARE, partitions=4, shrink_s=1.0, boundary_s=5.0)
    run = burst(1000.0, discipline, [(0, 2), (0.5, 1)])
    assert run.batches[0].end_s == pytest.approx(6.0)
    assert run.slots[:8].tolist() == pytest.approx([2, 2, 2, 2, 2, 2, 1, 1])


def test_executors_stop_inside_a_batch_that_does_not_end() -> None:
    # Both slots have worked for 1.5 s when one stops, at 2.5 s: its task is repeated, and three tasks run in a row.
    run = burst(1000.0, replace(BARE, partitions=4, shrink_s=1.0, boundary_s=1.0), [(0, 2), (0.5, 1)])
    assert run.slots[:5].tolist() == pytest.approx([2, 2, 1.5, 1, 1])
    (batch,) = run.batches
    assert batch.end_s == pytest.approx(3.5 + 3 * 2.5)
    assert batch.busy_s == pytest.approx(10.0)


def test_executors_start_one_after_another() -> None:
    growing = replace(BARE, quantum=2, grow_s=5.5, grow_each_s=2.0)
    run = burst(0.0, growing, [(0, 2), (1, 8)], 12)
    assert run.slots.tolist() == pytest.approx([2] * 6 + [3, 4, 5, 6, 7, 8, 8])


def test_a_request_cancels_or_counts_starting_executors() -> None:
    growing = replace(BARE, grow_s=5.5, grow_each_s=2.0)
    cancelled = burst(0.0, growing, [(0, 1), (1, 4), (7, 2)], 12).slots
    assert cancelled.tolist() == pytest.approx([1] * 6 + [1.5] + [2] * 6)
    counted = burst(0.0, growing, [(0, 1), (1, 2), (6, 3)], 12).slots
    assert counted.tolist() == pytest.approx([1] * 6 + [1.5] + [2] * 4 + [2.5, 3])
    never_stopped = burst(0.0, replace(BARE, shrink_s=2.0), [(0, 3), (1, 1), (2, 3)], 6).slots
    assert never_stopped.tolist() == [3] * 7


def test_a_killed_executor_loses_its_tasks_and_is_replaced() -> None:
    discipline = replace(BARE, partitions=2, grow_s=5.5)
    # Two tasks of 5 s; one is lost at 3 s and starts again when the other has finished.
    run = burst(1000.0, discipline, [(0, 2)], kills_s=[3.0])
    assert run.slots[:10].tolist() == pytest.approx([2, 2, 2, 1, 1, 1, 1, 1, 1.5, 2])
    assert run.batches[0].end_s == pytest.approx(11.0)
    # Without an executor the job waits for a new one, and starts both tasks again.
    run = burst(1000.0, discipline, [(0, 1)], kills_s=[3.0])
    assert run.slots[:10].tolist() == pytest.approx([1, 1, 1, 0, 0, 0, 0, 0, 0.5, 1])
    assert run.batches[0].end_s == pytest.approx(8.5 + 10.0)


def test_a_script_without_a_start_or_with_fractional_executors_is_refused() -> None:
    with pytest.raises(InvalidValue, match="begin it at 0 s"):
        simulated_run([1.0], [(1.0, 2)], 100.0, BARE)
    with pytest.raises(InvalidValue, match=r"3 slots is not a multiple of the slots per executor \(2\)"):
        simulated_run([1.0], [(0.0, 3)], 100.0, replace(BARE, quantum=2))


# -- properties ---------------------------------------------------------------------------------------------------

DISCIPLINES = st.builds(
    MicroBatch,
    trigger_s=st.sampled_from([0.0, 1.0, 2.5]),
    fixed_s=st.floats(0.05, 1.0),
    commit_s=st.sampled_from([0.0, 0.4]),
    partitions=st.sampled_from([None, 1, 4, 12]),
    max_records_per_batch=st.sampled_from([None, 250.0]),
    source_step_s=st.sampled_from([0.0, 0.5, 1.0, 5.0]),
)


@settings(max_examples=60)
@given(
    DISCIPLINES,
    st.lists(st.sampled_from([0.0, 30.0, 100.0, 777.7]), min_size=5, max_size=60),
    st.lists(st.tuples(st.floats(0.0, 60.0), st.integers(1, 6)), max_size=5),
    st.lists(st.floats(0.0, 60.0), max_size=2),
)
def test_no_record_is_lost_or_made(
    discipline: MicroBatch, load: list[float], script: Script, kills: list[float]
) -> None:
    run = simulated_run(load, [(0.0, 2), *script], 60.0, discipline, kills_s=kills)
    assert run.backlog.min() >= 0.0
    arrived = np.cumsum(load)
    assert np.allclose(arrived, np.cumsum(run.throughput_per_s) + run.backlog)
    assert sum(b.records for b in run.batches) == pytest.approx(run.throughput_per_s.sum())
    for before, after in pairwise(run.batches):
        assert after.start_s >= before.end_s
        assert after.before == pytest.approx(before.before + before.records)
    for batch in run.batches:
        # Every slot processes 60 records/s; repeated work counts once.
        assert batch.busy_s == pytest.approx(batch.records / 60.0)
        assert batch.oldest_s <= batch.start_s + 1e-6


@settings(max_examples=60)
@given(
    st.sampled_from([None, 1, 3, 8, 12]),
    st.integers(1, 8),
    st.lists(st.tuples(st.floats(0.5, 20.0), st.integers(0, 8)), max_size=3),
    st.integers(0, 8),
)
def test_more_slots_never_finish_a_batch_later(
    partitions: int | None, slots: int, grows: list[tuple[float, int]], more: int
) -> None:
    discipline = replace(BARE, partitions=partitions, task_s=0.1 if partitions else 0.0)
    script, count = [(0.0, slots)], slots
    for moment, added in sorted(grows):
        count += added
        script.append((moment, count))
    (fewer,) = burst(800.0, discipline, script).batches
    (many,) = burst(800.0, discipline, [(moment, size + more) for moment, size in script]).batches
    assert many.end_s <= fewer.end_s + 1e-9


# -- behind the Engine port ---------------------------------------------------------------------------------------


def plant(noise: float = 0.0, **batching: object) -> Plant:
    discipline = MicroBatch(**{"trigger_s": 2.0, "fixed_s": 0.2, **batching})  # type: ignore[arg-type]
    operator = PlantOperator("job", Linear(100.0), max_tasks=8, noise=noise)
    shown = Metrics(window_s=20.0, min_window_s=1.0, settle_s=0.0)
    graph = Graph(("job",), (), ("job",))
    return Plant("batches", graph, (operator,), {"job": 1.0}, metrics=shown, discipline=discipline)


def run_fleet(made: Plant, load: Load, seconds: int, slots: int = 1) -> Fleet:
    fleet = Fleet(made, [load], [1], start=[Allocation({"job": slots})], trace=True)
    fleet.advance(seconds)
    return fleet


def observe(fleet: Fleet) -> Observation:
    return fleet.engine(0).observe()


class TestMicroBatchEngine(EngineConformance):
    settle_s = 60.0

    def make_engine(self) -> tuple[Engine, Clock]:
        fleet = Fleet(job("spark-ysb"), [Constant(2.0)], [1])
        return fleet.engine(0), FleetClock(fleet)


class TestExecutorsOfTwoSlots(EngineConformance):
    settle_s = 60.0

    def make_engine(self) -> tuple[Engine, Clock]:
        fleet = Fleet(plant(quantum=2, partitions=8), [Constant(150.0)], [1], start=[Allocation({"job": 4})])
        return fleet.engine(0), FleetClock(fleet)


class TestMicroBatchTestbed(TestbedConformance):
    def make_testbed(self) -> tuple[ports.Testbed, JobSpec]:
        made = job("spark-ysb")
        return SimulatedTestbed(made), made.spec()

    def easy(self) -> tuple[Allocation, dict[str, float]]:
        return Allocation({"job": 4}), {"job": 1000.0}

    def too_much(self) -> tuple[Allocation, dict[str, float]]:
        return Allocation({"job": 1}), {"job": 1000.0}


def test_a_steady_window_shows_the_true_rate_of_a_slot() -> None:
    window = observe(run_fleet(plant(), Constant(120.0), 102, slots=2))
    reading = window.operator("job")
    assert reading.true_rate_per_s == pytest.approx(100.0)
    # Ten batches of 240 records, from the first trigger to the last end: 18 s and 1.4 s.
    assert reading.records_in_per_s == pytest.approx(10 * 240 / 19.4)
    assert reading.useful_share == pytest.approx(10 * 2.4 / (2 * 19.4))
    assert window.load_per_s == pytest.approx(120.0)
    assert (window.overloaded, window.overdue_s) == ((), 0.0)
    # The batch of 102 s has just begun: its two seconds of input have no result yet.
    assert window.backlog == pytest.approx(240.0)
    assert window.lag_s == pytest.approx(2.0)
    assert window.latency is not None
    assert window.latency.p50_s == pytest.approx(0.2 + 240 / 200)
    assert (window.status, window.change, window.problem) == (Status.RUNNING, Change.NONE, None)


def test_overload_shows_and_a_batch_that_does_not_end_is_overdue() -> None:
    fleet = run_fleet(plant(), Steps((50.0, 250.0), 60), 59)
    assert observe(fleet).overloaded == ()
    fleet.advance(41)
    overloaded = observe(fleet)
    assert overloaded.overloaded == ("job",)
    assert (overloaded.backlog or 0) > 2000.0
    overdue = 0.0
    for _ in range(80):
        fleet.advance(1)
        overdue = max(overdue, observe(fleet).overdue_s)
    assert overdue > 10.0


def test_resizing_needs_no_restart_and_starts_a_new_window() -> None:
    fleet = run_fleet(plant(), Constant(80.0), 61)
    engine = fleet.engine(0)
    notes: list[str] = []
    engine.apply(intent_to(Allocation({"job": 3}), at_s=61.0), notes.append)
    assert notes == ["request 3 executors"]
    shown = []
    for _ in range(12):
        window = engine.observe()
        assert window.status is Status.RUNNING
        shown.append((window.running.slots if window.running else 0, window.change, window.usable))
        fleet.advance(1)
    under_way = Change.UNDER_WAY
    assert shown[:6] == [(1, under_way, True)] * 6
    # The first executor registers at 66.5 s, the second at 68.5 s: the next batch to finish ends at 71 s.
    assert [size for size, _, _ in shown] == [1] * 6 + [2] * 2 + [3] * 4
    assert [usable for _, _, usable in shown[6:]] == [False] * 4 + [True] * 2
    assert [change for _, change, _ in shown[6:]] == [under_way] * 2 + [Change.NONE] * 4
    assert engine.observe().start_s >= 68.5
    assert fleet.trace()["slots"][64:70, 0].tolist() == pytest.approx([1, 1, 1.5, 2, 2.5, 3])


def test_rate_and_backlog_show_before_a_batch_of_the_new_size_has_ended() -> None:
    fleet = run_fleet(plant(), Constant(80.0), 61)
    engine = fleet.engine(0)
    engine.apply(intent_to(Allocation({"job": 3}), at_s=61.0), silent)
    fleet.advance(8)
    window = engine.observe()
    assert (window.problem, window.operators) == ("no batch has finished in this window", ())
    assert window.load_per_s == pytest.approx(80.0)
    assert window.backlog == pytest.approx(fleet.trace()["backlog"][68, 0])


def test_batches_of_different_sizes_show_the_fixed_cost() -> None:
    fleet = run_fleet(plant(), Steps((20.0, 60.0, 40.0), 8), 0)
    engine = fleet.engine(0)
    for _ in range(30):
        fleet.advance(2)
        window = engine.observe()
    assert window.batch_time is not None
    assert window.batch_time.fixed_s == pytest.approx(0.2, abs=0.01)
    assert 1 / window.batch_time.slot_s_per_record == pytest.approx(100.0, rel=0.02)


def test_idle_time_is_not_a_batch_that_outlasts_the_window() -> None:
    fleet = run_fleet(plant(), Steps((50.0, 0.0, 0.0), 30), 0)
    engine = fleet.engine(0)
    for _ in range(70):
        fleet.advance(1)
        window = engine.observe()
    assert (window.load_per_s, window.overdue_s, window.problem) == (0.0, 0.0, None)
    assert window.operator("job").records_in_per_s == 0.0


def test_a_killed_executor_is_missing_until_it_is_replaced() -> None:
    fleet = Fleet(plant(), [Constant(80.0)], [1], failures_s=[60.0], trace=True)
    fleet.advance(62)
    window = observe(fleet)
    assert (window.running, window.wanted, window.change) == (None, Allocation({"job": 1}), Change.UNDER_WAY)
    fleet.advance(60)
    window = observe(fleet)
    assert (window.running, window.change, window.problem) == (Allocation({"job": 1}), Change.NONE, None)
    # No record is read again: the job works off the backlog, and no record counts twice.
    trace = fleet.trace()
    assert trace["throughput_per_s"].sum() + trace["backlog"][-1, 0] == pytest.approx(122 * 80.0, rel=1e-4)
    assert trace["backlog"][66, 0] > 500.0
    assert trace["lag_s"][66, 0] == pytest.approx(67 - 58)


def test_the_trace_shows_the_latency() -> None:
    trace = run_fleet(plant(), Constant(50.0), 40).trace()
    # A batch of 100 records starts when its oldest record is 2 s old, and lasts 1.2 s: after 1 s it still runs.
    assert trace["latency_s"][10:20:2, 0].tolist() == pytest.approx([3.0] * 5)
    assert trace["latency_s"][11:20:2, 0].tolist() == pytest.approx([3.2] * 5)
    assert trace["lag_s"][11:20:2, 0].tolist() == pytest.approx([2.0] * 5)


def test_an_idle_job_has_a_window_and_a_job_without_a_batch_has_none() -> None:
    window = observe(run_fleet(plant(), Constant(0.0), 60))
    assert (window.load_per_s, window.backlog, window.problem) == (0.0, 0.0, None)
    assert window.operator("job").records_in_per_s == 0.0
    assert observe(run_fleet(plant(), Constant(50.0), 2)).problem == "no batch has finished in this window"


def test_metrics_may_be_noisy_missing_or_stale() -> None:
    bad = replace(plant(), metrics=Metrics(window_s=20.0, min_window_s=1.0, noise=0.1, missing=0.3, stale=0.2))
    fleet = run_fleet(bad, Constant(80.0), 60)
    engine, rates, missing, stale, last_s = fleet.engine(0), [], 0, 0, 0.0
    for _ in range(150):
        fleet.advance(1)
        window = engine.observe()
        rate = window.operator("job").true_rate_per_s
        stale += window.end_s == last_s
        missing += window.end_s != last_s and rate is None
        rates += [] if rate is None else [math.log(rate / 100.0)]
        last_s = window.end_s
    assert np.std(rates) == pytest.approx(0.1, rel=0.3)
    assert 15 < stale < 45
    assert 20 < missing < 55


def test_a_replica_does_not_depend_on_its_neighbours() -> None:
    made = plant(noise=0.1, partitions=6)
    loads: list[Load] = [Constant(300.0, noise=0.2), Constant(90.0), Constant(150.0, noise=0.2)]
    crowd = Fleet(made, loads, [7, 8, 9], failures_s=[150.0], trace=True)
    alone = Fleet(made, loads[2:], [9], failures_s=[150.0], trace=True)
    for fleet in (crowd, alone):
        fleet.advance(200)
        fleet.engine(fleet.size - 1).apply(intent_to(Allocation({"job": 3})), silent)
        fleet.advance(200)
    for name, series in alone.trace().items():
        assert np.array_equal(series[:, 0], crowd.trace()[name][:, 2]), name
    assert crowd.engine(2).observe() == alone.engine(0).observe()


def test_noise_interference_and_limits_change_the_true_rate() -> None:
    def true_rate(made: Plant, slots: int = 4) -> float:
        return observe(run_fleet(made, Constant(50.0), 100, slots)).operator("job").true_rate_per_s or 0.0

    assert true_rate(plant(noise=0.2)) != pytest.approx(100.0, rel=1e-3)
    halved = replace(plant(), interference=Interference(0.5, reference_slots=4))
    assert true_rate(halved) == pytest.approx(50.0)
    limited = replace(plant(), operators=(PlantOperator("job", Linear(100.0), limit_per_s=200.0, max_tasks=8),))
    assert true_rate(limited) == pytest.approx(50.0)
    assert limited.capacity_per_s("job", 4, Allocation({"job": 4})) == pytest.approx(200.0)


# -- the plant and its policies -----------------------------------------------------------------------------------


def test_ds2_selects_the_right_size_for_every_load_level_of_the_demo() -> None:
    """With 30 % headroom: 100 records/s x level x 1.3 / 400 per slot. DS2 does not change the job to save one slot."""
    levels = (2.0, 4.0, 6.0, 10.0, 6.0, 3.0, 2.0, 2.0)
    trial = Trial(
        job("spark-ysb"),
        Steps(levels, 120),
        960,
        interval_s=5.0,
        slo=SLO(max_latency_s=15.0, headroom=0.3),
        start=Allocation({"job": 1}),
    )
    comparison = compare(Simulated(), trial, ["ds2", "static"], [1])
    slots = comparison.run("ds2", 1).trace["slots"]
    assert [slots[120 * k + 115] for k in range(8)] == [1, 2, 2, 4, 2, 2, 2, 2]
    ds2, static = comparison.rows
    assert ds2.slo_seconds_over < 30 < static.slo_seconds_over


def test_the_plant_of_the_demo_matches_the_demo() -> None:
    pytest.importorskip("pyspark")
    from rheostat.lab.demo import microbatch as demo
    from rheostat.lab.workload.ysb import YSB

    made = job("spark-ysb")
    assert isinstance(made.discipline, MicroBatch)
    assert made.discipline.partitions == demo.PARTITIONS
    assert made.capacity_per_s("job", 1, Allocation({"job": 1})) == demo.SLOT_PER_S
    (tunable,) = made.spec().tunable
    assert (tunable.bounds.min, tunable.bounds.max) == demo.EXECUTORS
    assert made.unit_per_s["job"] == YSB.unit_per_s
    assert made.metrics.window_s == demo.WINDOW_S


def test_the_oracle_knows_waves() -> None:
    """1300/s need 3.25 slots; 1700/s need 4.25, and twelve tasks reach that only on six slots."""
    made = job("spark-ysb")
    for level, slots in ((13.0, 4), (17.0, 6)):
        assert peak_allocation(Trial(made, Constant(level), 600)).slots == slots


def test_bounds_are_whole_executors_with_at_most_one_slot_per_task() -> None:
    made = plant(quantum=3, partitions=4)
    (tunable,) = made.spec().tunable
    assert (tunable.bounds.min, tunable.bounds.max, tunable.quantum) == (3, 6, 3)
    assert made.start() == Allocation({"job": 3})
    engine = Fleet(made, [Constant(1.0)], [1]).engine(0)
    for tasks, message in ((4, "4 slots is not a multiple of the slots per executor"), (9, "job cannot have 9 tasks")):
        with pytest.raises(EngineError, match=message):
            engine.apply(intent_to(Allocation({"job": tasks})), silent)


def test_invalid_plants_and_parameters_are_refused() -> None:
    two = Graph(("a", "b"), (Edge("a", "b"),), ("a",))
    operators = (PlantOperator("a", pinned_tasks=1), PlantOperator("b"))
    with pytest.raises(InvalidValue, match="one operator that is also the source"):
        Plant("two", two, operators, {"a": 1.0}, discipline=MicroBatch())
    for what, value in (("restart", Restart(5)), ("memory", Memory(1024, (1024,))), ("buffer_s", 1.0)):
        with pytest.raises(InvalidValue, match=f"{what} has no effect on micro-batches"):
            replace(plant(), **{what: value})  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="skew has no effect"):
        replace(plant(), operators=(PlantOperator("job", skew=0.5),))
    for values, message in (
        ({"fixed_s": 0.0, "source_step_s": 0.0}, "would take no time"),
        ({"task_s": 0.1}, "set partitions"),
        ({"trigger_s": 2.0, "trigger_phase_s": 3.0}, "trigger_phase_s"),
        ({"partitions": 0}, "partitions"),
        ({"grow_s": -1.0}, "grow_s"),
    ):
        with pytest.raises(InvalidValue, match=message):
            MicroBatch(**values)


def test_a_configuration_file_describes_a_micro_batch_job() -> None:
    values = {
        "name": "mine",
        "sources": {"all": 100},
        "operators": {"all": {"curve": {"kind": "linear", "rate_per_s": 400}, "max_tasks": 6}},
        "microbatch": {"trigger_s": 2, "partitions": 12, "quantum": 2},
    }
    made = make_config({"job": values, "load": "constant"}).trial().job
    assert made.discipline == MicroBatch(trigger_s=2, partitions=12, quantum=2)
    with pytest.raises(InvalidValue, match=r"job\.microbatch\.triger_s.*'trigger_s'"):
        make_config({"job": {**values, "microbatch": {"triger_s": 2}}, "load": "constant"}).trial()
    with pytest.raises(InvalidValue, match=r"job.*restart has no effect"):
        make_config({"job": {**values, "restart": {"mean_s": 5}}, "load": "constant"}).trial()
