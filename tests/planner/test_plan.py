"""Plans against the measurements that they are made from."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rheostat.engine.testbed.simulated import SimulatedTestbed
from rheostat.job.decision import Interval
from rheostat.job.plan import Estimate, Plan
from rheostat.lab.jobs import job
from rheostat.lab.papers.streambed.truth import Drawn, Truth, varied
from rheostat.planner.campaign import OnTestbed, TestbedFailed, explore
from rheostat.planner.configuration_optimizer import bids2, operator_capacities, readings
from rheostat.planner.evidence import Production, production_runs
from rheostat.planner.extrapolation import Points, select_fit
from rheostat.planner.failures import drop_doubtful
from rheostat.planner.plan import NotPlannable, Prices, make_plan
from rheostat.planner.resource_explorer import Ask, Geometric, Paper, Space
from rheostat.planner.rig import Feed
from rheostat.planner.scaling import Scaling
from rheostat.planner.sequential_estimator import sequential
from rheostat.planner.streambed import streambed_plan
from rheostat.planner.verification import verify_plan

CAMPAIGNS = int(os.environ.get("RHEOSTAT_CAMPAIGNS", "100"))
PROFILES = (512, 1024, 2048, 4096)
SPACES = {"streambed-q1": (2, 16), "streambed-q5": (9, 48), "streambed-q8": (9, 32), "q11": (4, 48)}


@dataclass
class Campaign(Drawn):
    """Measurements of profiles that collapse, visibly in the operators' true rates or not, and of runs that crash."""

    collapse: Mapping[int, float] | None = None
    crashes: float = 0.0
    shows: bool = True

    def measure(self, ask: Ask, done: Sequence[Estimate]) -> Estimate:
        one = super().measure(ask, done)
        factor = (self.collapse or {}).get(ask.memory_mb or 0, 1.0)
        if factor == 0.0 or self.rng.random() < self.crashes:
            return replace(one, rate_per_s=None, observation=None, problem="out of memory")
        rate = one.middle_per_s * factor
        window = one.observation
        if window is not None and self.shows:
            operators = tuple(
                replace(o, true_rate_per_s=o.true_rate_per_s * factor if o.true_rate_per_s else None)
                for o in window.operators
            )
            window = replace(window, operators=operators)
        return replace(one, rate_per_s=Interval(rate, rate, rate), observation=window)


def contradictions(
    plan: Plan, estimates: Sequence[Estimate], prices: Prices | None, production: Sequence[Production]
) -> list[str]:
    """Return what a plan says against the measurements that it was made from."""
    wanted, memory, size = plan.rate_per_s * (1 + plan.headroom), plan.allocation.memory_mb, plan.allocation.slots
    good = [e for e in drop_doubtful(estimates) if e.memory_mb == memory]
    if not good:
        return [f"{memory} MB was not measured"]
    own = [e for e in estimates if e.memory_mb == memory]
    logs: dict[int, list[float]] = {}
    for e in good:
        logs.setdefault(e.slots, []).append(math.log(e.middle_per_s))
    rates = {slots: math.exp(sum(each) / len(each)) for slots, each in logs.items()}
    enough, short = ({s for s, r in rates.items() if (r >= wanted) == side} for side in (True, False))
    ran = [run for run in production if run.memory_mb == memory]
    refused = {run.slots for run in ran if not run.sustained and run.rate_per_s <= wanted}
    proved = {run.slots for run in ran if run.sustained and run.rate_per_s >= wanted} - refused
    enough, short = (enough | proved) - refused, (short | refused) - proved
    found = []
    if (
        size in rates
        and size not in {run.slots for run in ran}
        and not 0.999 * plan.capacity_per_s.low <= rates[size] <= 1.001 * plan.capacity_per_s.high
    ):
        found.append(f"{size} slots sustained {rates[size]:g}, the plan has {plan.capacity_per_s}")
    if all(e.problem for e in own if e.slots == size) and any(e.slots == size for e in own):
        found.append(f"every run of {size} slots failed")
    if math.isinf(plan.slots.middle):
        return found + [f"{s} slots sustained {wanted:g}, the plan has no size" for s in enough]
    if size in short:
        found.append(f"{size} slots sustained less than {wanted:g}")
    if size not in enough and any(s > size for s in short):
        found.append(f"a larger size than {size} slots sustained less than {wanted:g}")
    if any(s < size and not any(s < other <= size for other in short) for s in enough):
        found.append(f"a smaller size than {size} slots sustained {wanted:g}")
    if not plan.slots.low <= size <= plan.slots.high:
        found.append(f"{size} slots are not in {plan.slots}")
    costs = [c for c in plan.choices if math.isfinite(c.slots.middle)]
    if prices and any(c.cost_per_hour is not None and c.cost_per_hour < (plan.cost_per_hour or 0.0) for c in costs):
        found.append("another choice costs less")
    return found


