"""The bound against every schedule that there is, played in the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rheostat.engine.simulated import Fleet, MicroBatch, RealTime
from rheostat.engine.simulated.curves import Linear, Power, Table, Usl
from rheostat.engine.simulated.plant import (
    Failure,
    Interference,
    LatencyLaw,
    Plant,
    PlantOperator,
    Restart,
)
from rheostat.engine.testbed.loads import Constant, Load, Sine, Steps
from rheostat.job.allocation import Allocation
from rheostat.job.graph import Edge, Graph
from rheostat.job.slo import SLO
from rheostat.lab.experiment.oracle.bound import lower_bound
from rheostat.lab.experiment.oracle.cost import Cost
from rheostat.lab.experiment.run import Run
from rheostat.lab.experiment.score import run_cost
from rheostat.lab.experiment.trial import Trial

SECONDS, EVERY_S = 160, 40


def source(name: str = "in") -> PlantOperator:
    return PlantOperator(name, pinned_tasks=1)


def one(operator: PlantOperator, **rest: object) -> Plant:
    """A job with one operator behind a source, or an operator that is the source."""
    operators: tuple[PlantOperator, ...]
    if rest.pop("reads", False):
        graph, operators = Graph((operator.name,), (), (operator.name,)), (operator,)
    else:
        graph, operators = Graph(("in", operator.name), (Edge("in", operator.name),), ("in",)), (source(), operator)
    return Plant("small", graph, operators, {graph.sources[0]: 100.0}, **rest)  # type: ignore[arg-type]


def trial_of(plant: Plant, load: Load, start: int = 1, **rest: object) -> Trial[Plant]:
    values = {"interval_s": float(EVERY_S), "slo": SLO(max_latency_s=5.0), **rest}
    begin = Allocation(dict.fromkeys(plant.spec().tunable_names, start))
    return Trial(plant, load, float(SECONDS), start=begin, **values)  # type: ignore[arg-type]


def every_schedule(trial: Trial[Plant]) -> list[tuple[Allocation, ...]]:
    """Every choice of allocations at every decision."""
    spec = trial.job.spec()
    sizes = [range(t.bounds.min, (t.bounds.max or 1) + 1, t.quantum) for t in spec.tunable]
    allocations = [Allocation(dict(zip(spec.tunable_names, tasks, strict=True))) for tasks in product(*sizes)]
    decisions = int(trial.duration_s / trial.interval_s) - 1
    return list(product(allocations, repeat=decisions))


def played(trial: Trial[Plant], schedules: Sequence[Sequence[Allocation]]) -> list[Cost]:
    """The costs of schedules, all in one fleet."""
    assert trial.start is not None
    fleet = Fleet(
        trial.job,
        [trial.seeded_load] * len(schedules),
        [trial.seed] * len(schedules),
        start=[trial.start] * len(schedules),
        failures_s=trial.failures_s,
        trace=True,
    )
    for decision in range(len(schedules[0])):
        fleet.advance(int(trial.interval_s * (decision + 1)) - fleet.now)
        for replica, schedule in enumerate(schedules):
            if schedule[decision] != fleet.wanted[replica]:
                fleet.reconfigure(replica, schedule[decision])
    fleet.advance(int(trial.duration_s) - fleet.now)
    trace = fleet.trace()
    return [
        run_cost(Run(trial, "simulated", trial.duration_s, trace={name: rows[:, k] for name, rows in trace.items()}))
        for k in range(len(schedules))
    ]


def cheapest(trial: Trial[Plant]) -> float:
    return min(cost.total for cost in played(trial, every_schedule(trial)))


curves = st.one_of(
    st.builds(Linear, st.floats(40, 120)),
    st.builds(Usl, st.floats(40, 120), st.floats(0, 0.3)),
    st.builds(Power, st.floats(40, 120), st.floats(0.7, 1.3)),
    st.builds(
        lambda a, b, c: Table(((1, a), (2, b), (3, c))), st.floats(50, 90), st.floats(60, 150), st.floats(80, 250)
    ),
)
loads = st.one_of(
    st.builds(Constant, st.floats(0.3, 2.5), noise=st.sampled_from([0.0, 0.1])),
    st.builds(
        lambda levels, hold: Steps(levels, hold),
        st.lists(st.floats(0.2, 3.0), min_size=2, max_size=4).map(tuple),
        st.sampled_from([25.0, 40.0, 60.0]),
    ),
    st.builds(Sine, st.floats(0.5, 2.0), st.floats(0.2, 1.5), st.sampled_from([80.0, 160.0])),
)
restarts = st.builds(Restart, st.sampled_from([2.0, 8.0, 15.0, 25.0]), st.sampled_from([0.0, 3.0]))


@settings(max_examples=40, deadline=None)
@given(curves, loads, restarts, st.sampled_from([0.0, 0.1]), st.booleans(), st.integers(1, 3), st.integers(0, 3))
def test_the_bound_of_one_operator_is_never_above_the_cheapest_schedule_and_not_far_below(
    curve: Linear, load: Load, restart: Restart, noise: float, reads: bool, start: int, seed: int
) -> None:
    operator = PlantOperator("work", curve, noise=noise, max_tasks=3)
    trial = trial_of(one(operator, reads=reads, restart=restart), load, start, seed=seed)
    best, bound = cheapest(trial), lower_bound(trial).total
    assert bound <= best * (1 + 1e-9)
    # Of 300 random jobs of this size, 8 were more than 3 % below, and the worst 18 % (2026-11-18). `test_policies.py`
    # asks for 3 % on whole grounds.
    assert bound >= 0.75 * best


HARD = {
    "drift": one(PlantOperator("work", Linear(60.0), max_tasks=3, drift=((60.0, 1.0), (61.0, 0.6)))),
    "queueing": one(
        PlantOperator("work", Linear(60.0), max_tasks=3, queueing_records=60.0), latency=LatencyLaw(exponent=2.0)
    ),
    "an outside limit": one(PlantOperator("work", Linear(60.0), max_tasks=3, noise=0.1, limit_per_s=130.0)),
    "skew and interference": one(
        PlantOperator("work", Linear(80.0), max_tasks=3, skew=0.5), interference=Interference(per_slot=0.05)
    ),
    "state": one(
        PlantOperator("work", Linear(60.0), max_tasks=3, state_bytes_per_record=1e6, state_retention_s=600),
        restart=Restart(5, 1, per_gb_s=2.0),
    ),
    "long downtimes": one(PlantOperator("work", Linear(60.0), max_tasks=3), restart=Restart(60, 10)),
}


@pytest.mark.parametrize("case", HARD)
@pytest.mark.parametrize("slo", [SLO(max_latency_s=5.0), SLO(max_lag_s=3.0), SLO()], ids=["latency", "lag", "none"])
def test_hard_cases_of_one_operator(case: str, slo: SLO) -> None:
    for seed, load in enumerate((Constant(1.5), Steps((0.5, 2.5, 1.0), 50))):
        trial = trial_of(HARD[case], load, 2, slo=slo, seed=seed)
        best, bound = cheapest(trial), lower_bound(trial).total
        assert bound <= best * (1 + 1e-9)
        # The state of the first two minutes counts as none.
        assert bound >= (0.5 if case == "state" else 0.97) * best


def test_failures_only_cost_more() -> None:
    plant = one(PlantOperator("work", Linear(60.0), max_tasks=3), failure=Failure(5, 25, 2, replay_s=5))
    trial = trial_of(plant, Constant(1.5), 3, failures_s=(50.0,))
    best, bound = cheapest(trial), lower_bound(trial).total
    assert bound <= best
    assert bound >= 0.8 * best
    assert bound > lower_bound(replace(trial, failures_s=())).total


CHAIN = Plant(
    "chain",
    Graph(("in", "a", "b"), (Edge("in", "a"), Edge("a", "b", 2.0)), ("in",)),
    (
        source(),
        PlantOperator("a", Linear(90.0), noise=0.05, max_tasks=2, output_drift=((50.0, 1.0), (90.0, 0.5))),
        PlantOperator("b", Usl(180.0, 0.1), noise=0.05, max_tasks=2),
    ),
    {"in": 100.0},
    restart=Restart(8, 2),
)
JOIN = Plant(
    "join",
    Graph(("left", "right", "clean", "join"), (Edge("left", "clean"), Edge("clean", "join"), Edge("right", "join")),
          ("left", "right")),
    (
        source("left"),
        source("right"),
        PlantOperator("clean", Linear(70.0), noise=0.05, max_tasks=2),
        PlantOperator("join", Linear(110.0), noise=0.05, max_tasks=2),
    ),
    {"left": 60.0, "right": 40.0},
    restart=Restart(8, 2),
    interference=Interference(per_slot=0.03),
)  # fmt: skip


@pytest.mark.parametrize("plant", [CHAIN, JOIN], ids=lambda plant: plant.name)
@pytest.mark.parametrize("seed", range(3))
def test_many_operators_are_bounded_below(plant: Plant, seed: int) -> None:
    for load in (Constant(1.2), Steps((0.5, 1.8, 0.9), 50), Sine(1.0, 0.8, 120.0, noise=0.1)):
        trial = trial_of(plant, load, 1 + seed % 2, seed=seed)
        best, bound = cheapest(trial), lower_bound(trial).total
        assert bound <= best * (1 + 1e-9)
        assert bound >= 0.4 * best


LIVE = {
    "micro-batches": one(
        PlantOperator("work", Linear(60.0), noise=0.05, max_tasks=3),
        reads=True,
        discipline=MicroBatch(trigger_s=2.0, fixed_s=0.2, partitions=4, grow_s=3.0, grow_each_s=1.0),
    ),
    "real time": Plant(
        "live",
        Graph(("in", "map", "count"), (Edge("in", "map"), Edge("map", "count", 2.0)), ("in",)),
        (
            source(),
            PlantOperator("map", Linear(90.0), noise=0.05, max_tasks=2),
            PlantOperator("count", Linear(150.0), noise=0.05, max_tasks=2),
        ),
        {"in": 100.0},
        discipline=RealTime(),
    ),
}


@pytest.mark.parametrize("case", LIVE)
def test_live_changes_are_bounded_below(case: str) -> None:
    for seed, load in enumerate((Constant(1.2), Steps((0.5, 2.2, 0.9), 50))):
        trial = trial_of(LIVE[case], load, seed=seed)
        best, bound = cheapest(trial), lower_bound(trial).total
        assert bound <= best * (1 + 1e-9)
        assert bound >= 0.1 * best  # loose: batches add latency that the bound does not know


def test_a_second_over_the_slo_costs_ten_seconds_of_the_slots_at_the_peak() -> None:
    cost = Cost(slot_seconds=100.0, over_s=3.0, lost=7.0, peak_slots=4.0)
    assert cost.total == 100 + 10 * 4 * 3 + 7
