"""The real-time discipline: late batches computed by hand, changes, failures, and the windows of its engine."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rheostat import ports
from rheostat.engine.simulated import Fleet, FleetClock, MicroBatch, Plant, RealTime, RealTimeReplicas
from rheostat.engine.simulated.curves import Linear, Usl
from rheostat.engine.simulated.plant import Memory, Metrics, PlantOperator, Restart
from rheostat.engine.simulated.realtime.job import Capacity, RealTimeJob
from rheostat.engine.testbed.loads import Constant, Load, Steps
from rheostat.engine.testbed.simulated import SimulatedTestbed
from rheostat.errors import EngineError, InvalidValue
from rheostat.job.allocation import Allocation
from rheostat.job.graph import Edge, Graph, JobSpec
from rheostat.job.observation import Change, Observation, Status
from rheostat.job.slo import SLO
from rheostat.lab.experiment.comparison import compare
from rheostat.lab.experiment.config import make_config
from rheostat.lab.experiment.simulated import Simulated
from rheostat.lab.experiment.trial import Trial
from rheostat.lab.jobs import job
from rheostat.ports import Clock, Engine
from rheostat.testing.engine import EngineConformance, intent_to, silent
from rheostat.testing.testbed import TestbedConformance

BARE = RealTime(gap_s=(0.0, 0.0))
"""The next batch starts at once."""


def make_job(start: dict[str, int], discipline: RealTime = BARE, selectivity: float = 2.0) -> RealTimeJob:
    """Return a job of a source, `map` at 100 records/s and task, and `count` (keyed) at 200."""

    def capacities(allocation: Allocation) -> list[Capacity]:
        each = {"map": 100.0, "count": 200.0}
        rates = [(per_s * allocation.tasks[name], allocation.tasks[name]) for name, per_s in each.items()]
        return [Capacity(1e12, 1e12, 1), *(Capacity(per_s, per_s, tasks) for per_s, tasks in rates)]

    rng = np.random.default_rng(1)
    return RealTimeJob(discipline, [1.0, 1.0, selectivity], {"count"}, Allocation(start), capacities, rng, history=None)


def play(live: RealTimeJob, arrivals: list[float], script: dict[int, dict[str, int] | None] | None = None) -> None:
    """Simulate arrivals per second; the script requests tasks at some seconds, or (None) kills an executor."""
    for second, records in enumerate(arrivals, start=round(live.now_s)):
        live.arrive(records)
        if script and second in script:
            requested = script[second]
            if requested is None:
                live.kill()
            else:
                live.request(Allocation(requested))
        live.run_until(second + 1.0)


# -- batches ------------------------------------------------------------------------------------------------------


def test_a_batch_on_time_lasts_as_long_as_the_source_reads() -> None:
    live = make_job({"map": 1, "count": 1})
    play(live, [80.0] * 20)
    assert [batch.end_s for batch in live.finished] == pytest.approx([5.0, 10.0, 15.0, 20.0])
    for batch in live.finished:
        assert [work.records for work in batch.stages] == pytest.approx([400.0, 400.0, 800.0])
        assert [work.useful_s for work in batch.stages[1:]] == pytest.approx([4.0, 4.0])
        assert [work.end_s - batch.start_s for work in batch.stages] == pytest.approx([5.0, 5.0, 5.0])
    assert [live.done, live.backlog, live.lag_s] == pytest.approx([1600.0, 0.0, 0.0])


def test_without_back_pressure_batches_get_longer() -> None:
    """200/s at a capacity of 100/s: 5 s of input take 10 s, then 10 s of input take 20 s, then 20 s take 40 s."""
    live = make_job({"map": 4, "count": 1})
    play(live, [200.0] * 4)
    # `map` keeps up. Of its 400 words/s, `count` processes 200 and 200 wait.
    assert live.queue == pytest.approx([0.0, 0.0, 4 * 200.0])
    play(live, [200.0] * 66)
    first, second, third = live.finished
    assert [batch.end_s for batch in (first, second, third)] == pytest.approx([10.0, 30.0, 70.0])
    assert [batch.stages[0].records for batch in (first, second, third)] == pytest.approx([1000.0, 2000.0, 4000.0])
    # The first stage that finishes late is the bottleneck.
    assert [work.end_s for work in first.stages] == pytest.approx([5.0, 5.0, 10.0])


def test_a_slow_stage_makes_later_stages_late_but_not_busy() -> None:
    live = make_job({"map": 1, "count": 4})
    play(live, [200.0] * 10)
    (batch,) = live.finished
    assert [work.end_s for work in batch.stages] == pytest.approx([5.0, 10.0, 10.0])
    assert [work.useful_s for work in batch.stages[1:]] == pytest.approx([10.0, 10.0])


def test_results_leave_while_the_batch_runs() -> None:
    live = make_job({"map": 1, "count": 4})
    play(live, [200.0] * 8)
    assert live.done == pytest.approx(800.0)
    assert live.backlog == pytest.approx(800.0)
    assert live.lag_s == pytest.approx(4.0)


def test_the_next_batch_reads_the_input_of_the_gap() -> None:
    live = make_job({"map": 1, "count": 1}, RealTime(gap_s=(0.25, 0.25)))
    play(live, [96.0] * 200)
    # A batch reads the input since the last read: of the drain, of the gap, and of its own 5 s. It grows up to 6 s.
    lengths = [batch.end_s - batch.start_s for batch in live.finished]
    for length, after in pairwise(lengths):
        assert after == pytest.approx(0.96 * (length + 0.25), rel=1e-3)
    assert 5.7 < lengths[-1] < 6.0
    assert live.discipline.sustained_per_s(1, 100.0) == pytest.approx(500 / 5.25)


# -- changes and failures -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "least_s", "most_s"),
    [({"map": 3, "count": 1}, 0.4, 0.6), ({"map": 2, "count": 2}, 0.2 + 0.6 + 3.0 + 0.3, 0.2 + 0.6 + 9.0 + 0.6)],
)
def test_a_change_stops_after_a_batch_for_longer_with_state(
    target: dict[str, int], least_s: float, most_s: float
) -> None:
    live = make_job({"map": 2, "count": 1}, replace(BARE, keys=1_000_000))
    play(live, [80.0] * 30, {7: target})
    assert live.running == Allocation(target)
    assert live.stopped_s == pytest.approx(10.0)
    assert live.downtime_s is not None
    assert least_s <= live.downtime_s <= most_s
    assert live.started_s == pytest.approx(10.0 + live.downtime_s)
    # The first batch reads the input of the downtime at once.
    assert live.finished[2].stages[0].records == pytest.approx(80.0 * (5.0 + live.downtime_s))
    assert live.up_s == pytest.approx(30.0 - live.downtime_s)


def test_a_change_interrupts_a_batch_if_that_pays_and_waits_for_its_end_otherwise() -> None:
    live = make_job({"map": 1, "count": 8})
    play(live, [1000.0] * 5 + [0.0] * 70, {20: {"map": 8, "count": 8}})
    # 5,000 records take 50 s. With eight times the tasks it pays to interrupt the batch after 20 s and repeat it.
    assert live.stopped_s == pytest.approx(20.0)
    assert live.repeated == pytest.approx(2000.0)
    assert live.finished[0].stages[0].records == pytest.approx(5000.0)
    assert live.finished[0].end_s == pytest.approx(live.started_s + 5000 / 800)
    ends = make_job({"map": 1, "count": 8})
    play(ends, [200.0] * 5 + [0.0] * 10, {6: {"map": 2, "count": 8}})  # it ends at 10 s: 6 s again cost more
    assert [ends.stopped_s, ends.repeated] == pytest.approx([10.0, 0.0])


def test_a_lost_executor_fails_the_query_and_its_batch_is_repeated() -> None:
    live = make_job({"map": 1, "count": 1})
    play(live, [80.0] * 30, {8: None})
    assert live.downtime_s is not None
    assert 1.6 <= live.downtime_s <= 3.9
    assert live.repeated == pytest.approx(3 * 80.0)
    # The repeated batch has the start offset of the lost one, that of 5 s.
    assert live.finished[1].before == pytest.approx(400.0)
    assert live.finished[1].stages[0].records == pytest.approx(80.0 * (3.0 + live.downtime_s + 5.0))
    assert live.running == Allocation({"map": 1, "count": 1})


def test_the_last_request_counts() -> None:
    live = make_job({"map": 1, "count": 1})
    play(live, [50.0] * 10, {2: {"map": 4, "count": 1}, 4: {"map": 1, "count": 1}})
    assert live.downtime_s is None
    play(live, [50.0] * 40, {10: {"map": 4, "count": 1}, 11: None, 12: {"map": 2, "count": 2}})
    assert live.running == live.wanted == Allocation({"map": 2, "count": 2})


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from([0.0, 30.0, 100.0, 777.7]), min_size=10, max_size=60),
    st.dictionaries(
        st.integers(0, 59),
        st.one_of(st.none(), st.fixed_dictionaries({"map": st.integers(1, 6), "count": st.integers(1, 6)})),
        max_size=5,
    ),
    st.sampled_from([0.0, 0.3, 1.0, 3.0]),
)
def test_no_record_is_lost_or_made(
    load: list[float], script: dict[int, dict[str, int] | None], selectivity: float
) -> None:
    live = make_job({"map": 2, "count": 2}, RealTime(), selectivity)
    before = 0.0
    for second, records in enumerate(load):
        play(live, [records], {second: script[second]} if second in script else None)
        assert live.done >= before
        assert live.done + live.backlog == pytest.approx(sum(load[: second + 1]), abs=1e-6)
        before = live.done
    for batch, after in pairwise(live.finished):
        assert after.start_s > batch.end_s
        assert after.before == pytest.approx(batch.before + batch.stages[0].records)
    for batch in live.finished:
        read, mapped, counted = (work.records for work in batch.stages)
        assert [mapped, counted] == pytest.approx([read, read * selectivity])
        ends = [work.end_s for work in batch.stages]
        assert ends == sorted(ends)
        assert batch.end_s == ends[-1] >= batch.start_s + 5.0 - 1e-6
    assert live.slot_s >= 2 * len(load)


# -- behind the Engine port ---------------------------------------------------------------------------------------


def plant(noise: float = 0.0, **discipline: object) -> Plant:
    operators = (
        PlantOperator("in", pinned_tasks=2),
        PlantOperator("map", Usl(100.0, 0.1), max_tasks=6, noise=noise),
        PlantOperator("count", Linear(200.0), max_tasks=6, noise=noise, state_bytes_per_record=1.0),
    )
    graph = Graph(("in", "map", "count"), (Edge("in", "map"), Edge("map", "count", 2.0)), ("in",))
    shown = Metrics(window_s=20.0, min_window_s=4.0, settle_s=0.0)
    live = RealTime(**discipline)  # type: ignore[arg-type]
    return Plant("live", graph, operators, {"in": 1.0}, metrics=shown, slots_available=12, discipline=live)


def run_fleet(model: Plant, load: Load, seconds: int, tasks: tuple[int, int] = (2, 2)) -> Fleet:
    start = Allocation(dict(zip(("map", "count"), tasks, strict=True)))
    fleet = Fleet(model, [load], [1], start=[start], trace=True)
    fleet.advance(seconds)
    return fleet


def observe(fleet: Fleet) -> Observation:
    return fleet.engine(0).observe()


class TestWordCount(EngineConformance):
    settle_s = 60.0

    def make_engine(self) -> tuple[Engine, Clock]:
        fleet = Fleet(job("realtime-wordcount"), [Constant(2.0)], [1], start=[Allocation({"split": 2, "count": 3})])
        return fleet.engine(0), FleetClock(fleet)


class TestYsb(EngineConformance):
    settle_s = 60.0

    def make_engine(self) -> tuple[Engine, Clock]:
        start = Allocation({"filter": 2, "join": 2, "count": 2})
        fleet = Fleet(job("realtime-ysb"), [Constant(1.0)], [1], start=[start])
        return fleet.engine(0), FleetClock(fleet)


class TestRealTimeTestbed(TestbedConformance):
    def make_testbed(self) -> tuple[ports.Testbed, JobSpec]:
        model = job("realtime-wordcount")
        return SimulatedTestbed(model), model.spec()

    def easy(self) -> tuple[Allocation, dict[str, float]]:
        return Allocation({"split": 4, "count": 5}), {"lines": 100.0}

    def too_much(self) -> tuple[Allocation, dict[str, float]]:
        return Allocation({"split": 1, "count": 1}), {"lines": 300.0}


def test_a_steady_window_shows_the_true_rate_of_every_stage() -> None:
    window = observe(run_fleet(plant(), Constant(120.0), 102))
    assert window.problem is None
    reading = window.operator("map")
    assert reading.true_rate_per_s == pytest.approx(100.0 / 1.1, rel=1e-2)
    assert reading.tasks == 2
    assert window.operator("count").true_rate_per_s == pytest.approx(200.0, rel=1e-2)
    # Batches are back to back; each includes the input of the gap before it.
    assert reading.records_in_per_s == pytest.approx(120.0, rel=0.06)
    assert reading.useful_share == pytest.approx(120.0 / (200 / 1.1), rel=0.06)
    carried = {(edge.upstream, edge.downstream): edge.records_per_s for edge in window.edges}
    assert carried["map", "count"] == pytest.approx(2 * (reading.records_in_per_s or 0.0), rel=1e-2)
    assert window.load_per_s == pytest.approx(120.0)
    assert (window.overloaded, window.overdue_s) == ((), 0.0)
    assert window.latency is not None
    assert window.latency.p50_s == pytest.approx(0.07, abs=0.01)
    assert window.latency.p99_s < 1.0


def test_an_overdue_batch_shows_its_bottleneck_while_it_runs() -> None:
    fleet = run_fleet(plant(), Steps((50.0, 300.0), 60), 60, (6, 1))
    assert observe(fleet).overloaded == ()
    overdue = []
    for _ in range(20):
        fleet.advance(1)
        window = observe(fleet)
        overdue.append(window.overdue_s)
        if window.overdue_s > 1.0:
            assert window.overloaded == ("count",)
    assert max(overdue) > 5.0
    # 600 words/s need three tasks, and `count` has one: it blocks its upstreams for two thirds of the time.
    window = observe(fleet)
    assert window.operator("count").blocking_share == pytest.approx(2 / 3, rel=0.1)
    assert window.operator("map").blocking_share == 0.0
    assert (window.backlog or 0.0) > 1000.0


def test_a_job_that_catches_up_is_late_and_not_overloaded() -> None:
    fleet = run_fleet(plant(), Steps((300.0, 60.0), 40), 40, (6, 1))
    long = 0.0
    fleet.advance(30)
    while observe(fleet).overdue_s or observe(fleet).overloaded:
        fleet.advance(1)  # the batch that read most of the peak
    for _ in range(200):
        fleet.advance(1)
        window = observe(fleet)
        long = max(long, window.overdue_s)
        assert window.overloaded == ()
    assert long > 5.0
    assert fleet.trace()["backlog"][-1, 0] < 60.0


def test_a_window_shows_every_phase_of_a_change() -> None:
    fleet = run_fleet(plant(), Constant(120.0), 61)
    engine, notes = fleet.engine(0), list[str]()
    target = Allocation({"map": 3, "count": 3})
    engine.apply(intent_to(target, at_s=61.0), notes.append)
    assert notes == ["stop after a batch", "repartition the state of count", "start"]
    shown = []
    for _ in range(16):
        window = engine.observe()
        shown.append((window.status, window.change, window.running == target, window.usable))
        fleet.advance(1)
    kinds = list(dict.fromkeys(shown))
    under_way, none = Change.UNDER_WAY, Change.NONE
    assert kinds == [
        (Status.RUNNING, under_way, False, True),  # until the batch ends
        (Status.DOWN, under_way, False, False),
        (Status.RUNNING, none, True, False),  # until the first batch has ended
        (Status.RUNNING, none, True, True),
    ]
    window = engine.observe()
    assert window.downtime_s is not None
    assert 1.1 <= window.downtime_s <= 1.5
    assert window.start_s > 62.0
    assert fleet.trace()["up"].sum() == pytest.approx(77 - window.downtime_s)


def test_overload_after_a_change_shows_before_the_first_batch_ends() -> None:
    fleet = run_fleet(plant(), Constant(500.0), 30, (2, 6))
    engine = fleet.engine(0)
    engine.apply(intent_to(Allocation({"map": 3, "count": 6}), at_s=30.0), silent)
    while engine.observe().change is not Change.NONE or engine.observe().overloaded == ():
        fleet.advance(1)
    window = engine.observe()
    assert isinstance(fleet.replicas, RealTimeReplicas)
    assert fleet.replicas.jobs[0].finished[-1].end_s < fleet.replicas.jobs[0].started_s
    assert (window.overloaded, window.problem) == (("map",), None)
    # The readings are from before the change, with the tasks of that time, so no policy learns from them twice.
    assert (window.operator("map").tasks, window.running) == (2, Allocation({"map": 3, "count": 6}))
    assert window.start_s < 30.0


def test_a_failure_shows_as_down_then_recovering_then_running() -> None:
    fleet = Fleet(plant(), [Constant(80.0)], [1], start=[Allocation({"map": 2, "count": 2})], failures_s=[60.0])
    fleet.advance(61)
    window = observe(fleet)
    assert (window.status, window.problem) == (Status.DOWN, "the job is down")
    fleet.advance(5)
    assert observe(fleet).status is Status.RECOVERING
    fleet.advance(40)
    window = observe(fleet)
    assert (window.status, window.problem, window.overloaded) == (Status.RUNNING, None, ())


def test_all_tasks_need_a_slot_at_once() -> None:
    model = plant()
    assert model.spec().slots_available == 10
    engine = run_fleet(model, Constant(10.0), 10).engine(0)
    with pytest.raises(EngineError, match="12 slots requested, the cluster has 10"):
        engine.apply(intent_to(Allocation({"map": 6, "count": 6})), silent)
    with pytest.raises(InvalidValue, match=r"needs 14 slots at once \(in 2, map 6, count 6\), the cluster has 12"):
        run_fleet(model, Constant(10.0), 10, (6, 6))


def test_metrics_may_be_noisy_or_missing() -> None:
    bad = replace(plant(), metrics=Metrics(window_s=20.0, min_window_s=4.0, settle_s=0.0, noise=0.1, missing=0.3))
    fleet = run_fleet(bad, Constant(80.0), 60)
    rates = []
    for _ in range(150):
        fleet.advance(1)
        rates.append(observe(fleet).operator("count").true_rate_per_s)
    logs = np.log([rate / 200.0 for rate in rates if rate is not None])
    assert np.std(logs) == pytest.approx(0.1, rel=0.3)
    assert 20 < rates.count(None) < 75


def test_a_replica_does_not_depend_on_its_neighbours() -> None:
    model = plant(noise=0.1)
    loads: list[Load] = [Constant(300.0, noise=0.2), Constant(90.0), Constant(150.0, noise=0.2)]
    crowd = Fleet(model, loads, [7, 8, 9], failures_s=[150.0], trace=True)
    alone = Fleet(model, loads[2:], [9], failures_s=[150.0], trace=True)
    for fleet in (crowd, alone):
        fleet.advance(200)
        fleet.engine(fleet.size - 1).apply(intent_to(Allocation({"map": 3, "count": 3})), silent)
        fleet.advance(200)
    for name, series in alone.trace().items():
        assert np.array_equal(series[:, 0], crowd.trace()[name][:, 2]), name
    assert crowd.engine(2).observe() == alone.engine(0).observe()


# -- the plant and its policies -----------------------------------------------------------------------------------


def test_ds2_selects_the_right_size_for_every_load_level() -> None:
    levels = (50.0, 150.0, 300.0, 100.0)
    trial = Trial(
        plant(),
        Steps(levels, 300),
        1200,
        interval_s=15.0,
        slo=SLO(headroom=0.2),
        start=Allocation({"map": 1, "count": 1}),
    )
    run = compare(Simulated(), trial, ["ds2"], [1]).run("ds2", 1)
    ended = {step.observation.at_s: step.observation.running for step in run.steps}
    sizes = [ended[300.0 * (k + 1) - 15.0] for k in range(4)]
    # With 20 % headroom: 60, 180, 360 and 120 lines, twice as many words.
    assert [size and (size.tasks["map"], size.tasks["count"]) for size in sizes] == [(1, 1), (2, 2), (6, 4), (2, 2)]
    assert run.trace["backlog"][-1] < 100.0


def test_the_oracle_leaves_room_for_the_gaps() -> None:
    model, some = plant(), Allocation({"map": 1, "count": 1})
    assert model.capacity_per_s("count", 3, some) == pytest.approx(600.0 * 5.0 / 5.255)


def test_the_built_in_jobs_fit_their_slots() -> None:
    for name, top in (("realtime-wordcount", 14), ("realtime-ysb", 18)):
        model = job(name)
        spec = model.spec()
        demand = spec.graph.demand_per_s({source: 10.0 * unit for source, unit in model.unit_per_s.items()})
        needed = 0
        for stage in spec.tunable_names:
            sizes = range(1, 9)
            needed += next(p for p in sizes if model.capacity_per_s(stage, p, model.start()) >= demand[stage])
        assert needed == top
        assert spec.slots_available is not None
        assert needed <= spec.slots_available


def test_invalid_plants_and_parameters_are_refused() -> None:
    model = plant()
    with pytest.raises(InvalidValue, match="one operator that is also the source"):
        replace(model, discipline=MicroBatch())
    two = Graph(("in", "map", "count"), (Edge("in", "map"), Edge("in", "count")), ("in",))
    with pytest.raises(InvalidValue, match="a chain behind one source"):
        replace(model, graph=two)
    with pytest.raises(InvalidValue, match="a chain behind one source with pinned_tasks"):
        replace(model, operators=(PlantOperator("in"), *model.operators[1:]))
    for what, value in (("restart", Restart(5)), ("memory", Memory(1024, (1024,))), ("checkpoint_interval_s", 3.0)):
        with pytest.raises(InvalidValue, match=f"{what} has no effect on real time"):
            replace(model, **{what: value})  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="emits_every_s has no effect"):
        replace(model, operators=(*model.operators[:2], PlantOperator("count", emits_every_s=5.0)))
    for values, message in (
        ({"batch_s": 0.0}, "batch_s"),
        ({"gap_s": (0.4, 0.1)}, "give the smaller value first"),
        ({"failure_s": (-1.0, 0.1)}, "failure_s"),
    ):
        with pytest.raises(InvalidValue, match=message):
            RealTime(**values)


def test_a_configuration_file_describes_a_real_time_job() -> None:
    values = {
        "name": "mine",
        "sources": {"in": 100},
        "operators": {"map": {"curve": {"kind": "linear", "rate_per_s": 400}, "max_tasks": 6}},
        "edges": [{"upstream": "in", "downstream": "map"}],
        "realtime": {"batch_s": 10, "gap_s": [0.1, 0.2], "keys": 1000},
    }
    read = make_config({"job": values, "load": "constant"}).trial().job
    assert read.discipline == RealTime(batch_s=10, gap_s=(0.1, 0.2), keys=1000)
    with pytest.raises(InvalidValue, match=r"job\.realtime\.batch.*'batch_s'"):
        make_config({"job": {**values, "realtime": {"batch": 2}}, "load": "constant"}).trial()
    with pytest.raises(InvalidValue, match="job has both microbatch and realtime: remove one of them"):
        make_config({"job": {**values, "microbatch": {}}, "load": "constant"}).trial()