@settings(max_examples=CAMPAIGNS, deadline=None, derandomize=True, database=None)
@given(data=st.data())
def test_no_plan_contradicts_a_measurement_it_was_made_from(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(SPACES)))
    seed = data.draw(st.integers(0, 2**31))
    rng = np.random.default_rng(seed)
    plant = varied(job(name), rng)
    memories = tuple(sorted(data.draw(st.sets(st.sampled_from(PROFILES), min_size=1, max_size=3))))
    factors = st.sampled_from([1.0, 1.0, 0.7, 0.3, 0.1, 0.02, 0.0])
    campaign = Campaign(
        Truth(plant),
        data.draw(st.sampled_from([0.02, 0.05, 0.15, 0.35])),
        rng,
        data.draw(st.sampled_from([0.0, 0.08, 0.3])),
        collapse={memory: data.draw(factors) for memory in memories},
        crashes=data.draw(st.sampled_from([0.0, 0.0, 0.1, 0.3])),
        shows=data.draw(st.booleans()),
    )
    space = Space(*SPACES[name], memories)
    strategy = Paper(space, seed) if data.draw(st.integers(0, 9)) == 0 else Geometric(space)
    own: Prices = {memory: data.draw(st.sampled_from([0.01, 0.05, 0.2])) for memory in memories[:2]}
    choices: list[Prices | None] = [own, {None: 0.1}, None]
    prices = data.draw(st.sampled_from(choices))
    done: list[Estimate] = []
    with suppress(TestbedFailed):
        explore(strategy, campaign, save=done.append, budget_s=60 * data.draw(st.sampled_from([30, 80, 150, 400])))
    rates = [e.middle_per_s for e in done if e.usable]
    if not rates:
        return
    wanted = max(rates) * data.draw(st.sampled_from([0.05, 0.3, 0.8, 0.9, 0.95, 1.5, 5.0, 20.0]))
    production = [
        Production(
            data.draw(st.integers(space.least, 3 * space.most)),
            data.draw(st.sampled_from(memories)),
            wanted * data.draw(st.sampled_from([0.9, 1.0, 1.2, 1.5])),
            data.draw(st.booleans()),
        )
        for _ in range(data.draw(st.sampled_from([0, 0, 1, 3])))
    ]
    try:
        plan = make_plan(plant.spec(), done, wanted, memories_mb=memories, prices=prices, production=production)
    except NotPlannable:
        assert not {e.memory_mb for e in drop_doubtful(done)} & set(memories)
        return
    assert contradictions(plan, done, prices, production) == []


