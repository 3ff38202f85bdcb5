"""Explorations and plans from end to end, and their failures."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rheostat.engine.testbed.simulated import SimulatedTestbed
from rheostat.errors import EngineError, InvalidValue, LeaseRefused
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Interval, Trial
from rheostat.job.plan import Estimate
from rheostat.journal import open_journal
from rheostat.journal.memory import MemoryJournal
from rheostat.lab.jobs import job
from rheostat.lab.papers.streambed.truth import Drawn, Truth
from rheostat.lab.testbeds import place
from rheostat.model.history import History, fold
from rheostat.planner import notebook
from rheostat.planner.campaign import OnTestbed, TestbedFailed, explore
from rheostat.planner.capacity_estimator import Phases
from rheostat.planner.notebook import open_notebook, read_estimates
from rheostat.planner.plan import NotPlannable, make_plan
from rheostat.planner.resource_explorer import Ask, Geometric, Paper, Space, Stop
from rheostat.planner.rig import Feed
from rheostat.planner.sequential_estimator import sequential
from rheostat.planner.verification import NOT_SUSTAINED, SUSTAINED, verify_plan
from rheostat.testing.testbed import TestbedConformance

PLANT = job("streambed-q1")
SPEC, FEED = PLANT.spec(), Feed.of(("events",))
SPACE = Space(2, 16, (4096,))
SHORT = Phases(warm_up_s=40.0)


def draw(seed: int = 0, failed: float = 0.0) -> Drawn:
    return Drawn(Truth(PLANT), 0.05, np.random.default_rng(seed), failed)


@pytest.fixture(scope="module")
def estimates() -> list[Estimate]:
    bed = OnTestbed(SimulatedTestbed(PLANT, 3), SPEC, FEED, SHORT, sequential, split_by_curves=True)
    return explore(Geometric(SPACE), bed)[0]


class TestStrategies:
    def test_ours_measures_ends_first_and_at_most_eight_sizes(self) -> None:
        done, why = explore(Geometric(SPACE), draw())
        assert [e.slots for e in done[:2]] == [2, 16]
        assert len({e.slots for e in done}) <= 8
        assert len(done) == 8
        assert why == "the design is complete"

    def test_failed_runs_are_repeated(self) -> None:
        done = [e for seed in range(4) for e in explore(Geometric(SPACE), draw(seed, failed=0.2))[0]]
        assert any(e.why.startswith("again") for e in done)

    def test_other_memory_profiles_are_measured(self) -> None:
        done, _ = explore(Geometric(Space(2, 16, (1024, 4096))), draw())
        assert sum(e.memory_mb == 1024 for e in done) == 2
        assert {e.slots for e in done if e.memory_mb == 1024} == {16}

    def test_a_narrow_answer_ends_early(self) -> None:
        quiet = replace(draw(), rate_noise=0.005)
        done, _ = explore(Geometric(SPACE, enough=1.6, rate_per_s=3e7), quiet)
        assert len(done) < 8

    def test_the_paper_starts_with_corners_and_stays_within_its_limits(self) -> None:
        space = Space(2, 16, (512, 1024, 2048, 4096))
        for seed in range(3):
            done, why = explore(Paper(space, seed), draw(seed))
            assert [(e.slots, e.memory_mb) for e in done[:4]] == [(2, 512), (16, 512), (2, 4096), (16, 4096)]
            assert 7 <= len(done) <= 20
            assert "rose" in why or "maximum" in why

    def test_the_paper_does_not_ask_for_a_failing_budget_for_ever(self) -> None:
        class FailsAtTheTop(Drawn):
            def measure(self, ask: Ask, done: Sequence[Estimate]) -> Estimate:
                one = super().measure(ask, done)
                fails = ask.memory_mb == 512 or ask.slots == 16
                return replace(one, rate_per_s=None, problem="out of memory") if fails else one

        for seed in range(4):
            bed = FailsAtTheTop(Truth(PLANT), 0.05, np.random.default_rng(seed), 0.0)
            done, _ = explore(Paper(Space(2, 16, (512, 4096)), seed), bed)
            assert sum(e.usable for e in done) >= 3
            for budget in {(e.slots, e.memory_mb) for e in done if e.problem}:
                assert sum((e.slots, e.memory_mb) == budget for e in done) <= 2

    def test_whole_executors(self) -> None:
        sizes = [size for size, _ in Geometric(Space(4, 42, (None,), step=4)).design()]
        assert all(size % 4 == 0 for size in sizes)
        assert max(sizes) == 40

    def test_an_impossible_space_is_refused(self) -> None:
        with pytest.raises(InvalidValue, match="largest budget is 4 slots"):
            Space(9, 4)


class TestCampaign:
    def test_saved_estimates_are_not_measured_again(self, estimates: list[Estimate]) -> None:
        saved: list[Estimate] = []
        strategy = Geometric(SPACE)
        bed = OnTestbed(SimulatedTestbed(PLANT, 9), SPEC, FEED, SHORT, sequential, split_by_curves=True)
        done, _ = explore(strategy, bed, estimates[:-1], save=saved.append)
        assert done[: len(estimates) - 1] == estimates[:-1]
        assert len(saved) == len(done) - len(estimates) + 1

    def test_a_testbed_that_fails_in_the_middle_loses_nothing(self) -> None:
        journal = MemoryJournal()
        with open_notebook(journal, "j") as notes, pytest.raises(KeyboardInterrupt):
            explore(Geometric(SPACE), Interrupted(draw(), 3), save=notes.save)
        before = read_estimates(journal, "j")
        assert len(before) == 3
        with open_notebook(journal, "j") as notes:
            done, _ = explore(Geometric(SPACE), draw(), before, save=notes.save)
        assert done[:3] == before
        assert len(read_estimates(journal, "j")) == len(done) == 8

    def test_a_testbed_that_only_fails_is_given_up(self) -> None:
        with pytest.raises(TestbedFailed, match="in a row"):
            explore(Geometric(SPACE), Crashing())

    def test_a_budget_ends_it_and_a_plan_is_still_made(self) -> None:
        done, why = explore(Geometric(SPACE), draw(), budget_s=35 * 60)
        assert "budget" in why
        assert len(done) == 3
        assert make_plan(SPEC, done, 5e7, memories_mb=(4096,)).allocation.slots > 16

    def test_a_budget_of_zero_is_refused(self) -> None:
        with pytest.raises(InvalidValue, match="0 minutes"):
            explore(Geometric(SPACE), draw(), budget_s=0.0)

    def test_an_endless_strategy_is_stopped(self) -> None:
        done, why = explore(Endless(), draw())
        assert len(done) == 60
        assert "more than any plan" in why

    def test_a_controller_starts_with_the_capacities_of_planning(self, estimates: list[Estimate]) -> None:
        history = History()
        for estimate in estimates:
            history = fold(history, estimate)
        assert {sample.tasks for sample in history.samples("calc")} == {e.allocation.tasks["calc"] for e in estimates}
        assert fold(History(), replace(estimates[0], problem="crashed")) == History()


class Interrupted:
    def __init__(self, inner: Drawn, after: int) -> None:
        self.inner, self.left = inner, after

    def measure(self, ask: Ask, done: Sequence[Estimate]) -> Estimate:
        if self.left == 0:
            raise KeyboardInterrupt
        self.left -= 1
        return self.inner.measure(ask, done)


class Crashing:
    def measure(self, ask: Ask, done: Sequence[Estimate]) -> Estimate:
        tasks = Allocation({"calc": ask.slots - 1, "sink": 1}, ask.memory_mb)
        return Estimate(0.0, tasks, None, problem="out of memory")


class CrashesBelow(Drawn):
    def measure(self, ask: Ask, done: Sequence[Estimate]) -> Estimate:
        return Crashing().measure(ask, done) if ask.memory_mb == 512 else super().measure(ask, done)


class Endless:
    def next(self, done: Sequence[Estimate]) -> Ask | Stop:
        return Ask(8, 4096, "for ever")


class TestPlan:
    def test_a_plan_is_sustained_and_not_too_big(self, estimates: list[Estimate]) -> None:
        rate = 8e7
        plan = make_plan(SPEC, estimates, rate, memories_mb=(4096,), prices={None: 0.1})
        needed = Truth(PLANT).slots_for(1.1 * rate)
        assert plan.allocation.slots == pytest.approx(needed, rel=0.15)
        assert plan.slots.holds(needed)
        assert plan.cost_per_hour == pytest.approx(0.1 * plan.slots.middle)
        assert plan.reach == pytest.approx(plan.allocation.slots / 16)
        assert plan.next_measurement is not None
        verified, verdicts = verify_plan(SimulatedTestbed(PLANT, 1), plan, FEED, observe_s=300.0)
        assert [v.verdict for v in verdicts] == [SUSTAINED, NOT_SUSTAINED, NOT_SUSTAINED]
        assert verified.verified["100%"] == SUSTAINED

    def test_a_falling_backlog_counts_as_sustained(self, estimates: list[Estimate]) -> None:
        plan = make_plan(SPEC, estimates, 8e7, memories_mb=(4096,))
        verdicts = {}
        for name, taken, waiting_s in (
            ("falls", 1.1, 60.0),
            ("stays", 1.0, 60.0),
            ("small", 1.0, 5.0),
            ("less", 0.9, 5.0),
        ):

            def answer(trial: Trial, taken: float = taken, waiting_s: float = waiting_s) -> Any:
                rate = sum(trial.phases[-1].rates_per_s.values())
                window = SimpleNamespace(throughput_per_s=taken * rate, backlog=waiting_s * rate)
                return SimpleNamespace(problem=None, observation=window)

            _, [one] = verify_plan(SimpleNamespace(measure=answer), plan, FEED, (1.0,))
            verdicts[name] = one.verdict
        assert verdicts == {"falls": SUSTAINED, "stays": NOT_SUSTAINED, "small": SUSTAINED, "less": NOT_SUSTAINED}

    def test_more_rate_never_takes_fewer_slots(self, estimates: list[Estimate]) -> None:
        slots = [
            make_plan(SPEC, estimates, rate, memories_mb=(4096,)).allocation.slots for rate in (1e6, 1e7, 5e7, 1e8)
        ]
        assert slots == sorted(slots)

    def test_a_rate_below_the_smallest_size_is_a_warning(self, estimates: list[Estimate]) -> None:
        plan = make_plan(SPEC, estimates, 10.0, memories_mb=(4096,))
        assert plan.allocation.slots == 2
        assert any("smallest size" in warning for warning in plan.warnings)

    def test_a_profile_that_crashes_is_recorded_and_left_out(self) -> None:
        bed = CrashesBelow(Truth(PLANT), 0.05, np.random.default_rng(0), 0.0)
        done, _ = explore(Geometric(Space(2, 16, (512, 4096))), bed)
        crashed = [e for e in done if e.memory_mb == 512]
        assert [e.problem for e in crashed] == ["out of memory"] * 2
        plan = make_plan(SPEC, done, 5e7, memories_mb=(512, 4096))
        assert plan.allocation.memory_mb == 4096
        assert any("512 MB every run failed" in warning for warning in plan.warnings)

    def test_measurements_that_fall_are_a_warning(self, estimates: list[Estimate]) -> None:
        less = [replace(e, rate_per_s=Interval(6e6, 6e6, 6e6)) if e.slots == 11 else e for e in estimates]
        plan = make_plan(SPEC, less, 5e7, memories_mb=(4096,))
        assert any("sustained less" in warning for warning in plan.warnings)

    def test_no_plan_without_a_sustained_rate(self) -> None:
        nothing = Estimate(0.0, Allocation({"calc": 1, "sink": 1}), None, problem="it cannot sustain even the smallest")
        with pytest.raises(NotPlannable, match="no size sustained any rate"):
            make_plan(SPEC, [nothing], 1e6)
        with pytest.raises(NotPlannable, match="nothing was measured"):
            make_plan(SPEC, [], 1e6)

    def test_no_plan_where_the_injector_is_the_limit(self) -> None:
        bed = OnTestbed(SimulatedTestbed(PLANT, injector_per_s=1e5), SPEC, FEED, SHORT, sequential)
        done = [bed.measure(Ask(2, 4096, ""), ())]
        with pytest.raises(NotPlannable, match="injector is the limit"):
            make_plan(SPEC, done, 1e6)

    def test_sizes_that_the_injector_cannot_fill_are_left_out(self) -> None:
        bed = OnTestbed(
            SimulatedTestbed(PLANT, 2, injector_per_s=8e6), SPEC, FEED, SHORT, sequential, split_by_curves=True
        )
        done, _ = explore(Geometric(Space(2, 16, (4096,)), repeats=0), bed)
        limited = [e.slots for e in done if e.limited_by == "injector"]
        assert limited
        assert len(limited) <= 5
        assert max(e.slots for e in done if e.usable) < min(limited)
        plan = make_plan(SPEC, done, 3e7, memories_mb=(4096,))
        assert any("injector was the limit" in warning for warning in plan.warnings)

    def test_an_unreachable_rate_is_a_warning(self) -> None:
        hurt = replace(PLANT, interference=replace(PLANT.interference, per_slot=0.5, reference_slots=2.0))
        bed = Drawn(Truth(hurt), 0.01, np.random.default_rng(0), 0.0)
        done, _ = explore(Geometric(SPACE), bed)
        plan = make_plan(SPEC, done, 1e9, memories_mb=(4096,))
        assert math.isinf(plan.slots.middle)
        assert any("no number of slots" in warning for warning in plan.warnings)


def test_places() -> None:
    there = place("simulated", "q11")
    assert there.memory_mb == 4096
    on_spark = place("spark", "ysb")  # nothing is started before something is measured
    assert on_spark.spec.tunable_names == ("job",)
    assert place("spark", "ysb-cpu").memory_mb == on_spark.memory_mb
    assert 2048 in on_spark.spec.memory_choices_mb
    with pytest.raises(InvalidValue, match="unknown pipeline 'q99'"):
        place("spark", "q99")
    with pytest.raises(InvalidValue, match="unknown engine"):
        place("simulatd", "q11")
    with pytest.raises(EngineError, match="trial by trial"):
        SimulatedTestbed(job("spark-ysb")).start(job("spark-ysb").start())


class TestSimulatedTestbed(TestbedConformance):
    def make_testbed(self):  # type: ignore[no-untyped-def]
        return SimulatedTestbed(replace(PLANT, operators=tuple(replace(o, noise=0.0) for o in PLANT.operators))), SPEC

    def easy(self) -> tuple[Allocation, dict[str, float]]:
        return Allocation({"calc": 4, "sink": 2}, 4096), {"events": 1e6}

    def too_much(self) -> tuple[Allocation, dict[str, float]]:
        return Allocation({"calc": 1, "sink": 1}, 4096), {"events": 1e7}


def test_a_live_session_keeps_its_lease_and_a_killed_one_loses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notebook, "TTL_S", 0.3)
    first, second = (open_journal(str(tmp_path / "plan.db")) for _ in range(2))
    first.acquire("j", "killed", 0.3)
    with pytest.raises(LeaseRefused, match="held by 'killed'"), open_notebook(second, "j"):
        pass
    time.sleep(0.4)
    with open_notebook(second, "j"):
        time.sleep(1.0)  # a measurement, as long as three leases
        with pytest.raises(LeaseRefused, match="held by 'plan'"):
            first.acquire("j", "other", 0.3)
    first.release(first.acquire("j", "other", 0.3))
    for journal in (first, second):
        journal.close()
