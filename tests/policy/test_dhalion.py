"""Dhalion: growth at the root of back pressure, shrinking of idle operators, and the undo."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rheostat.errors import InvalidValue
from rheostat.job.decision import Decision, Reason
from rheostat.job.frozen import from_json, to_json
from rheostat.job.observation import Observation
from rheostat.job.slo import Bounds
from rheostat.policy.dhalion import Dhalion
from rheostat.ports import Situation
from rheostat.testing.situations import diamond, limits_of, read, situation, window, word_count

WORDS = word_count()
RATES = {"lines": 1e6, "split": 100.0, "count": 250.0}


def look(load_per_s: float, split: int, count: int) -> Observation:
    return window(WORDS, load_per_s, {"split": split, "count": count}, RATES)


def at(observation: Observation, **rest: Any) -> Situation[None]:
    return situation(WORDS, observation, None, **rest)


def asked(decision: Decision) -> tuple[int, int] | None:
    return None if decision.target is None else (decision.target.tasks["split"], decision.target.tasks["count"])


def blocked(split: float | None, count: float | None, overloaded: tuple[str, ...]) -> Observation:
    """A window with ten tasks each, in which some operators blocked their upstreams."""
    observation = replace(look(500.0, 10, 10), overloaded=overloaded)
    return read(read(observation, "split", blocking_share=split), "count", blocking_share=count)


@pytest.mark.parametrize(
    ("observation", "target"),
    [
        pytest.param(blocked(0.25, 0.0, ("split",)), (14, 10), id="a quarter of the time: 4/3"),
        pytest.param(blocked(0.0, 0.5, ("count",)), (10, 20), id="half of the time: double"),
        pytest.param(blocked(0.0, 0.9, ("count",)), (10, 20), id="most of the time: still double"),
        pytest.param(blocked(0.0, 1.0, ("count",)), (10, 20), id="all the time: not infinite"),
        pytest.param(blocked(0.01, 0.0, ("split",)), (11, 10), id="hardly: one more"),
        pytest.param(blocked(0.0, 0.0, ("split",)), (11, 10), id="not at all, yet overloaded: one more"),
        pytest.param(blocked(None, None, ("split",)), (12, 10), id="not measured: the fixed factor"),
        pytest.param(blocked(0.4, 0.2, ("split", "count")), (17, 10), id="two roots: the worse one"),
        pytest.param(blocked(0.2, 0.2, ("split", "count")), (10, 13), id="a tie: the most downstream"),
        pytest.param(blocked(None, None, ("count", "split")), (10, 12), id="none measured: the most downstream"),
        pytest.param(blocked(0.2, 0.0, ("lines", "split")), (13, 10), id="the pinned one is passed over"),
    ],
)
def test_the_root_of_back_pressure_grows(observation: Observation, target: tuple[int, int]) -> None:
    decision = Dhalion().decide(at(observation))
    assert asked(decision) == target
    assert decision.reason is Reason.UNDER_PROVISIONED


def test_a_pinned_root_is_named_and_nothing_is_done() -> None:
    decision = Dhalion().decide(at(blocked(0.0, 0.0, ("lines",))))
    assert decision.target is None
    assert decision.reason is Reason.UNDER_PROVISIONED
    assert "lines" in decision.sentence
    assert "one partition" in decision.sentence


@pytest.mark.parametrize("slots", [Bounds(), Bounds(1, 20)], ids=["its own bound", "the job's slots"])
def test_a_root_at_its_limit_is_named(slots: Bounds) -> None:
    spec = word_count(Bounds(1, 10)) if slots.max is None else WORDS
    decision = Dhalion().decide(at(blocked(0.5, 0.0, ("split",)), limits=limits_of(spec, slots)))
    assert decision.target is None
    assert "limits keep it at 10" in decision.sentence


@pytest.mark.parametrize(
    ("observation", "enough"),
    [
        (blocked(0.5, 0.0, ("split",)), True),
        (blocked(0.9, 0.0, ("split",)), False),
        (blocked(None, 0.0, ("split",)), False),
    ],
    ids=["x2 is enough", "x10 is cut to x2", "unknown"],
)
def test_it_expects_to_keep_up_only_if_the_factor_is_enough(observation: Observation, enough: bool) -> None:
    expects = Dhalion().decide(at(observation)).expects
    assert expects.load_per_s == 500.0
    assert (expects.throughput_per_s is not None) is enough


def idle(**readings: Any) -> Observation:
    """Ten tasks each: split is busy half of the time, count almost always."""
    observation = read(look(500.0, 10, 10), "split", **({"useful_share": 0.5, "pending": 0.0} | readings))
    return read(observation, "count", useful_share=0.95)


@pytest.mark.parametrize(
    ("policy", "observation", "target"),
    [
        pytest.param(Dhalion(), idle(), (8, 10), id="empty queue, half idle"),
        pytest.param(Dhalion(scale_down=0.5), idle(), (5, 10), id="another factor"),
        pytest.param(Dhalion(scale_down=1.0), idle(), (9, 10), id="at least one task"),
        pytest.param(Dhalion(), idle(pending=24.0), (8, 10), id="nearly empty queue: 24 of 25"),
        pytest.param(Dhalion(), idle(pending=26.0), None, id="records are pending"),
        pytest.param(Dhalion(), idle(useful_share=0.8), None, id="busy enough"),
        pytest.param(
            Dhalion(idle_below=None), idle(useful_share=0.8), (8, 10), id="as published: only pending records"
        ),
        pytest.param(Dhalion(), idle(pending=None), (8, 10), id="pending records not measured"),
        pytest.param(Dhalion(), idle(useful_share=None), (8, 10), id="useful time not measured"),
        pytest.param(Dhalion(), idle(pending=None, useful_share=None), None, id="neither measured"),
        pytest.param(Dhalion(idle_below=None), idle(pending=None), None, id="as published, not measured"),
    ],
)
def test_without_back_pressure_an_idle_operator_shrinks(
    policy: Dhalion, observation: Observation, target: tuple[int, int] | None
) -> None:
    if policy.idle_below is None:
        observation = read(observation, "count", pending=1e9)
    decision = policy.decide(at(observation))
    assert asked(decision) == target
    assert decision.reason is (Reason.STEADY if target is None else Reason.OVER_PROVISIONED)


def test_one_operator_shrinks_at_a_time_the_idlest_first() -> None:
    both = read(idle(useful_share=0.5), "count", useful_share=0.3)
    assert asked(Dhalion().decide(at(both))) == (10, 8)


def test_an_idle_operator_at_its_minimum_is_skipped_for_the_next() -> None:
    observation = look(10.0, 1, 10)
    assert observation.operator("split").useful_share == pytest.approx(0.1)
    assert asked(Dhalion().decide(at(observation))) == (1, 8)
    decision = Dhalion().decide(at(look(1.0, 1, 1)))
    assert decision.target is None
    assert "cannot shrink" in decision.sentence


class TestUndo:
    """A scale-down that causes back pressure is undone, and not repeated at that load."""

    def after(self, decision: Decision) -> Any:
        return from_json(Decision, to_json(decision)).memo

    def shrunk(self) -> Decision:
        # 195/s: count 5 x 250 = 1250 >= 975 words, 78 % busy; split 3 x 100, 65 % busy.
        decision = Dhalion().decide(at(look(195.0, 3, 5)))
        assert asked(decision) == (2, 5)
        return decision

    def test_back_pressure_after_a_scale_down_undoes_it_at_once(self) -> None:
        pressed = look(205.0, 2, 5)
        assert pressed.overloaded == ("split",)
        decision = Dhalion().decide(at(pressed, memo=self.after(self.shrunk())))
        assert decision.reason is Reason.UNDO
        assert asked(decision) == (3, 5)

    def test_the_size_that_failed_is_barred_until_the_load_has_clearly_fallen(self) -> None:
        undone = Dhalion().decide(at(look(205.0, 2, 5), memo=self.after(self.shrunk())))
        again = Dhalion().decide(at(look(195.0, 3, 5), memo=self.after(undone)))
        assert again.target is None
        still = Dhalion().decide(at(look(186.0, 3, 5), memo=self.after(again)))
        assert still.target is None
        lower = Dhalion().decide(at(look(184.0, 3, 5), memo=self.after(still)))  # 205 minus 10 % is 184.5
        assert asked(lower) == (2, 5)

    def test_sizes_above_a_barred_one_are_allowed(self) -> None:
        memo = {"shrunk": {}, "barred": [{"operator": "split", "tasks": 8, "load_per_s": 500.0}]}
        assert asked(Dhalion().decide(at(idle(), memo=memo))) == (9, 10)

    def test_back_pressure_at_a_clearly_higher_load_is_not_attributed_to_it(self) -> None:
        decision = Dhalion().decide(at(look(240.0, 2, 5), memo=self.after(self.shrunk())))
        assert decision.reason is Reason.UNDER_PROVISIONED

    def test_back_pressure_of_another_operator_is_not_attributed_to_it(self) -> None:
        pressed = replace(look(195.0, 2, 5), overloaded=("count",))
        decision = Dhalion().decide(at(pressed, memo=self.after(self.shrunk())))
        assert decision.reason is Reason.UNDER_PROVISIONED
        assert asked(decision) == (2, 6)

    def test_a_scale_down_that_a_guard_stopped_is_not_undone(self) -> None:
        pressed = replace(look(195.0, 3, 5), overloaded=("split",))
        decision = Dhalion().decide(at(pressed, memo=self.after(self.shrunk())))
        assert decision.reason is Reason.UNDER_PROVISIONED
        assert decision.memo["barred"] == ()


def test_it_comes_to_rest_on_a_steady_load() -> None:
    policy, memo, tasks = Dhalion(), {}, (1, 1)  # type: ignore[var-annotated]
    for _ in range(40):
        decision = policy.decide(at(look(1000.0, *tasks), memo=memo))
        memo, tasks = dict(decision.memo), asked(decision) or tasks
    assert decision.target is None
    assert tasks[0] * 100.0 >= 1000.0
    assert tasks[1] * 250.0 >= 5000.0


@pytest.mark.parametrize(
    ("option", "value"),
    [("scale_up", 0.9), ("max_scale_up", 0.5), ("scale_down", 1.1), ("idle_pending_s", -1), ("idle_below", 2.0)],
)
def test_impossible_options_are_refused_by_name_and_value(option: str, value: float) -> None:
    with pytest.raises(InvalidValue, match=rf"{option} of policy 'dhalion'.*{value}"):
        Dhalion(**{option: value})


DIAMOND = diamond(Bounds(1, 60), 2)
tasks_of = st.fixed_dictionaries({name: st.integers(1, 60) for name in DIAMOND.graph.operators})


@given(st.floats(0, 1e6), tasks_of, st.integers(12, 400))
def test_one_operator_changes_at_a_time_unless_the_limits_have_moved(
    load_per_s: float, running: dict[str, int], slots: int
) -> None:
    running = {name: count + count % 2 for name, count in running.items()}
    limits = limits_of(DIAMOND, Bounds(1, max(slots, sum(running.values()))))
    here = situation(DIAMOND, window(DIAMOND, load_per_s, running, 50.0), None, limits=limits)
    decision = Dhalion().decide(here)
    if decision.target is not None:
        changed = [name for name in running if decision.target.tasks[name] != running[name]]
        assert len(changed) == 1
        assert decision.target.tasks[changed[0]] % 2 == 0