class TestMemory:
    def measure(self, memories: Sequence[int], collapse: Mapping[int, float], seed: int = 0) -> list[Estimate]:
        campaign = Campaign(
            Truth(job("streambed-q1")), 0.03, np.random.default_rng(seed), failed=0.0, collapse=collapse
        )  # fmt: skip
        sizes = [(slots, 4096) for slots in (2, 16, 7, 4, 11, 3)] + [(16, m) for m in memories for _ in range(2)]
        return [campaign.measure(Ask(slots, memory, ""), ()) for slots, memory in sizes]

    def test_a_bad_profile_does_not_worsen_the_plan_for_a_good_one(self) -> None:
        both, spec = self.measure([1024], {1024: 0.11}), job("streambed-q1").spec()
        alone = make_plan(spec, both[:6], 8e7, memories_mb=(4096,))
        beside = make_plan(spec, both, 8e7, memories_mb=(1024, 4096), prices={1024: 0.02, 4096: 0.05})
        assert beside.allocation == alone.allocation
        assert beside.slots == alone.slots
        assert any("planned apart" in warning for warning in beside.warnings)

    def test_a_profile_that_was_not_measured_is_not_planned(self) -> None:
        done, spec = self.measure([], {}), job("streambed-q1").spec()
        plan = make_plan(spec, done, 8e7, memories_mb=(1024, 4096), prices={1024: 0.001, 4096: 0.05})
        assert plan.allocation.memory_mb == 4096
        assert any("1024 MB nothing was measured" in warning for warning in plan.warnings)
        with pytest.raises(NotPlannable, match="no run with 1024 MB"):
            make_plan(spec, done, 8e7, memories_mb=(1024,))

    def test_profiles_that_behave_alike_are_learned_together(self) -> None:
        done, spec = self.measure([2048], {}), job("streambed-q1").spec()
        plan = make_plan(spec, done, 8e7, memories_mb=(2048, 4096), prices={2048: 0.02, 4096: 0.05})
        assert plan.allocation.memory_mb == 2048
        few, many = (choice.slots for choice in plan.choices)
        assert few.middle == pytest.approx(many.middle, rel=0.1)
        assert not any("planned apart" in warning for warning in plan.warnings)

    def test_neither_no_price_nor_none_is_enough_is_free(self) -> None:
        done, spec = self.measure([2048], {}), job("streambed-q1").spec()
        plan = make_plan(spec, done, 8e7, memories_mb=(2048, 4096), prices={4096: 0.05})
        assert (plan.allocation.memory_mb, plan.cost_per_hour is None) == (4096, False)
        hurt = replace(job("streambed-q1"), interference=replace(job("streambed-q1").interference, per_slot=0.05))
        campaign = Campaign(Truth(hurt), 0.02, np.random.default_rng(0), 0.0, collapse={1024: 0.3})
        sizes = [(slots, memory) for memory in (4096, 1024) for slots in (2, 16, 7, 4, 11, 3)]
        done = [campaign.measure(Ask(slots, memory, ""), ()) for slots, memory in sizes]
        plan = make_plan(spec, done, 8e6, memories_mb=(1024, 4096), prices={1024: 0.001, 4096: 0.05})
        assert plan.allocation.memory_mb == 4096
        assert [choice.cost_per_hour is None for choice in plan.choices] == [True, False]


def test_streambeds_joins_below_two_gigabytes() -> None:
    plant = job("streambed-q5")
    spec, feed = plant.spec(), Feed.of(plant.graph.sources)
    bed = SimulatedTestbed(plant)
    optimizer = OnTestbed(bed, spec, feed, search=sequential, split_by_curves=True)
    done, _ = explore(Geometric(Space(9, 24, (1024, 4096)), enough=1.2, rate_per_s=5.5e5), optimizer)
    plan = make_plan(spec, done, 5e5, memories_mb=(1024, 4096), prices={1024: 0.02, 4096: 0.05})
    assert plan.allocation.memory_mb == 4096
    assert plan.allocation.slots <= 24
    _, checks = verify_plan(bed, plan, feed, observe_s=300.0)
    assert [check.verdict for check in checks] == ["sustained", "not sustained", "not sustained"]


def test_a_plan_that_sustains_150_percent_says_so() -> None:
    plant = job("streambed-q1")
    feed = Feed.of(plant.graph.sources)
    truth = Drawn(Truth(plant), 0.02, np.random.default_rng(0), 0.0)
    done = [truth.measure(Ask(size, 4096, ""), ()) for size in (2, 4, 8, 16)]
    plan = replace(make_plan(plant.spec(), done, 5e7, memories_mb=(4096,)), rate_per_s=2e7)
    verified, _ = verify_plan(SimulatedTestbed(plant), plan, feed, observe_s=120.0)
    assert any("150% of the rate: the plan is too big" in warning for warning in verified.warnings)
    plan = replace(plan, rate_per_s=2e8)
    verified, _ = verify_plan(SimulatedTestbed(plant), plan, feed, observe_s=120.0)
    assert any("the plan is too small" in warning for warning in verified.warnings)


