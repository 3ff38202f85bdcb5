"""ContTune: Algorithm 1 and 2 step by step, and its edge cases."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rheostat.control.controller import IMMEDIATE, Controller
from rheostat.control.replay import replay
from rheostat.engine.simulated import Fleet, FleetClock
from rheostat.engine.testbed.loads import Steps
from rheostat.errors import InvalidValue
from rheostat.job.decision import Decision, Reason
from rheostat.job.observation import Observation
from rheostat.job.slo import SLO, Bounds
from rheostat.journal import open_journal
from rheostat.lab.jobs import job
from rheostat.model.capacity import Sample
from rheostat.model.history import History
from rheostat.policy.conttune.big_ds2 import BigDS2
from rheostat.policy.conttune.policy import ContTune
from rheostat.policy.ds2 import DS2
from rheostat.ports import Situation
from rheostat.testing.situations import limits_of, read, situation, window, word_count

WORDS = word_count()
RATES = {"lines": 1e6, "split": 100.0, "count": 250.0}
WITHOUT_BIG = ContTune(big=False)
"""The demand from the sources is used at once."""


def history(**operators: Mapping[int, float | Sequence[float]]) -> History:
    """Return a history: operator -> size -> capacity, once or several times."""
    result: dict[str, tuple[Sample, ...]] = {}
    for name, sizes in operators.items():
        rows = [(p, a) for p, each in sizes.items() for a in (each if isinstance(each, Sequence) else [each])]
        result[name] = tuple(Sample(p, a, k) for k, (p, a) in enumerate(rows))
    return History(result, {name: max(s.tasks for s in samples) for name, samples in result.items()}, 100)


def at(load_per_s: float, tasks: Any = 4, known: History | None = None, **rest: Any) -> Situation[History]:
    spec = rest.pop("spec", WORDS)
    return situation(spec, window(spec, load_per_s, tasks, RATES), known or History(), **rest)


def asked(decision: Decision) -> dict[str, int] | None:
    return None if decision.target is None else dict(decision.target.tasks)


class TestBig:
    """Binary lifting, Algorithm 1."""

    def test_back_pressure_lifts_every_operator_to_the_largest_observed_size(self) -> None:
        known = history(split={2: 200.0, 16: 1500.0}, count={2: 500.0})
        decision = ContTune().decide(at(1000.0, 2, known))
        assert asked(decision) == {"split": 16, "count": 16}
        assert decision.reason is Reason.UNDER_PROVISIONED
        assert "(Big)" in decision.sentence

    def test_it_doubles_when_all_operators_have_it(self) -> None:
        assert asked(ContTune().decide(at(1000.0, 4))) == {"split": 8, "count": 8}

    def test_a_bound_below_p_max_does_not_prevent_doubling(self) -> None:
        spec = replace(WORDS, tunable=(WORDS.tunable[0], replace(WORDS.tunable[1], bounds=Bounds(1, 3))))
        decision = ContTune().decide(at(1e5, {"split": 4, "count": 3}, spec=spec))
        assert asked(decision) == {"split": 8, "count": 3}

    def test_at_all_bounds_it_holds_and_names_the_root(self) -> None:
        spec = word_count(Bounds(1, 4))
        decision = ContTune().decide(at(1e5, 4, spec=spec))
        assert decision.target is None
        assert decision.reason is Reason.UNDER_PROVISIONED
        assert "back pressure at count" in decision.sentence

    def test_back_pressure_that_starts_at_a_pinned_operator_is_named(self) -> None:
        observed = replace(window(WORDS, 100.0, 4, RATES), overloaded=("lines",))
        decision = ContTune().decide(situation(WORDS, observed, History()))
        assert decision.target is None
        assert "lines, which cannot be scaled" in decision.sentence

    def test_without_big_the_demand_of_the_sources_is_used_at_once(self) -> None:
        assert asked(WITHOUT_BIG.decide(at(1000.0, 4))) == asked(DS2().decide(at(1000.0, 4)))  # type: ignore[arg-type]

    def test_after_big_small_never_exceeds_p_max(self) -> None:
        known = history(split={8: 300.0}, count={8: 900.0})
        wanted = ContTune().decide(at(100.0, 8, known))
        assert wanted.reason is Reason.OVER_PROVISIONED
        # By the history 8 are too few, yet there is no back pressure: p_max is the bound of Eq 2.
        beyond = ContTune().decide(at(390.0, {"split": 8, "count": 8}, known))
        assert all(tasks <= 8 for tasks in (asked(beyond) or {}).values())


class TestSmall:
    """Conservative Bayesian optimisation, Algorithm 2."""

    KNOWN = history(split={2: 200.0, 5: 480.0, 8: 740.0, 11: 980.0}, count={5: 1250.0, 10: 2450.0, 20: 4600.0})

    def test_near_a_sample_the_smallest_sufficient_size_is_suggested(self) -> None:
        decision = WITHOUT_BIG.decide(at(600.0, {"split": 11, "count": 20}, self.KNOWN))
        wanted = asked(decision)
        assert wanted is not None
        assert wanted["split"] == 7  # 100 records per task would give 6: the curve bends
        assert decision.evidence["split.distance"] == 1.0

    def test_far_from_the_samples_ds2_is_used(self) -> None:
        decision = WITHOUT_BIG.decide(at(3000.0, {"split": 11, "count": 20}, self.KNOWN))
        wanted = asked(decision)
        assert wanted is not None
        assert wanted["split"] == 30
        assert "explores split" in decision.sentence

    def test_with_alpha_0_only_sampled_sizes_come_from_the_model(self) -> None:
        near = replace(WITHOUT_BIG, alpha=0.0, bracket=False).suggestion
        view = WITHOUT_BIG.view(at(600.0, {"split": 11, "count": 20}, self.KNOWN), "split")
        assert near(view, 740.0).trusted
        assert near(view, 740.0).tasks == 8
        assert not near(view, 600.0).trusted
        assert near(view, 600.0).tasks == 6.0

    def test_cei_weighs_a_smaller_size_against_the_risk(self) -> None:
        situation_ = at(700.0, {"split": 11, "count": 20}, self.KNOWN)
        view = WITHOUT_BIG.view(situation_, "split")
        cei = replace(WITHOUT_BIG, acquisition="cei")
        assert cei.acquire(view, 735.0) == 8
        assert (cei.acquire(view, 735.0) or 0) <= (WITHOUT_BIG.acquire(view, 735.0) or 0)
        assert cei.acquire(view, 1e9) is None

    def test_the_headroom_of_the_slo_is_added_to_the_demand(self) -> None:
        known = history(split={4: 400.0, 8: 800.0}, count={10: 2500.0, 20: 5000.0})
        wanted = asked(WITHOUT_BIG.decide(at(400.0, {"split": 8, "count": 20}, known, slo=SLO(headroom=0.5))))
        assert wanted is not None
        assert wanted["split"] == 6

    @pytest.mark.parametrize(("split", "count", "wanted"), [(101.0, 111.0, (6, 5)), (111.0, 101.0, (5, 6))])
    def test_equal_sizes_in_an_odd_budget_favour_the_scarcer_one(
        self, split: float, count: float, wanted: tuple[int, int]
    ) -> None:
        """Both need eight tasks for 800/s; the one that fills them to the last gets the odd slot."""
        each = {"split": split, "count": 5 * count}
        known = history(**{name: {p: p * rate for p in (6, 7, 8, 9)} for name, rate in each.items()})
        limits = limits_of(WORDS, Bounds(1, 11))
        decision = WITHOUT_BIG.decide(at(800.0, {"split": 4, "count": 4}, known, limits=limits))
        assert tuple((asked(decision) or {}).values()) == wanted

    def test_a_change_that_changes_nothing_is_skipped_and_ends_the_tuning(self) -> None:
        known = history(split={4: 400.0}, count={8: 2000.0})
        decision = WITHOUT_BIG.decide(at(400.0, {"split": 4, "count": 8}, known))
        assert decision.target is None
        assert decision.reason is Reason.STEADY
        assert decision.memo["tuning"]["open"] is False


class TestTuning:
    """From a change of load to the right size."""

    KNOWN = TestSmall.KNOWN

    def step(
        self, before: Decision | None, load: float, tasks: Any, policy: ContTune = WITHOUT_BIG, **rest: Any
    ) -> Decision:
        memo = {} if before is None else before.memo
        return policy.decide(at(load, tasks, self.KNOWN, memo=memo, **rest))

    def test_exploitation_ends_after_one_change_without_back_pressure(self) -> None:
        first = self.step(None, 400.0, {"split": 11, "count": 20})
        assert asked(first) is not None
        done = self.step(first, 400.0, asked(first), changed_at_s=70.0)
        assert done.target is None
        assert done.sentence.endswith("the tuning ends")
        idle = self.step(done, 404.0, asked(first), changed_at_s=70.0)
        assert "is tuned for" in idle.sentence

    def test_refining_continues_until_nothing_changes(self) -> None:
        first = self.step(None, 400.0, {"split": 11, "count": 20}, replace(WITHOUT_BIG, refine=True))
        again = self.step(first, 400.0, asked(first), replace(WITHOUT_BIG, refine=True), changed_at_s=70.0)
        assert "nothing changes" in again.sentence

    def test_exploration_continues_until_it_suggests_the_running_size(self) -> None:
        first = self.step(None, 3000.0, {"split": 11, "count": 20})
        again = self.step(first, 3000.0, {"split": 31, "count": 61}, changed_at_s=70.0)
        assert asked(again) == {"split": 30, "count": 60}

    def test_back_pressure_in_small_leads_to_small_again_not_to_big(self) -> None:
        first = self.step(None, 400.0, {"split": 11, "count": 20}, ContTune())
        again = self.step(first, 405.0, {"split": 4, "count": 9}, ContTune(), changed_at_s=70.0)
        assert again.reason is Reason.UNDER_PROVISIONED
        assert "(Big)" not in again.sentence

    def test_a_change_that_a_guard_stopped_does_not_end_the_tuning(self) -> None:
        first = self.step(None, 400.0, {"split": 11, "count": 20})
        again = self.step(first, 400.0, {"split": 11, "count": 20})
        assert asked(again) == asked(first)

    @pytest.mark.parametrize(("load", "begins"), [(404.0, False), (396.0, False), (440.0, True), (360.0, True)])
    def test_a_load_that_moves_enough_begins_the_next(self, load: float, begins: bool) -> None:
        first = self.step(None, 400.0, {"split": 11, "count": 20})
        done = self.step(first, 400.0, {"split": 5, "count": 8}, changed_at_s=70.0)
        after = self.step(done, load, {"split": 5, "count": 10}, changed_at_s=70.0)
        assert ("is tuned for" not in after.sentence) is begins

    def test_back_pressure_begins_the_next_at_the_same_load(self) -> None:
        first = self.step(None, 400.0, {"split": 11, "count": 20})
        done = self.step(first, 400.0, {"split": 5, "count": 9}, changed_at_s=70.0)
        assert done.target is None
        after = self.step(done, 400.0, {"split": 3, "count": 9}, ContTune(), changed_at_s=70.0)
        assert "(Big)" in after.sentence

    @pytest.mark.parametrize("model", ["gp", "loglog"])
    def test_a_selectivity_that_alternates_does_not_restart_the_tuning(self, model: Any) -> None:
        policy = replace(WITHOUT_BIG, model=model)
        decision, tasks, sentences, changed_at_s = None, {"split": 11, "count": 20}, [], 0.0
        for k in range(20):
            words = 1.06 if k % 2 else 1.0
            decision = policy.decide(alternated(400.0, tasks, words, self.KNOWN, decision, changed_at_s))
            sentences.append(decision.sentence)
            if decision.target is not None:
                tasks, changed_at_s = dict(decision.target.tasks), changed_at_s + 60.0
        assert all("is tuned for" in sentence for sentence in sentences[6:])
        assert tasks["count"] >= 9, "enough for the larger selectivity"

    def test_a_selectivity_that_falls_and_stays_begins_the_next(self) -> None:
        decision, tasks = None, {"split": 11, "count": 20}
        for k in range(12):
            decision = WITHOUT_BIG.decide(
                alternated(400.0, tasks, 1.0 if k < 6 else 0.6, self.KNOWN, decision, 60.0 * k)
            )
            tasks = asked(decision) or tasks
        assert tasks["count"] <= 6


def alternated(
    load: float, tasks: Mapping[str, int], words: float, known: History, before: Decision | None, changed_at_s: float
) -> Situation[History]:
    """Return a situation in which a line has this many times its usual words."""
    observed = window(WORDS, load, tasks, RATES)
    edges = tuple(
        replace(edge, records_per_s=words * (edge.records_per_s or 0.0)) if edge.downstream == "count" else edge
        for edge in observed.edges
    )
    memo = {} if before is None else before.memo
    return situation(WORDS, replace(observed, edges=edges), known, memo=memo, changed_at_s=changed_at_s)


class TestEdges:
    def test_no_history_is_ds2(self) -> None:
        assert asked(WITHOUT_BIG.decide(at(1000.0))) == {"split": 10, "count": 20}

    @pytest.mark.parametrize("model", ["gp", "loglog"])
    @pytest.mark.parametrize("known", [{4: 400.0}, {4: [400.0, 410.0, 390.0]}], ids=["one sample", "all at one size"])
    def test_little_history_is_enough(self, model: Any, known: dict[int, Any]) -> None:
        policy = replace(WITHOUT_BIG, model=model)
        wanted = asked(policy.decide(at(350.0, {"split": 4, "count": 8}, history(split=known, count={8: 2000.0}))))
        assert wanted is None or 2 <= wanted["split"] <= 4

    @pytest.mark.parametrize("model", ["gp", "loglog"])
    def test_sizes_with_falling_capacity_are_avoided(self, model: Any) -> None:
        falling = {4: [400.0, 400.0], 8: [500.0, 505.0], 16: [300.0, 295.0]}
        known = history(split=falling, count={20: 5000.0})
        policy = replace(WITHOUT_BIG, model=model)
        wanted = asked(policy.decide(at(900.0, {"split": 16, "count": 20}, known)))
        assert wanted is not None
        assert 6 <= wanted["split"] <= 8
        assert 9 <= wanted["count"] <= 12  # 8 splits serve 500 lines, 2500 words

    def test_an_operator_at_its_bound_is_named_and_the_others_are_sized_for_it(self) -> None:
        spec = replace(WORDS, tunable=(WORDS.tunable[0], replace(WORDS.tunable[1], bounds=Bounds(1, 8))))
        decision = WITHOUT_BIG.decide(at(1000.0, {"split": 4, "count": 8}, spec=spec))
        assert asked(decision) is None  # 8 counts serve 400 lines, and so do 4 splits
        assert "with its maximum of 8 tasks count serves 40% of the demand" in decision.sentence
        assert decision.expects.throughput_per_s is not None
        assert decision.expects.throughput_per_s.low == pytest.approx(0.99 * 400.0)
        more = WITHOUT_BIG.decide(at(1000.0, {"split": 20, "count": 8}, spec=spec))
        assert asked(more) == {"split": 4, "count": 8}

    def test_a_demand_above_every_sample_gets_at_least_the_largest_useful_size(self) -> None:
        known = history(split={2: 300.0, 20: 1000.0}, count={20: 5000.0})
        # One task of a small job is fast: DS2 would suggest 10, fewer than the 20 that were too few.
        observed = read(window(WORDS, 1500.0, {"split": 2, "count": 20}, RATES), "split", true_rate_per_s=150.0)
        wanted = asked(replace(WITHOUT_BIG, model="loglog").decide(situation(WORDS, observed, known)))
        assert wanted is not None
        assert wanted["split"] > 20

    def test_without_demand_it_uses_the_minimum(self) -> None:
        spec = word_count(Bounds(2, 100))
        assert asked(WITHOUT_BIG.decide(at(0.0, 8, TestSmall.KNOWN, spec=spec))) == {"split": 2, "count": 2}

    def test_bounds_that_shrank_since_the_samples_apply(self) -> None:
        known = history(split={40: 4000.0, 50: 5000.0}, count={50: 12500.0})
        spec = word_count(Bounds(3, 10))
        for policy in (WITHOUT_BIG, ContTune()):
            wanted = asked(policy.decide(at(4000.0, 5, known, spec=spec)))
            assert wanted is not None
            assert all(3 <= tasks <= 10 for tasks in wanted.values())

    def test_an_operator_without_history_beside_one_with(self) -> None:
        wanted = asked(WITHOUT_BIG.decide(at(600.0, {"split": 11, "count": 4}, history(split={5: 480.0, 8: 740.0}))))
        assert wanted == {"split": 7, "count": 12}

    def test_an_operator_that_processed_nothing_is_sized_from_its_history(self) -> None:
        observed = read(window(WORDS, 600.0, 8, RATES), "count", records_in_per_s=0.0, true_rate_per_s=None)
        wanted = asked(WITHOUT_BIG.decide(situation(WORDS, observed, TestSmall.KNOWN)))
        assert wanted is not None
        assert 10 < wanted["count"] <= 14

    def test_a_memo_of_another_graph_is_ignored(self) -> None:
        decision = WITHOUT_BIG.decide(at(400.0, 4, memo={"tuning": {"demand": {"other": 5.0}, "open": False}}))
        assert decision.target is not None


@pytest.mark.parametrize(
    ("option", "value"), [("alpha", -1.0), ("alpha", math.nan), ("trigger", -0.1), ("trigger", math.inf)]
)
def test_impossible_options_are_refused_by_name_and_value(option: str, value: float) -> None:
    with pytest.raises(InvalidValue, match=rf"{option} of policy 'conttune'.*{value}"):
        ContTune(**{option: value})  # type: ignore[arg-type]


SIZES = st.dictionaries(st.integers(1, 60), st.lists(st.floats(1.0, 1e6), min_size=1, max_size=3), max_size=8)
HISTORIES = st.builds(
    lambda split, count: history(**{n: s for n, s in (("split", split), ("count", count)) if s}), SIZES, SIZES
)
POLICIES = st.builds(
    ContTune,
    alpha=st.sampled_from([0.0, 3.0, math.inf]),
    model=st.sampled_from(["gp", "loglog"]),
    big=st.booleans(),
)
TASKS = st.fixed_dictionaries({"split": st.integers(2, 40), "count": st.integers(2, 40)})
LOADS = st.floats(0.0, 1e7)


@settings(max_examples=150)
@given(POLICIES, HISTORIES, TASKS, LOADS, st.integers(2, 60), st.sampled_from(["mean", "cei"]))
def test_never_outside_bounds_and_never_nan(
    policy: ContTune, known: History, tasks: dict[str, int], load: float, most: int, acquisition: Any
) -> None:
    spec = word_count(Bounds(2, most))
    decision = replace(policy, acquisition=acquisition).decide(at(load, tasks, known, spec=spec))
    assert all(not math.isnan(value) for value in decision.evidence.values())
    for count in (asked(decision) or {}).values():
        assert 2 <= count <= most


@settings(max_examples=200)
@given(POLICIES, HISTORIES, TASKS, LOADS, LOADS, st.sampled_from([None, 12, 50]), st.sampled_from(["mean", "cei"]))
def test_more_demand_never_gets_fewer_tasks(
    policy: ContTune, known: History, tasks: dict[str, int], one: float, other: float, most: int | None, way: Any
) -> None:
    policy = replace(policy, acquisition=way)
    less, more = sorted((one, other))
    tasks = {name: min(count, most or count) for name, count in tasks.items()}
    spec = word_count(Bounds(1, most))
    few, many = (asked(policy.decide(at(load, tasks, known, spec=spec))) or tasks for load in (less, more))
    assert all(few[name] <= many[name] for name in tasks)


def test_eq_4_is_not_monotone_by_itself() -> None:
    """One sample with a wide posterior: as the demand grows, Eq 4 bets on ever fewer tasks."""
    known, tasks = history(split={10: 818.0}, count={40: 9500.0}), {"split": 7, "count": 40}

    def split(policy: ContTune, load: float) -> int:
        return (asked(policy.decide(at(load, tasks, known))) or tasks)["split"]

    ours = replace(WITHOUT_BIG, acquisition="cei", alpha=math.inf)
    literal = replace(ours, bracket=False)
    assert split(literal, 915.0) > split(literal, 1171.0)
    assert split(ours, 915.0) <= split(ours, 1171.0)


def test_the_bracket_matters() -> None:
    known = history(split={1: 150.0, 10: 1000.0}, count={20: 5000.0})
    observed = {load: read(window(WORDS, load, {"split": 1, "count": 20}, RATES), "split", true_rate_per_s=150.0)
            for load in (990.0, 1100.0)}  # fmt: skip

    def split(policy: ContTune, window_: Observation) -> int:
        return (asked(policy.decide(situation(WORDS, window_, known))) or {})["split"]

    as_published = replace(WITHOUT_BIG, bracket=False)
    assert split(as_published, observed[990.0]) == 10
    assert split(as_published, observed[1100.0]) == 8  # 1100 / 150, although 10 were too few
    assert split(WITHOUT_BIG, observed[1100.0]) >= 10


class TestBigDS2:
    POLICY = BigDS2(ignore_single_decrease=False)

    def test_big_comes_first_then_ds2_until_it_suggests_the_running_size(self) -> None:
        first = self.POLICY.decide(at(600.0, 2, history(split={16: 1600.0})))
        assert asked(first) == {"split": 16, "count": 16}
        second = self.POLICY.decide(at(600.0, 16, history(split={16: 1600.0}), memo=first.memo, changed_at_s=70.0))
        assert asked(second) == {"split": 6, "count": 12}
        # Once DS2 has begun it resolves back pressure itself.
        third = self.POLICY.decide(at(620.0, {"split": 6, "count": 12}, memo=second.memo, changed_at_s=130.0))
        assert asked(third) == {"split": 7, "count": 13}
        done = self.POLICY.decide(at(620.0, {"split": 7, "count": 13}, memo=third.memo, changed_at_s=190.0))
        assert done.target is None
        idle = self.POLICY.decide(at(620.0, {"split": 7, "count": 13}, memo=done.memo, changed_at_s=190.0))
        assert "is tuned for" in idle.sentence

    def test_an_impossible_trigger_is_refused(self) -> None:
        with pytest.raises(InvalidValue, match="trigger of policy 'big-ds2'"):
            BigDS2(trigger=-1.0)


@pytest.mark.parametrize("model", ["gp", "loglog"])
def test_its_history_survives_a_restart_and_replays(tmp_path: Any, model: Any) -> None:
    """Learned before the restart, used after it: the second time a level comes, one change is enough."""
    url, policy = str(tmp_path / "words.db"), ContTune(big=False, model=model)
    fleet = Fleet(job("q1"), [Steps((2.0, 8.0, 2.0, 8.0), 900)], [1])

    def controlled(until_s: float) -> tuple[int, History]:
        journal = open_journal(url)
        controller = Controller(fleet.engine(0), policy, journal, FleetClock(fleet), pace=IMMEDIATE)
        controller.start()
        changes = 0
        while fleet.now < until_s:
            fleet.advance(60)
            changes += controller.step().intent is not None
        knowledge = controller.knowledge
        controller.stop()
        journal.close()
        return changes, knowledge

    first, known = controlled(1800)
    again, later = controlled(3600)
    assert 0 < again <= 3 <= first
    assert later.windows > known.windows
    sizes = {s.tasks for s in known.samples("mapper")}
    assert sizes <= {s.tasks for s in later.samples("mapper")}
    journal = open_journal(url)
    assert replay(journal, "q1", lambda run: policy).differences == ()
    journal.close()
    assert np.isfinite([s.capacity_per_s for s in later.samples("mapper")]).all()


class TestOurModel:
    """`model=loglog`: failed sizes, and a margin."""

    POLICY = replace(WITHOUT_BIG, model="loglog")
    KNOWN = history(split={4: [400.0, 402.0], 8: [800.0, 801.0], 12: [1190.0, 1205.0]}, count={40: [1e4, 1e4]})

    def step(self, load: float, split: int, memo: Any = None, done: float | None = None) -> Decision:
        observed = window(WORDS, load, {"split": split, "count": 40}, RATES)
        if done is not None:
            observed = replace(read(observed, "lines", records_in_per_s=done), overloaded=("split",))
        return self.POLICY.decide(situation(WORDS, observed, self.KNOWN, memo=memo or {}))

    def test_a_size_that_failed_is_not_suggested_until_the_load_has_fallen(self) -> None:
        failed = self.step(700.0, 8, done=650.0)
        assert (asked(failed) or {})["split"] > 8
        again = self.step(690.0, 12, failed.memo)
        assert (asked(again) or {"split": 12})["split"] > 8
        assert again.memo["failed"]["split"] == (8, 700.0)
        lower = self.step(600.0, 12, again.memo)
        assert "split" not in lower.memo["failed"]
        back = self.step(700.0, 12, lower.memo)
        assert (asked(back) or {})["split"] <= 8

    def test_a_job_that_works_off_a_backlog_has_not_failed(self) -> None:
        assert self.step(700.0, 8, done=800.0).memo["failed"] == {}

    def test_a_smaller_size_that_fails_later_does_not_hide_a_larger_one(self) -> None:
        failed = self.step(700.0, 8, done=650.0)
        assert self.step(705.0, 6, failed.memo, done=600.0).memo["failed"]["split"] == (8, 700.0)

    def test_a_size_whose_mean_just_suffices_gets_a_margin_and_the_headroom_counts_towards_it(self) -> None:
        tight, roomy = (
            self.POLICY.suggestion(self.POLICY.view(at(795.0, {"split": 12, "count": 40}, self.KNOWN), "split"), *each)
            for each in ((795.0, math.inf, 1.0), (662.5, math.inf, 1.2))
        )
        assert tight.tasks > 8
        assert 7 < roomy.tasks <= 8
