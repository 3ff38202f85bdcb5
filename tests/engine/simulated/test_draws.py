"""Drift, and random numbers that are the same for a fleet and for anybody who knows the seed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rheostat.engine.simulated import Fleet, MicroBatch
from rheostat.engine.simulated.curves import Linear
from rheostat.engine.simulated.draws import PERIODS, add_noise, at_moments, draw_capacities, shape_rates
from rheostat.engine.simulated.plant import LatencyLaw, Plant, PlantOperator
from rheostat.engine.testbed.loads import Constant, Sine
from rheostat.errors import InvalidValue
from rheostat.job.allocation import Allocation
from rheostat.job.graph import Edge, Graph

CHAIN = Plant(
    "chain",
    Graph(("in", "map", "count"), (Edge("in", "map"), Edge("map", "count", 2.0)), ("in",)),
    (
        PlantOperator("in", pinned_tasks=1),
        PlantOperator("map", Linear(100.0), noise=0.05),
        PlantOperator("count", Linear(150.0), noise=0.05),
    ),
    {"in": 100.0},
)


def with_operator(plant: Plant, name: str, **changed: object) -> Plant:
    operators = tuple(replace(o, **changed) if o.name == name else o for o in plant.operators)  # type: ignore[arg-type]
    return replace(plant, operators=operators)


def throughput(plant: Plant, seconds: int, level: float, tasks: int = 1) -> np.ndarray:
    fleet = Fleet(plant, [Constant(level)], [0], start=[Allocation({"map": tasks, "count": tasks})], trace=True)
    fleet.advance(seconds)
    return fleet.trace()["throughput_per_s"][:, 0]


def test_the_draws_are_the_fleets() -> None:
    load = Sine(1.0, 0.5, 300.0, noise=0.1)
    fleet = Fleet(CHAIN, [load, load], [3, 4], trace=True)
    fleet.advance(600)
    for k, seed in enumerate((3, 4)):
        blocks = [add_noise(shape_rates(CHAIN, load, block), load.noise, seed, block) for block in range(2)]
        assert fleet.trace()["load_per_s"][:, k] == pytest.approx(np.concatenate(blocks)[:600, 0], rel=1e-6)
    assert draw_capacities(CHAIN, 3, 0).shape == (PERIODS, 3)
    assert not np.array_equal(draw_capacities(CHAIN, 3, 0), draw_capacities(CHAIN, 4, 0))


def test_a_factor_is_linear_between_its_points_and_constant_outside() -> None:
    points = ((60.0, 1.0), (120.0, 0.5))
    assert at_moments(points, np.array([0.0, 60.0, 90.0, 120.0, 500.0])).tolist() == [1.0, 1.0, 0.75, 0.5, 0.5]
    assert at_moments((), np.array([0.0, 1.0])).tolist() == [1.0, 1.0]


def test_a_capacity_that_steps_changes_what_the_job_sustains() -> None:
    plain = with_operator(with_operator(CHAIN, "map", noise=0.0), "count", noise=0.0)
    served = throughput(with_operator(plain, "count", drift=((119.0, 1.0), (120.0, 0.6))), 300, 5.0)
    assert served[60:119].mean() == pytest.approx(75.0, rel=0.02)  # 150 words, two of each line
    assert served[240:].mean() == pytest.approx(45.0, rel=0.02)


def test_a_selectivity_that_drifts_changes_the_demand_downstream() -> None:
    plain = with_operator(with_operator(CHAIN, "map", noise=0.0), "count", noise=0.0)
    served = throughput(with_operator(plain, "map", output_drift=((119.0, 1.0), (120.0, 2.0))), 300, 5.0)
    assert served[60:119].mean() == pytest.approx(75.0, rel=0.02)
    assert served[240:].mean() == pytest.approx(37.5, rel=0.02)


def test_the_engine_shows_the_drifting_selectivity() -> None:
    plant = with_operator(CHAIN, "map", output_drift=((119.0, 1.0), (120.0, 0.5)))
    fleet = Fleet(plant, [Constant(0.5)], [0], start=[Allocation({"map": 2, "count": 2})])
    for moment, selectivity in ((110, 2.0), (300, 1.0)):
        fleet.advance(moment - fleet.now)
        window = fleet.engine(0).observe()
        sent = next(edge.records_per_s for edge in window.edges if edge.upstream == "map")
        assert sent == pytest.approx(50.0 * selectivity, rel=0.05)


def test_the_exponent_of_the_latency_law() -> None:
    def latency(exponent: float) -> float:
        waiting = with_operator(with_operator(CHAIN, "map", noise=0.0, queueing_records=10.0), "count", noise=0.0)
        plant = replace(waiting, latency=LatencyLaw(base_s=0.0, exponent=exponent))
        fleet = Fleet(plant, [Constant(0.7)], [0], start=[Allocation({"map": 1, "count": 2})], trace=True)
        fleet.advance(60)
        return float(fleet.trace()["latency_s"][-1, 0])

    use = 0.7
    assert latency(1.0) == pytest.approx(0.1 * use / (1 - use), rel=1e-3)
    assert latency(2.0) == pytest.approx(0.1 * (use / (1 - use)) ** 2, rel=1e-3)


@pytest.mark.parametrize("points", [((60.0, 1.0), (30.0, 2.0)), ((0.0, 0.0),), ((-1.0, 1.0),)])
def test_a_drift_that_makes_no_sense_is_refused(points: tuple[tuple[float, float], ...]) -> None:
    with pytest.raises(InvalidValue, match="drift of map"):
        PlantOperator("map", drift=points)


def test_an_output_drift_without_outputs_is_refused() -> None:
    operator = PlantOperator("job", Linear(100.0), output_drift=((0.0, 1.0),))
    with pytest.raises(InvalidValue, match="output_drift has no effect on micro-batches"):
        Plant("one", Graph(("job",), (), ("job",)), (operator,), {"job": 1.0}, discipline=MicroBatch())