class TestStreamBed:
    def test_the_papers_plan_ends_with_a_pass_of_bids2_from_the_largest_run(self) -> None:
        plant = job("streambed-q1")
        truth = Drawn(Truth(plant), 0.02, np.random.default_rng(0), 0.0)
        done = [truth.measure(Ask(size, memory, ""), ()) for memory in (2048, 4096) for size in (2, 5, 9, 16)]
        plan = streambed_plan(plant.spec(), done, 5e7, memories_mb=(4096,))
        fit = select_fit(Points.of(done))
        assert plan.allocation.slots == fit.slots_for(5e7, 4096)
        assert dict(plan.weights) == {fit.family: 1.0}
        capacities = operator_capacities(plant.spec(), *readings(done[-1]))
        unbounded = [replace(a, most=10_000) for a in capacities]
        assert plan.allocation.tasks == bids2(unbounded, plan.allocation.slots).tasks

    def test_no_size_is_a_warning_and_nothing_measured_an_error(self) -> None:
        plant = job("streambed-q1")
        truth = Drawn(Truth(plant), 0.0, np.random.default_rng(0), 0.0)
        done = [truth.measure(Ask(size, 4096, ""), ()) for size in (2, 16)]
        falls = [done[0], replace(done[1], rate_per_s=Interval(1e5, 1e5, 1e5))]
        plan = streambed_plan(plant.spec(), falls, 5e7, prices={None: 1.0})
        assert (math.isinf(plan.slots.middle), plan.cost_per_hour) == (True, None)
        assert any("no number of slots" in warning for warning in plan.warnings)
        with pytest.raises(NotPlannable):
            streambed_plan(plant.spec(), [replace(done[0], rate_per_s=None, problem="crashed")], 5e7)


class TestProduction:
    SPEC = job("streambed-q1").spec()

    def measure(self) -> list[Estimate]:
        truth = Drawn(Truth(job("streambed-q1")), 0.03, np.random.default_rng(1), 0.0)
        return [truth.measure(Ask(size, 4096, ""), ()) for size in (2, 3, 5, 7, 11, 16)]

    def plan(self, *production: Production) -> Plan:
        return make_plan(self.SPEC, self.measure(), 8e7, memories_mb=(4096,), production=production)

    def test_a_size_that_failed_in_production_is_not_planned_again(self) -> None:
        alone = self.plan()
        size = alone.allocation.slots
        more = self.plan(Production(size, 4096, 8e7, sustained=False))
        assert more.allocation.slots > size
        assert more.slots.low >= alone.slots.low
        assert self.plan(Production(size, 1024, 8e7, sustained=False)).allocation == alone.allocation

    def test_a_size_that_sustained_the_rate_bounds_the_plan(self) -> None:
        alone = self.plan()
        size = round(0.8 * alone.allocation.slots)
        less = self.plan(Production(size, 4096, 1.1 * 8e7, sustained=True))
        assert less.allocation.slots <= size
        assert less.capacity_per_s.high > 1.1 * 8e7

    def test_production_moves_and_narrows_the_rate_of_other_sizes(self) -> None:
        done = self.measure()
        before = Scaling.fit(done).rate_per_s(200, 4096)
        up = Scaling.fit(done, production=[Production(150, 4096, before.middle, sustained=True)])
        down = Scaling.fit(done, production=[Production(250, 4096, before.middle, sustained=False)])
        assert down.rate_per_s(200, 4096).middle < before.middle < up.rate_per_s(200, 4096).middle
        both = [Production(150, 4096, before.middle, True), Production(150, 4096, 1.2 * before.middle, False)]
        after = Scaling.fit(done, production=both).rate_per_s(200, 4096)
        assert after.high / after.low < before.high / before.low

    def test_verified_plans_are_production_runs(self) -> None:
        plan = replace(self.plan(), verified={"100%": "sustained", "150%": "not sustained", "120%": "not run: gone"})
        size = plan.allocation.slots
        assert production_runs([plan]) == [
            Production(size, 4096, 8e7, sustained=True),
            Production(size, 4096, 1.5 * 8e7, sustained=False),
        ]
