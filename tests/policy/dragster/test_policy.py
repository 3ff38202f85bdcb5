"""Dragster: Algorithm 2 step by step, and its edge cases."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from rheostat.control.controller import IMMEDIATE, Controller
from rheostat.control.limits import limits
from rheostat.control.replay import replay
from rheostat.engine.simulated import Fleet, FleetClock
from rheostat.engine.testbed.loads import Steps
from rheostat.errors import InvalidValue
from rheostat.job.decision import Decision, Reason
from rheostat.job.graph import Graph, JobSpec, Tunable
from rheostat.job.guards import UNGUARDED
from rheostat.job.observation import Observation
from rheostat.job.slo import SLO, Bounds, Budget
from rheostat.journal import open_journal
from rheostat.lab.jobs import job
from rheostat.policy.dragster.policy import TO_THE_LETTER, Dragster, Knowledge
from rheostat.policy.dragster.tally import MOST_COUNTED, Size, Tally, Watch, fold_tally
from rheostat.policy.dragster.throughput import EdgeFunction
from rheostat.policy.dragster.ucb import Posterior, beta
from rheostat.ports import Policy, Situation
from rheostat.testing.policy import PolicyConformance
from rheostat.testing.situations import diamond, limits_of, read, situation, window, word_count

TEN = word_count(Bounds(1, 10))
RATES = {"lines": 1e6, "split": 100.0, "count": 250.0}
SAMPLES = {"split": [(p, 100.0 * p, 9) for p in range(1, 11)], "count": [(p, 250.0 * p, 9) for p in range(1, 11)]}


def knowledge_of(operators: Mapping[str, Any], windows: int = 20) -> Knowledge:
    """Return knowledge: operator -> (tasks, capacity, count)."""
    return Knowledge(Tally({n: tuple(Size(p, c, a, 1) for p, a, c in rows) for n, rows in operators.items()}, windows))


KNOWN = knowledge_of(SAMPLES)


def at(load_per_s: float, tasks: Any = 4, known: Knowledge = KNOWN, **rest: Any) -> Situation[Knowledge]:
    spec = rest.pop("spec", TEN)
    return situation(spec, window(spec, load_per_s, tasks, rest.pop("rates", RATES)), known, **rest)


def held(load_per_s: float, tasks: Any = 4, known: Knowledge = KNOWN, **rest: Any) -> Situation[Knowledge]:
    """Return a situation in which back pressure slows the source: no backlog asks for catch-up capacity."""
    here = at(load_per_s, tasks, known, **rest)
    return replace(here, window=without_backlog(here.window))


def without_backlog(observed: Observation) -> Observation:
    return replace(observed, sources=tuple(replace(source, backlog=0.0) for source in observed.sources))


def asked(decision: Decision) -> dict[str, int] | None:
    return None if decision.target is None else dict(decision.target.tasks)


class TestConformance(PolicyConformance):
    def make_policy(self) -> Policy[Any]:
        return Dragster()


class TestConformanceToTheLetter(PolicyConformance):
    def make_policy(self) -> Policy[Any]:
        return Dragster(**TO_THE_LETTER)


class TestConformanceOfTheGradientWithEveryOption(PolicyConformance):
    def make_policy(self) -> Policy[Any]:
        options = {"eta": 0.3, "delta": 4.0, "length_scale": 0.5, "noise": 0.1, "throughput": "graph"}
        return Dragster("gradient", **{**TO_THE_LETTER, **options})


class TestConformanceWithGivenFunctions(PolicyConformance):
    def make_policy(self) -> Policy[Any]:
        return Dragster(functions={"split->count": EdgeFunction((0.01,), "tanh", 1e4, 1.0)})

    def jobs(self) -> tuple[JobSpec, ...]:
        return (word_count(), word_count(quantum=4))


class TestBandit:
    """Eq 17 and 18."""

    def test_the_posterior_is_scikit_learns(self) -> None:
        rng = np.random.default_rng(3)
        sizes = [Size(p, 1, 100.0 * p * float(np.exp(0.05 * rng.standard_normal())), 1) for p in (1, 4, 5, 9)]
        posterior = Posterior.of(sizes, np.arange(1.0, 11.0), 900.0, 2.0, 0.1)
        oracle = GaussianProcessRegressor(RBF(2.0, "fixed"), alpha=0.1**2, optimizer=None)
        oracle.fit([[s.tasks] for s in sizes], [s.capacity_per_s / 900.0 for s in sizes])
        mean, sd = oracle.predict(np.arange(1.0, 11.0)[:, None], return_std=True)
        assert posterior.mean == pytest.approx(mean)
        assert np.sqrt(posterior.variance) == pytest.approx(sd)

    def test_means_of_n_observations_are_n_observations(self) -> None:
        single = [Size(2, 1, 190.0, 1), Size(2, 1, 210.0, 1), Size(6, 1, 500.0, 1)]
        averaged = [Size(2, 2, 200.0, 1), Size(6, 1, 500.0, 1)]
        one, two = (Posterior.of(s, np.arange(1.0, 11.0), 500.0, 2.0, 0.1) for s in (single, averaged))
        assert one.mean == pytest.approx(two.mean)
        assert one.variance == pytest.approx(two.variance)

    def test_it_explores_far_from_the_samples_and_then_exploits(self) -> None:
        sizes = np.arange(1.0, 11.0)
        once = Posterior.of([Size(1, 1, 100.0, 1)], sizes, 600.0, 2.0, 0.01)
        assert once.best(1.0, beta(10, 1, 2.0)) > 4
        often = Posterior.of([Size(p, 9, 100.0 * p, 1) for p in range(1, 11)], sizes, 600.0, 2.0, 0.01)
        assert sizes[often.best(1.0, beta(10, 50, 2.0))] == 6

    def test_a_shortfall_may_count_more_than_a_surplus(self) -> None:
        """On a coarse curve the nearest size is 3 % too small, for ever."""
        posterior = Posterior.of([Size(2, 99, 276.0, 1), Size(3, 99, 379.0, 1)], np.array([2.0, 3.0]), 300.0, 0.5, 0.01)
        target = 286.0 / 300.0
        assert posterior.sizes[posterior.best(target, 0.0)] == 2
        assert posterior.sizes[posterior.best(target, 0.0, shortfall=10.0)] == 3

    def test_beta_is_that_of_theorem_1(self) -> None:
        assert beta(10, 3, 2.0) == pytest.approx(2 * math.log(10 * 9 * math.pi**2 * 2.0 / 6))
        assert beta(1, 1, 1.0) >= 0


class TestTargets:
    def test_the_saddle_point_jumps_to_the_demand_and_its_margin(self) -> None:
        decision = Dragster(margin=0.0).decide(held(500.0, {"split": 1, "count": 1}))
        assert decision.evidence["split.target_per_s"] == pytest.approx(500.0)
        assert decision.evidence["count.target_per_s"] == pytest.approx(2500.0)
        assert asked(decision) == {"split": 5, "count": 10}
        assert decision.reason is Reason.UNDER_PROVISIONED

    def test_the_slos_headroom_is_its_margin_where_none_is_set(self) -> None:
        decision = Dragster().decide(held(400.0, slo=SLO(headroom=0.25)))
        assert decision.evidence["split.target_per_s"] == pytest.approx(500.0)
        assert Dragster().decide(held(400.0)).evidence["split.target_per_s"] == pytest.approx(424.0)

    def test_the_gradient_takes_steps_up_and_down_and_stops_at_the_demand(self) -> None:
        policy = Dragster(variant="gradient", margin=0.0, eta=0.1)
        here = held(450.0, {"split": 2, "count": 4})
        first = policy.decide(here)
        target = first.evidence["split.target_per_s"]
        assert 200.0 < target < 450.0
        second = policy.decide(replace(here, memo=first.memo))
        assert target < second.evidence["split.target_per_s"] <= 450.0
        for _ in range(20):
            second = policy.decide(replace(here, memo=second.memo))
        assert second.evidence["split.target_per_s"] == pytest.approx(450.0)
        lower = replace(held(100.0, {"split": 5, "count": 9}), memo=second.memo)
        down = policy.decide(lower)
        assert down.evidence["split.target_per_s"] == pytest.approx(450.0 - 0.1 * 1000.0)

    def test_the_gradient_helps_the_bottleneck_first(self) -> None:
        policy = Dragster(variant="gradient", margin=0.0)
        here = at(400.0, {"split": 4, "count": 2})
        before = {"split": 400.0, "count": 500.0}
        after = policy.decide(replace(here, memo={"targets": before}))
        assert after.evidence["count.target_per_s"] > 500.0
        assert after.evidence["split.target_per_s"] == pytest.approx(400.0)

    def test_multipliers_grow_while_something_is_lacking_and_shrink_afterwards(self) -> None:
        policy = Dragster()
        short = policy.decide(at(400.0, {"split": 2, "count": 8}))
        assert short.evidence["split.multiplier"] > 0
        longer = policy.decide(at(400.0, {"split": 2, "count": 8}, memo=short.memo))
        assert longer.evidence["split.multiplier"] > short.evidence["split.multiplier"]
        cured = policy.decide(at(400.0, {"split": 8, "count": 10}, memo=longer.memo))
        assert cured.evidence["split.multiplier"] < longer.evidence["split.multiplier"]

    def test_a_known_load_is_answered_in_one_step_and_then_held(self) -> None:
        there = Dragster().decide(at(350.0, {"split": 9, "count": 10}))
        assert asked(there) == {"split": 4, "count": 8}
        stay = Dragster().decide(at(350.0, {"split": 4, "count": 8}))
        assert stay.target is None
        assert stay.reason is Reason.STEADY

    def test_a_change_made_only_to_learn_has_its_own_reason(self) -> None:
        known = knowledge_of({"split": [(4, 400.0, 1)], "count": [(8, 2000.0, 1)]}, 1)
        decision = Dragster(margin=0.0).decide(at(400.0, {"split": 4, "count": 8}, known))
        assert decision.reason is Reason.EXPLORE
        assert "explores split, count" in decision.sentence
        assert decision.expects.throughput_per_s is None


class TestFunctions:
    def test_configured_functions_replace_the_graphs_and_the_learned_ones(self) -> None:
        functions = {"split->count": EdgeFunction((2.0,))}
        decision = Dragster(margin=0.0, functions=functions).decide(at(400.0))
        assert decision.evidence["count.demand_per_s"] == pytest.approx(800.0)

    def test_learned_functions_follow_the_windows_not_the_graph(self) -> None:
        policy, known = Dragster(margin=0.0), Knowledge()
        three = window(TEN, 200.0, 4, RATES)
        three = replace(
            three, edges=tuple(replace(e, records_per_s=600.0) if e.upstream == "split" else e for e in three.edges)
        )
        for _ in range(3):
            known = policy.learn(known, three)
        assert policy.decide(situation(TEN, three, known)).evidence["count.demand_per_s"] == pytest.approx(600.0)
        graph = replace(policy, throughput="graph")
        assert graph.decide(situation(TEN, three, known)).evidence["count.demand_per_s"] == pytest.approx(1000.0)

    def test_a_function_for_an_edge_that_is_not_there_is_refused(self) -> None:
        with pytest.raises(InvalidValue, match="no edge 'split->cuont'"):
            Dragster(functions={"split->cuont": EdgeFunction()}).decide(at(100.0))

    def test_capacity_comes_from_cpu_where_useful_time_is_missing_or_if_configured(self) -> None:
        """Eq 8: 200 records/s at 25 % CPU are a capacity of 800; to the letter their output of 1000 is one of 4000."""
        no_useful_time = window(TEN, 200.0, 4, RATES)
        no_useful_time = read(no_useful_time, "split", true_rate_per_s=None, useful_share=None, cpu_share=0.25)
        with_cpu = read(window(TEN, 200.0, 4, RATES), "split", cpu_share=0.25)
        for policy, each, expected in ((Dragster(), no_useful_time, 800.0), (Dragster(capacity="cpu"), with_cpu, 4e3)):
            (size,) = policy.learn(Knowledge(), each).tally.sizes("split")
            assert size.capacity_per_s == pytest.approx(expected)


class TestBudget:
    def test_too_few_slots_are_split_by_capacity(self) -> None:
        here = at(1000.0, {"split": 2, "count": 2}, limits=limits_of(TEN, Bounds(1, 9)))
        decision = Dragster().decide(here)
        assert asked(decision) == {"split": 3, "count": 6}  # a split feeds two counts
        assert "9 slots serve 30% of it" in decision.sentence

    def test_the_euclidean_projection_takes_the_same_from_all(self) -> None:
        here = held(500.0, {"split": 1, "count": 1}, limits=limits_of(TEN, Bounds(1, 9)))
        assert asked(Dragster(margin=0.0, projection="euclidean").decide(here)) == {"split": 2, "count": 7}

    def test_a_budget_below_one_task_per_operator_is_an_error_before_and_a_hold_inside(self) -> None:
        with pytest.raises(InvalidValue, match=r"slo.budget allows 1 slots, but the job needs at least 2"):
            limits(TEN, SLO(budget=Budget(slots=1)))
        decision = Dragster().decide(at(100.0, 1, limits=limits_of(TEN, Bounds(1, 1))))
        assert decision.target is None
        assert "budget of 1 slots is below the job's minimum of 2" in decision.sentence


class TestEdges:
    def test_without_load_every_operator_has_its_minimum(self) -> None:
        assert asked(Dragster().decide(at(0.0, 6))) == {"split": 1, "count": 1}

    def test_an_operator_without_samples_keeps_its_tasks(self) -> None:
        observed = read(
            window(TEN, 100.0, 4, RATES), "count", records_in_per_s=0.0, true_rate_per_s=None, cpu_share=0.0
        )
        decision = Dragster().decide(situation(TEN, observed, knowledge_of({"split": SAMPLES["split"]})))
        assert (asked(decision) or {"count": 4})["count"] == 4

    def test_a_single_operator_that_is_the_whole_job(self) -> None:
        """A micro-batch job: one tunable operator, also the source, executors of two slots."""
        spec = JobSpec("batch", Graph(("job",), (), ("job",)), (Tunable("job", Bounds(2, 20), 2),))
        here = situation(
            spec,
            without_backlog(window(spec, 900.0, 2, 100.0)),
            knowledge_of({"job": [(p, 100.0 * p, 9) for p in range(2, 21, 2)]}),
        )
        assert asked(Dragster().decide(here)) == {"job": 10}

    def test_a_diamond_is_sized_for_every_branch(self) -> None:
        spec = diamond(Bounds(1, 40))
        samples = {name: [(p, 100.0 * p, 9) for p in range(1, 41)] for name in spec.tunable_names}
        here = situation(spec, without_backlog(window(spec, 800.0, 4, 100.0)), knowledge_of(samples))
        need = spec.graph.demand_per_s({"clicks": 800.0, "views": 800.0})
        wanted = asked(Dragster(margin=0.0).decide(here))
        assert wanted is not None
        for name, rate in need.items():
            assert wanted[name] == pytest.approx(min(rate / 100.0, 40), abs=1)

    def test_fixed_operators_stay(self) -> None:
        spec = word_count(Bounds(3, 3))
        assert Dragster().decide(at(5000.0, 3, Knowledge(), spec=spec)).target is None

    def test_back_pressure_that_cannot_be_scaled_away_is_named(self) -> None:
        observed = replace(window(TEN, 100.0, 4, RATES), overloaded=("lines",))
        assert "lines, which cannot be scaled" in Dragster().decide(situation(TEN, observed, KNOWN)).sentence

    def test_constant_samples_are_harmless(self) -> None:
        flat = knowledge_of({"split": [(p, 300.0, 5) for p in range(1, 11)], "count": [(4, 1e3, 100)]})
        variants: tuple[Literal["saddle", "gradient"], ...] = ("saddle", "gradient")
        for variant in variants:
            assert Dragster(variant=variant).decide(at(400.0, 4, flat)).sentence

    def test_means_are_bounded_in_count_and_keep_following(self) -> None:
        tally = Tally()
        for rate in (100.0,) * (MOST_COUNTED + 20) + (200.0,) * 3 * MOST_COUNTED:
            tally = fold_tally(tally, window(TEN, 50.0, 4, {**RATES, "split": rate}))
        (size,) = tally.sizes("split")
        assert size.count == MOST_COUNTED
        assert size.capacity_per_s == pytest.approx(800.0, rel=0.01)


LETTER: Mapping[str, Any] = {**TO_THE_LETTER, "capacity": "useful"}
"""To the letter, for samples that count input records."""


class TestTheLetter:
    """Eq 8 and 14 to 18 as printed."""

    def test_a_positive_multiplier_leaves_eq_14_without_a_maximum(self) -> None:
        """The target is then beyond every capacity: among well-known sizes the largest is selected."""
        far = at(400.0, {"split": 2, "count": 8})
        short = Dragster(**LETTER).decide(far)
        assert short.evidence["split.multiplier"] > 0
        assert (asked(short) or {})["split"] == 10
        plain = Dragster(**{**LETTER, "multipliers": "ignored"}).decide(far)
        assert asked(plain) == {"split": 4, "count": 8}

    def test_a_size_slightly_too_small_is_as_good_as_one_too_large(self) -> None:
        """Eq 18 is symmetric: 440 records/s get four tasks of 100 for ever; ours gives them five."""
        known = knowledge_of(SAMPLES, 10_000)
        here = held(440.0, {"split": 4, "count": 9}, known)
        plain = Dragster(**{**LETTER, "multipliers": "ignored"})
        assert plain.decide(here).target is None
        assert asked(Dragster(margin=0.0).decide(here)) == {"split": 5, "count": 9}

    def test_nothing_lowers_the_gradients_target(self) -> None:
        memo = {"targets": {"split": 450.0, "count": 2250.0}, "multipliers": {"split": 0.2, "count": 0.0}}
        here = held(100.0, {"split": 5, "count": 9}, memo=memo)
        letter = Dragster("gradient", **LETTER).decide(here)
        assert letter.evidence["split.target_per_s"] > 450.0
        assert letter.evidence["count.target_per_s"] == pytest.approx(2250.0)
        assert Dragster("gradient").decide(here).evidence["split.target_per_s"] < 450.0

    def test_samples_are_outputs_also_where_the_selectivity_changes(self) -> None:
        """Eq 8 and 4: an output capacity of 4000 serves 800 lines of five words, and 400 of ten."""
        letter = Dragster(**{**TO_THE_LETTER, "functions": {"split->count": EdgeFunction((10.0,))}})
        known = letter.learn(Knowledge(), read(window(TEN, 200.0, 4, RATES), "split", cpu_share=0.25))
        (size,) = known.tally.sizes("split")
        here = situation(TEN, window(TEN, 200.0, 4, RATES), known)
        flow, _ = letter.dataflow(here)
        (seen,) = letter.view(here, flow, "split").sampled
        assert (size.capacity_per_s, seen.capacity_per_s) == pytest.approx((4000.0, 400.0))

    def test_every_sample_counts_the_same(self) -> None:
        knowledge, letter = Knowledge(), Dragster(**TO_THE_LETTER)
        for rate in (100.0,) * 30 + (80.0,) * 10:
            knowledge = letter.learn(knowledge, window(TEN, 50.0, 4, {**RATES, "split": rate}))
        (size,) = knowledge.tally.sizes("split")
        assert size.count == 40
        assert size.capacity_per_s == pytest.approx(5 * 380.0)

    def test_its_options_are_all_departures_from_the_defaults(self) -> None:
        defaults = Dragster().options()
        assert all(defaults[name] != value for name, value in TO_THE_LETTER.items())


class TestCatchUp:
    """Ours: the multipliers of a proximal Eq 14 are queues, and the next step works them off."""

    def test_a_backlog_becomes_capacity_for_the_whole_job(self) -> None:
        """Half of the load was lacking, so half of it waits, and one and a half times the load can be processed."""
        behind = at(400.0, {"split": 2, "count": 10}, knowledge_of(SAMPLES, 1))
        decision = Dragster(margin=0.0).decide(with_backlog(behind, steps=1.0))
        assert decision.evidence["catch_up"] == pytest.approx(0.5)
        assert decision.evidence["split.target_per_s"] == pytest.approx(600.0)
        assert decision.evidence["count.target_per_s"] == pytest.approx(3000.0)
        assert "a backlog asks for 50% more" in decision.sentence

    def test_no_queue_is_longer_than_the_measured_backlog(self) -> None:
        behind = at(400.0, {"split": 2, "count": 10}, knowledge_of(SAMPLES, 1))
        shares = [Dragster().decide(with_backlog(behind, steps)).evidence["catch_up"] for steps in (0.0, 0.2, None)]
        assert shares == pytest.approx([0.0, 0.2, 0.5])

    def test_a_backlog_without_missing_capacity_is_left_to_the_margin(self) -> None:
        """A micro-batch source always has one: the multipliers say whether it is due to the capacity."""
        enough = with_backlog(at(400.0, {"split": 5, "count": 10}), steps=1.0)
        assert Dragster().decide(enough).evidence["catch_up"] == 0.0

    def test_a_short_queue_is_left_to_the_margin(self) -> None:
        behind = with_backlog(at(400.0, {"split": 2, "count": 10}, knowledge_of(SAMPLES, 1)), steps=0.05)
        assert Dragster(margin=0.06).decide(behind).evidence["catch_up"] == 0.0
        assert Dragster(margin=0.04).decide(behind).evidence["catch_up"] == pytest.approx(0.05)

    def test_nothing_shrinks_while_a_queue_is_worked_off(self) -> None:
        behind = at(100.0, {"split": 9, "count": 1}, knowledge_of(SAMPLES, 1))
        assert (asked(Dragster().decide(with_backlog(behind, steps=0.0))) or {})["split"] == 1
        catching_up = asked(Dragster().decide(with_backlog(behind, steps=0.3)))
        assert catching_up == {"split": 9, "count": 3}

    def test_the_gradient_has_none(self) -> None:
        """Its multipliers push towards the demand, as printed, and it stops there."""
        behind = with_backlog(at(400.0, {"split": 2, "count": 10}, knowledge_of(SAMPLES, 1)), steps=1.0)
        decision = Dragster("gradient").decide(behind)
        assert decision.evidence["catch_up"] == 0.0
        assert decision.evidence["split.multiplier"] > 0.0

    def test_it_ends_once_the_queue_is_worked_off(self) -> None:
        behind = with_backlog(at(400.0, {"split": 2, "count": 10}, knowledge_of(SAMPLES, 1)), steps=0.5)
        memo = Dragster().decide(behind).memo
        after = with_backlog(at(400.0, {"split": 9, "count": 10}, knowledge_of(SAMPLES, 2), memo=memo), steps=0.5)
        assert Dragster().decide(after).evidence["catch_up"] == 0.0


def with_backlog(here: Situation[Knowledge], steps: float | None) -> Situation[Knowledge]:
    """Return the situation with a backlog of this many windows of load."""
    observed = here.window
    seconds = observed.end_s - observed.start_s
    waiting = tuple(
        replace(source, backlog=None if steps is None else steps * (source.rate_per_s or 0.0) * seconds)
        for source in observed.sources
    )
    return replace(here, window=replace(observed, sources=waiting))


class TestDrift:
    """Capacities that change: old samples lose their weight once newer ones contradict them."""

    @staticmethod
    def fold(rates: Sequence[float], tasks: Sequence[int], forgets: bool = True) -> Tally:
        tally = Tally()
        for rate, count in zip(rates, tasks, strict=True):
            tally = fold_tally(tally, window(TEN, 50.0, count, {**RATES, "split": rate}), forgets)
        return tally

    def test_a_drop_is_noticed_in_two_windows_at_every_size(self) -> None:
        rng = np.random.default_rng(5)
        before = 100.0 * np.exp(0.01 * rng.standard_normal(60))
        rates, tasks = [*before, 90.0, 90.0], [5] * 30 + [4] * 32
        tally = self.fold(rates, tasks)
        capacities = {size.tasks: size.capacity_per_s for size in tally.sizes("split")}
        assert capacities == pytest.approx({4: 360.0, 5: 450.0}, rel=0.01)
        forever = {size.tasks: size.capacity_per_s for size in self.fold(rates, tasks, forgets=False).sizes("split")}
        assert forever == pytest.approx({4: 400.0, 5: 500.0}, rel=0.01)

    def test_a_single_odd_window_changes_nothing(self) -> None:
        tally = self.fold([100.0] * 40 + [40.0] + [100.0] * 20, [4] * 61)
        (size,) = tally.sizes("split")
        assert size.count == 61

    @pytest.mark.parametrize("noise", [0.005, 0.02, 0.08])
    def test_noise_is_no_drift(self, noise: float) -> None:
        """No more than one false alarm in a thousand windows: a month of ten-minute slots has four thousand."""
        rng = np.random.default_rng(8)
        alarms, watch, size = 0, Watch(), Size(4, 1, 400.0, 1)
        for sample in 400.0 * np.exp(noise * rng.standard_normal(10_000)):
            watch, changed = watch.fold(float(sample), size)
            alarms += changed
            count = 1 if changed else min(size.count + 1, MOST_COUNTED)
            mean = float(sample) if changed else size.capacity_per_s + (float(sample) - size.capacity_per_s) / count
            size = Size(4, count, mean, 1)
        assert alarms <= 10


@pytest.mark.parametrize(
    ("option", "value"),
    [("margin", -0.1), ("eta", 0.0), ("delta", 0.5), ("length_scale", 0.0), ("noise", math.nan), ("shortfall", 0.5)],
)
def test_impossible_options_are_refused_by_name_and_value(option: str, value: float) -> None:
    with pytest.raises(InvalidValue, match=rf"{option} of policy 'dragster'.*{value}"):
        Dragster(**{option: value})  # type: ignore[arg-type]


ROWS = st.lists(
    st.tuples(st.integers(1, 60), st.floats(1e-3, 1e9), st.integers(1, MOST_COUNTED)),
    max_size=8,
    unique_by=lambda r: r[0],
)
POLICIES = st.builds(
    Dragster,
    variant=st.sampled_from(["saddle", "gradient"]),
    multipliers=st.sampled_from(["catch-up", "printed", "ignored"]),
    descends=st.booleans(),
    projection=st.sampled_from(["balanced", "euclidean"]),
    capacity=st.sampled_from(["useful", "cpu"]),
    margin=st.sampled_from([None, 0.0, 1.0]),
    length_scale=st.sampled_from([0.01, 0.2, 5.0]),
)


@settings(max_examples=200)
@given(
    POLICIES,
    st.sampled_from([word_count, diamond]),
    st.lists(ROWS, min_size=6, max_size=6),
    st.floats(0.0, 1e12),
    st.sampled_from([1e-3, 100.0, 1e9]),
    st.one_of(st.none(), st.integers(1, 60)),
    st.one_of(st.none(), st.integers(2, 40)),
    st.dictionaries(st.sampled_from(["split", "clean"]), st.floats(0.0, 1e6), max_size=2),
)
def test_never_nan_never_beyond_bounds_or_budget(
    policy: Dragster,
    make: Any,
    rows: list[Any],
    load: float,
    rate: float,
    slots: int | None,
    most: int | None,
    memo: dict[str, float],
) -> None:
    spec = make(Bounds(1, most))
    known = knowledge_of(dict(zip(spec.tunable_names, rows, strict=False)))
    here = situation(
        spec,
        window(spec, load, 2, rate),
        known,
        limits=limits_of(spec, Bounds(1, slots)),
        memo={"targets": memo, "multipliers": memo},
    )
    decision = policy.decide(here)
    assert all(math.isfinite(value) for value in decision.evidence.values())
    if decision.target is not None:
        assert slots is None or decision.target.slots <= slots
        assert all(1 <= count <= (most or count) for count in decision.target.tasks.values())
    elif slots is not None and slots < len(spec.tunable):
        assert "budget" in decision.sentence


@pytest.mark.parametrize("variant", ["saddle", "gradient"])
def test_its_knowledge_survives_a_restart_and_replays(tmp_path: Any, variant: Any) -> None:
    """A repeated load is answered at once, also by another controller."""
    url, policy = str(tmp_path / "words.db"), Dragster(variant=variant)
    fleet = Fleet(job("dragster-wordcount"), [Steps((160.5, 90.3, 160.5, 90.3), 1200)], [1])

    def controlled(until_s: float) -> tuple[int, Knowledge]:
        journal = open_journal(url)
        guards = replace(UNGUARDED, explore="live")
        controller = Controller(fleet.engine(0), policy, journal, FleetClock(fleet), guards=guards, pace=IMMEDIATE)
        controller.start()
        changes = 0
        while fleet.now < until_s:
            fleet.advance(100)
            changes += controller.step().intent is not None
        knowledge = controller.knowledge
        controller.stop()
        journal.close()
        return changes, knowledge

    first, known = controlled(2400)
    again, later = controlled(4800)
    assert again < first
    assert later.tally.windows > known.tally.windows
    journal = open_journal(url)
    assert replay(journal, "dragster-wordcount", lambda run: policy).differences == ()
    journal.close()
