"""The fluid-flow engine: conservation, back pressure, windows, latency, restarts, failures, metrics."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rheostat import ports
from rheostat.engine.simulated import Fleet, FleetClock, FlowReplicas, Plant
from rheostat.engine.simulated.curves import Curve, Linear, Power, Table, Usl
from rheostat.engine.simulated.plant import (
    Failure,
    Interference,
    LatencyLaw,
    Memory,
    Metrics,
    PlantOperator,
    Restart,
)
from rheostat.engine.testbed.loads import Constant, Load, Sine, Steps
from rheostat.engine.testbed.simulated import SimulatedTestbed
from rheostat.errors import EngineError, InvalidValue
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Phase, Trial
from rheostat.job.graph import Edge, Graph, JobSpec
from rheostat.job.observation import Change, Status
from rheostat.lab.jobs import JOBS, job
from rheostat.ports import Clock, Engine
from rheostat.testing.engine import EngineConformance, intent_to, silent
from rheostat.testing.testbed import TestbedConformance

FIXED_RESTART = Restart(20, 0)


def source(name: str) -> PlantOperator:
    return PlantOperator(name, pinned_tasks=1)


def chain(*operators: PlantOperator, **rest: object) -> Plant:
    names = ("source", *(o.name for o in operators))
    edges = tuple(Edge(names[k], names[k + 1]) for k in range(len(names) - 1))
    plant = Plant(
        "chain",
        Graph(names, edges, ("source",)),
        (source("source"), *operators),
        {"source": 1.0},
        restart=FIXED_RESTART,
    )
    return replace(plant, **rest)  # type: ignore[arg-type]


def run(plant: Plant, load: Load, seconds: int, start: dict[str, int] | None = None, seed: int = 1) -> Fleet:
    allocation = plant.start() if start is None else Allocation(start, plant.start().memory_mb)
    fleet = Fleet(plant, [load], [seed], start=[allocation], trace=True)
    fleet.advance(seconds)
    return fleet


class TestSimulatedEngine(EngineConformance):
    def make_engine(self) -> tuple[Engine, Clock]:
        fleet = Fleet(job("wordcount"), [Constant(3.0)], [1], start=[Allocation({"splitter": 5, "count": 3})])
        return fleet.engine(0), FleetClock(fleet)


class TestDelayedEngine(EngineConformance):
    def make_engine(self) -> tuple[Engine, Clock]:
        fleet = Fleet(job("tsw"), [Constant(50e3)], [1])
        return fleet.engine(0), FleetClock(fleet)


class TestSimulatedTestbed(TestbedConformance):
    def make_testbed(self) -> tuple[ports.Testbed, JobSpec]:
        plant = job("q3")
        return SimulatedTestbed(plant), plant.spec()

    def easy(self) -> tuple[Allocation, dict[str, float]]:
        return Allocation({"filter": 4, "join": 18}), {"auctions": 200e3, "persons": 40e3}

    def too_much(self) -> tuple[Allocation, dict[str, float]]:
        return Allocation({"filter": 4, "join": 1}), {"auctions": 2e6, "persons": 400e3}


def trial_at(share: float, join: int = 18, seconds: float = 60.0) -> Trial:
    rates = {"auctions": 200e3 * share, "persons": 40e3 * share}
    phases = (Phase(30.0, rates), Phase(seconds, rates, observed=True))
    return Trial(f"{share:g}", Allocation({"filter": 4, "join": join}), phases)


def test_trials_measured_together_are_those_measured_one_after_another() -> None:
    trials = [trial_at(share, join) for share, join in ((0.5, 18), (1.0, 6), (3.0, 2))]
    beds = SimulatedTestbed(job("q3"), 5), SimulatedTestbed(job("q3"), 5)
    assert beds[0].measure_all(trials) == [beds[1].measure(trial) for trial in trials]
    assert beds[0].measure(trials[0]) == beds[1].measure(trials[0])  # the count goes on


def test_a_trial_that_cannot_run_does_not_stop_those_beside_it() -> None:
    impossible = replace(trial_at(1.0), allocation=Allocation({"filter": 4}))
    good, bad = SimulatedTestbed(job("q3")).measure_all([trial_at(1.0), impossible])
    assert good.observation is not None
    assert bad.problem is not None


def test_trials_of_different_lengths_are_not_measured_together() -> None:
    with pytest.raises(InvalidValue, match="different lengths"):
        SimulatedTestbed(job("q3")).measure_all([trial_at(1.0), trial_at(1.0, seconds=90.0)])


@pytest.mark.parametrize(
    ("curve", "tasks", "capacity"),
    [
        (Linear(10.0, 5.0), 4, 45.0),
        (Power(10.0, 0.5), 4, 20.0),
        (Usl(10.0, 0.1), 11, 55.0),
        (Usl(10.0, 0.0, 0.01), 10, 100 / 1.9),
        (Table(((2, 20.0), (4, 30.0))), 3, 25.0),
        (Table(((2, 20.0), (4, 30.0))), 1, 10.0),
        (Table(((2, 20.0), (4, 30.0))), 8, 60.0),
    ],
)
def test_curves(curve: Curve, tasks: int, capacity: float) -> None:
    assert curve.capacity_per_s(tasks) == pytest.approx(capacity)


def test_invalid_curves_are_refused() -> None:
    for make in (
        lambda: Linear(0.0),
        lambda: Power(math.nan),
        lambda: Usl(1.0, -0.1),
        lambda: Table(()),
        lambda: Table(((3, 1.0), (2, 2.0))),
    ):
        with pytest.raises(InvalidValue):
            make()


@pytest.mark.parametrize("name", sorted(JOBS))
def test_every_job_runs_and_names_its_origin(name: str) -> None:
    plant = job(name)
    assert plant.origin
    fleet = run(plant, Constant(0.5), 90)
    window = fleet.engine(0).observe()
    assert window.load_per_s == pytest.approx(0.5 * sum(plant.unit_per_s.values()))


def test_unknown_job_suggests_the_nearest() -> None:
    with pytest.raises(InvalidValue, match="did you mean 'wordcount'"):
        job("wordcont")


@settings(max_examples=25)
@given(
    st.lists(st.floats(0.2, 3.0), min_size=2, max_size=4),
    st.lists(st.floats(20, 400), min_size=4, max_size=4),
    st.floats(10, 300),
    st.sampled_from([None, 7.0]),
)
def test_no_record_is_lost_or_made(sel: list[float], rates: list[float], load: float, emits: float | None) -> None:
    """Every record that arrived waits at the source, is in a buffer or in a window, or has a result."""
    names = tuple(f"op{k}" for k in range(len(sel)))
    edges = (Edge("source", "op0"), *(Edge(names[k], names[k + 1], sel[k]) for k in range(len(sel) - 1)))
    operators = tuple(
        PlantOperator(name, Linear(rates[k]), emits_every_s=emits if k == 0 else None, noise=0.05)
        for k, name in enumerate(names)
    )
    plant = Plant("p", Graph(("source", *names), edges, ("source",)), (source("source"), *operators), {"source": 1.0})
    fleet = run(plant, Constant(load), 120)
    assert isinstance(fleet.replicas, FlowReplicas)
    flow = fleet.replicas.flow
    assert fleet.arrived[0, 0] == pytest.approx(load * 120)
    inflow = fleet.processed[0, 0]
    for k in range(len(names)):
        i = k + 1
        assert inflow == pytest.approx(fleet.processed[i, 0] + flow.queue[i, 0], rel=1e-9, abs=1e-6)
        assert fleet.processed[i, 0] == pytest.approx(
            fleet.emitted[i, 0] + flow.pane[i, 0] + flow.held[i, 0], rel=1e-9, abs=1e-6
        )
        inflow = fleet.emitted[i, 0] * (sel[k] if k < len(sel) - 1 else 1.0)


def test_the_bottleneck_limits_the_throughput_and_is_named() -> None:
    plant = chain(*(PlantOperator(n, Linear(r)) for n, r in (("a", 100.0), ("b", 40.0), ("c", 100.0))))
    fleet = run(plant, Constant(80.0), 300)
    window = fleet.engine(0).observe()
    assert window.throughput_per_s == pytest.approx(40.0)
    assert window.overloaded == ("b",)
    assert window.operator("b").useful_share == pytest.approx(1.0)
    assert window.operator("a").useful_share == pytest.approx(0.4)
    assert window.operator("a").true_rate_per_s == pytest.approx(100.0)
    assert window.backlog == pytest.approx(300 * 40.0, rel=0.05)
    assert window.lag_s == pytest.approx(150.0, rel=0.05)
    # Buffers hold two seconds of each operator's own capacity: b's is full, c's is empty.
    assert fleet.queue[2, 0] == pytest.approx(80.0, rel=0.02)
    assert fleet.queue[3, 0] == 0.0


def test_a_join_shares_its_capacity_among_its_inputs() -> None:
    graph = Graph(("big", "small", "join"), (Edge("big", "join"), Edge("small", "join")), ("big", "small"))
    operators = (source("big"), source("small"), PlantOperator("join", Linear(100.0)))
    plant = Plant("join", graph, operators, {"big": 1.0, "small": 0.2})
    fleet = run(plant, Constant(200.0), 200)
    window = fleet.engine(0).observe()
    taken = {s.name: window.operator(s.name).records_in_per_s for s in window.sources}
    assert taken["small"] == pytest.approx(40.0, rel=0.02)
    assert taken["big"] == pytest.approx(60.0, rel=0.02)


def test_catching_up_is_not_overload() -> None:
    plant = chain(PlantOperator("a", Linear(100.0)))
    fleet = run(plant, Steps((200.0, 50.0), 120), 240)
    window = fleet.engine(0).observe()
    assert window.operator("a").blocking_share == 1.0
    assert window.overloaded == ()


def test_windows_emit_in_bursts() -> None:
    plant = chain(PlantOperator("window", Linear(100.0), emits_every_s=10.0), PlantOperator("sink", Linear(200.0)))
    fleet = Fleet(plant, [Constant(50.0)], [1])
    emitted = []
    for _ in range(60):
        before = float(fleet.emitted[1, 0])
        fleet.advance(1)
        emitted.append(float(fleet.emitted[1, 0]) - before)
    assert sum(1 for e in emitted if e > 0) < 30
    assert max(emitted) > 100.0


def test_noise_skew_limit_interference_and_memory_change_capacity() -> None:
    operator = PlantOperator("a", Linear(100.0), skew=0.5)
    assert operator.evenness(1) == 1.0
    plant = chain(
        replace(operator, limit_per_s=250.0), interference=Interference(0.9, exponent=-0.5, reference_slots=1)
    )
    four = Allocation({"a": 4})
    assert plant.capacity_per_s("a", 4, four) == pytest.approx(250 * 0.9 / 2)
    memory = Memory(2048, (512, 1024, 2048, 4096), 0.1, {512: 0.1})
    small = chain(operator, memory=memory)
    assert small.capacity_per_s("a", 1, Allocation({"a": 1}, 4096)) == pytest.approx(110.0)
    assert small.capacity_per_s("a", 1, Allocation({"a": 1}, 512)) == pytest.approx(100 * 0.1 / 1.1**2)


def test_metrics_do_not_show_interference_and_skew() -> None:
    """The operator looks idle although the job is at its capacity: a trap for planners."""
    plant = chain(PlantOperator("a", Linear(100.0), skew=1.0), interference=Interference(0.8))
    window = run(plant, Constant(1000.0), 200, {"a": 4}).engine(0).observe()
    assert window.throughput_per_s == pytest.approx(400 / 1.75 * 0.8)
    assert window.operator("a").true_rate_per_s == pytest.approx(100.0)
    assert window.operator("a").useful_share == pytest.approx(0.8 / 1.75)


def test_an_outside_limit_looks_like_useful_time() -> None:
    plant = chain(PlantOperator("a", Linear(100.0), limit_per_s=150.0))
    window = run(plant, Constant(1000.0), 200, {"a": 10}).engine(0).observe()
    assert window.throughput_per_s == pytest.approx(150.0)
    assert window.operator("a").true_rate_per_s == pytest.approx(15.0)
    assert window.operator("a").useful_share == pytest.approx(1.0)


def test_latency_falls_and_then_rises_with_tasks() -> None:
    law = LatencyLaw(base_s=0.01, cap_s=1.0, buffer_records=1.0, timeout_s=10.0)
    plant = chain(*(PlantOperator(n, Usl(100.0, 0.01), queueing_records=20.0) for n in "ab"), latency=law, buffer_s=1.0)
    p50 = []
    for tasks in (2, 3, 4, 6, 12, 30):
        latency = run(plant, Constant(150.0), 200, {"a": tasks, "b": tasks}).engine(0).observe().latency
        assert latency is not None
        p50.append(latency.p50_s)
    best = int(np.argmin(p50))
    assert 0 < best < len(p50) - 1
    assert p50 == sorted(p50[: best + 1], reverse=True) + sorted(p50[best + 1 :])


def test_a_change_stops_output_for_a_time_that_grows_with_the_state() -> None:
    def downtime(state_bytes: float) -> float:
        heavy = PlantOperator("a", Linear(100.0), state_bytes_per_record=state_bytes, state_retention_s=100.0)
        fleet = run(chain(heavy, restart=Restart(5, 0, per_gb_s=10.0)), Constant(50.0), 600)
        engine = fleet.engine(0)
        engine.apply(intent_to(Allocation({"a": 2}), at_s=600.0), silent)
        during = engine.observe()
        assert (during.change, during.status) == (Change.UNDER_WAY, Status.DOWN)
        fleet.advance(120)
        window = engine.observe()
        assert window.running == Allocation({"a": 2})
        assert window.downtime_s is not None
        return window.downtime_s

    # 50 records/s x 1 MB, retained for 100 s, is 5 GB of state.
    assert downtime(0.0) == 5.0
    assert downtime(1e6) == pytest.approx(55.0, abs=2.0)


def test_restart_times_are_random_but_repeatable() -> None:
    def times(seed: int) -> list[float | None]:
        fleet = run(chain(PlantOperator("a", Linear(100.0)), restart=Restart(40, 10)), Constant(5.0), 60, seed=seed)
        downtimes = []
        for k in range(4):
            fleet.engine(0).apply(intent_to(Allocation({"a": 2 + k % 2}), str(k)), silent)
            fleet.advance(200)
            downtimes.append(fleet.engine(0).observe().downtime_s)
        return downtimes

    assert times(1) == times(1)
    assert times(1) != times(2)
    assert len(set(times(1))) > 1


def test_a_failure_is_detected_stops_replays_and_is_caught_up() -> None:
    failure = Failure(detected_after_s=10, resumed_after_s=40, resumed_sd_s=0, replay_s=20)
    plant = chain(PlantOperator("a", Linear(100.0)), failure=failure)
    fleet = Fleet(plant, [Constant(60.0)], [1], failures_s=[100.0], trace=True)
    fleet.advance(115)
    assert fleet.engine(0).observe().status is Status.DOWN
    fleet.advance(30)
    assert fleet.engine(0).observe().status is Status.RECOVERING
    fleet.advance(200)
    assert fleet.engine(0).observe().status is Status.RUNNING
    trace = fleet.trace()
    assert np.flatnonzero(trace["up"][:, 0] == 0).tolist() == list(range(110, 140))
    # 30 s of downtime and 20 s of replay at 60/s, of which 200 fit into the buffer, worked off at 100 - 60 per second.
    behind = np.flatnonzero(trace["backlog"][:, 0] > 60.0)
    assert behind[-1] == pytest.approx(140 + (50 * 60 - 200 - 60) / 40, abs=2)
    assert trace["throughput_per_s"].sum() == pytest.approx(trace["load_per_s"].sum() + 20 * 60, rel=0.01)


def test_replay_reaches_back_to_the_last_checkpoint() -> None:
    failure = Failure(detected_after_s=0, resumed_after_s=10, resumed_sd_s=0)
    plant = chain(PlantOperator("a", Linear(1e6)), failure=failure, checkpoint_interval_s=60.0)
    fleet = Fleet(plant, [Constant(10.0)], [1], failures_s=[145.0])
    fleet.advance(146)
    assert float(fleet.taken[0, 0]) == pytest.approx(120 * 10.0)


def test_recovery_never_ends_when_capacity_is_below_the_load() -> None:
    plant = chain(PlantOperator("a", Linear(100.0)))
    fleet = Fleet(plant, [Constant(100.5)], [1], failures_s=[100.0])
    fleet.advance(3000)
    assert fleet.engine(0).observe().status is Status.RECOVERING


def test_a_failure_during_a_change_ends_with_the_wanted_allocation() -> None:
    plant = chain(PlantOperator("a", Linear(100.0)), failure=Failure(5, 60, 0, 5))
    fleet = run(plant, Constant(5.0), 60)
    fleet.fail(0)
    fleet.advance(3)
    fleet.engine(0).apply(intent_to(Allocation({"a": 3})), silent)
    fleet.advance(300)
    window = fleet.engine(0).observe()
    assert (window.running, window.change, window.status) == (Allocation({"a": 3}), Change.NONE, Status.RUNNING)


def test_a_failure_in_the_second_of_a_resumption_comes_first_whatever_runs_beside_it() -> None:
    plant = chain(PlantOperator("a", Linear(100.0)), restart=Restart(20, 0), failure=Failure(0, 10, 0, 5))
    crowd, alone = (Fleet(plant, [Constant(5.0)] * size, range(9, 9 - size, -1), trace=True) for size in (2, 1))
    crowd.fail(1, 10.0)
    crowd.fail(1, 30.0)
    for fleet in (crowd, alone):
        fleet.fail(0, 100.0)
        fleet.advance(80)
        fleet.engine(0).apply(intent_to(Allocation({"a": 3})), silent)
        fleet.advance(60)
        assert np.flatnonzero(fleet.trace()["up"][:, 0] == 0).tolist() == list(range(80, 110))
        assert np.flatnonzero(fleet.trace()["slots"][:, 0] == 3)[0] == 110
    assert crowd.engine(0).observe() == alone.engine(0).observe()


def test_metrics_lag_behind_but_offsets_do_not() -> None:
    plant = chain(PlantOperator("a", Linear(1000.0)), metrics=Metrics(display_lag_s=100.0))
    fleet = run(plant, Steps((100.0, 300.0), 300), 380)
    window = fleet.engine(0).observe()
    assert window.load_per_s == pytest.approx(300.0)
    assert window.throughput_per_s == pytest.approx(100.0)
    assert window.end_s == 280.0


def test_missing_and_stale_metrics() -> None:
    bad = chain(*(PlantOperator(n, Linear(100.0)) for n in "abc"), metrics=Metrics(missing=0.5, stale=0.3))
    fleet = run(bad, Constant(20.0), 100)
    engine = fleet.engine(0)
    missing, stale, ends = 0, 0, []
    for _ in range(60):
        fleet.advance(30)
        window = engine.observe()
        missing += sum(1 for o in window.operators if o.true_rate_per_s is None and o.name != "source")
        stale += window.end_s in ends
        ends.append(window.end_s)
    assert 30 < missing < 130
    assert 5 < stale < 35


def test_measurement_noise_is_in_the_true_rate_only() -> None:
    plant = chain(PlantOperator("a", Linear(100.0)), metrics=Metrics(noise=0.1))
    fleet = run(plant, Constant(50.0), 100)
    errors = []
    for _ in range(200):
        fleet.advance(1)
        reading = fleet.engine(0).observe().operator("a")
        assert reading.records_in_per_s == pytest.approx(50.0)
        errors.append(math.log((reading.true_rate_per_s or 0.0) / 100.0))
    assert np.std(errors) == pytest.approx(0.1, rel=0.25)


def test_a_replica_does_not_depend_on_its_neighbours() -> None:
    plant = job("wordcount")
    loads: list[Load] = [Sine(3.0, 2.0, 600.0, noise=0.2), Constant(1.0), Sine(3.0, 2.0, 600.0, noise=0.2)]
    crowd = Fleet(plant, loads, [7, 8, 9], failures_s=[300.0], trace=True)
    alone = Fleet(plant, loads[2:], [9], failures_s=[300.0], trace=True)
    for fleet in (crowd, alone):
        fleet.advance(200)
        fleet.engine(fleet.size - 1).apply(intent_to(Allocation({"splitter": 4, "count": 2})), silent)
        fleet.advance(800)
    for name, series in alone.trace().items():
        assert np.array_equal(series[:, 0], crowd.trace()[name][:, 2]), name
    assert crowd.engine(2).observe() == alone.engine(0).observe()


def test_an_invalid_target_is_refused() -> None:
    fleet = run(replace(job("wordcount"), slots_available=10), Constant(1.0), 60)
    engine = fleet.engine(0)
    for tasks, message in (
        ({"splitter": 91, "count": 1}, "91"),
        ({"splitter": 9, "count": 2}, "11 slots"),
        ({"a": 1}, "a"),
    ):
        with pytest.raises(EngineError, match=message):
            engine.apply(intent_to(Allocation(tasks)), silent)


def test_invalid_plants_are_refused() -> None:
    with pytest.raises(InvalidValue, match="do not match the graph"):
        replace(job("wordcount"), operators=())
    with pytest.raises(InvalidValue, match="unit_per_s"):
        replace(job("wordcount"), unit_per_s={})
    with pytest.raises(InvalidValue, match="unit_per_s of lines"):
        replace(job("wordcount"), unit_per_s={"lines": math.nan})
    with pytest.raises(InvalidValue, match="one load per seed"):
        Fleet(job("wordcount"), [], [])
