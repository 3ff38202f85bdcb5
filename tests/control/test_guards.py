"""Limits before a decision, guards after it; a guard that cuts or stops says so."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rheostat.control.guards import Scene, apply_guards
from rheostat.control.limits import limits
from rheostat.errors import InvalidValue
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Reason
from rheostat.job.fit import clip
from rheostat.job.graph import Tunable
from rheostat.job.guards import UNGUARDED, FrozenPeriod, Guards
from rheostat.job.observation import Latency, SourceReading, Status
from rheostat.job.slo import SLO, Bounds, Budget, Limits
from rheostat.testing.situations import diamond, window, word_count

SPEC = word_count()


def test_limits_join_engine_and_slo() -> None:
    spec = replace(SPEC, slots_available=40)
    slo = SLO(operators={"split": Bounds(3, 500)}, job=Bounds(4, 60), budget=Budget(slots=30))
    found = limits(spec, slo)
    assert found.operators == {"split": Bounds(3, 100), "count": Bounds(1, 100)}
    assert found.slots == Bounds(4, 30)


def test_limits_are_whole_quanta() -> None:
    spec = replace(SPEC, tunable=(Tunable("split", Bounds(1, 11), 4), Tunable("count", Bounds(3, 9), 3)))
    assert limits(spec, SLO()).operators == {"split": Bounds(4, 8), "count": Bounds(3, 9)}


@pytest.mark.parametrize(
    ("slo", "says"),
    [
        (SLO(operators={"splt": Bounds()}), "did you mean 'split'"),
        (SLO(operators={"lines": Bounds()}), "'lines' cannot be tuned"),
        (SLO(operators={"split": Bounds(200)}), "operator 'split': min 200 is above max 100"),
        (SLO(job=Bounds(1, 1)), "slo.job.max allows 1 slots, but the job needs at least 2"),
        (SLO(budget=Budget(slots=1)), "slo.budget allows 1 slots"),
        (SLO(job=Bounds(8), budget=Budget(slots=6)), "at least 8"),
    ],
)
def test_impossible_limits_are_errors_that_name_them(slo: SLO, says: str) -> None:
    with pytest.raises(InvalidValue, match=says):
        limits(SPEC, slo)


@given(
    st.dictionaries(st.sampled_from(diamond().graph.operators), st.integers(1, 300), min_size=6, max_size=6),
    st.integers(6, 400),
    st.sampled_from([1, 2, 5]),
)
def test_clip_keeps_bounds_quantum_and_slots(tasks: dict[str, int], slots: int, quantum: int) -> None:
    top = max(slots, 6 * quantum)
    found = limits(diamond(Bounds(1, 100), quantum), SLO(job=Bounds(1, top)))
    cut, why = clip(Allocation(tasks), found)
    assert cut.slots <= top
    for count in cut.tasks.values():
        assert quantum <= count <= 100
        assert count % quantum == 0
    assert bool(why) == (cut.tasks != tasks)
    assert clip(cut, found) == (cut, "")


RUNNING = Allocation({"split": 4, "count": 4})
WINDOW = window(SPEC, 1000.0, 4, 600.0, at_s=1000.0)
OPEN = limits(SPEC, SLO())
OBJECTIVES = SLO(max_latency_s=5.0, max_lag_s=3.0)
LATE = {"latency": Latency(1, 1, 1, 2, 4, 9)}
CALM = {"latency": Latency(1, 1, 1, 2, 4, 4.5)}
AGED = {"sources": (SourceReading("lines", 1.0, 9.0, 4.0),)}


def after(
    tasks: dict[str, int],
    guards: Guards,
    reason: Reason = Reason.MIXED,
    allowed: Limits = OPEN,
    changed_at_s: float | None = None,
    **seen: Any,
) -> Decision:
    decision = Decision(RUNNING.with_tasks(tasks), reason, "because")
    return apply_guards(
        decision, Scene(RUNNING, replace(WINDOW, **seen), allowed, OBJECTIVES, guards, reason, changed_at_s)
    )


@pytest.mark.parametrize(
    ("tasks", "guards", "more", "left", "guard"),
    [
        ({"split": 9}, UNGUARDED, {}, {"split": 9}, None),
        ({"split": 900}, UNGUARDED, {}, {"split": 100}, "bounds"),
        (
            {"split": 9, "count": 9},
            UNGUARDED,
            {"allowed": limits(SPEC, SLO(job=Bounds(1, 12)))},
            {"split": 6, "count": 6},
            "bounds",
        ),
        ({"split": 9}, replace(UNGUARDED, max_step_up=1.5), {}, {"split": 6}, "step_size"),
        ({"split": 9}, replace(UNGUARDED, max_step_up=1.1), {}, {"split": 5}, "step_size"),
        ({"split": 1}, replace(UNGUARDED, max_step_down=0.5), {}, {"split": 2}, "step_size"),
        ({"split": 1}, replace(UNGUARDED, max_step_down=1.0), {}, {"split": 3}, "step_size"),
        ({"split": 9, "count": 1}, UNGUARDED, {"status": Status.RECOVERING}, {"split": 9}, "recovering"),
        ({"split": 1}, UNGUARDED, {"status": Status.RECOVERING}, None, "recovering"),
        (
            {"split": 1},
            replace(UNGUARDED, shrink_while_recovering=True),
            {"status": Status.RECOVERING},
            {"split": 1},
            None,
        ),
        ({"split": 9}, replace(UNGUARDED, cooldown_up_s=100), {"changed_at_s": 950.0}, None, "cool_down"),
        ({"split": 9}, replace(UNGUARDED, cooldown_up_s=100), {"changed_at_s": 900.0}, {"split": 9}, None),
        (
            {"split": 9, "count": 2},
            replace(UNGUARDED, cooldown_down_s=100),
            {"changed_at_s": 950.0},
            {"split": 9},
            "cool_down",
        ),
        (
            {"split": 9, "count": 2},
            replace(UNGUARDED, cooldown_up_s=100),
            {"changed_at_s": 950.0},
            {"count": 2},
            "cool_down",
        ),
        ({"split": 2}, replace(UNGUARDED, cooldown_up_s=100), {"changed_at_s": 950.0}, {"split": 2}, None),
        ({"split": 9}, replace(UNGUARDED, frozen=(FrozenPeriod(900, 1100),)), {}, None, "frozen"),
        ({"split": 9}, replace(UNGUARDED, frozen=(FrozenPeriod(1000.5, 1100),)), {}, {"split": 9}, None),
        ({"split": 9}, UNGUARDED, {"reason": Reason.EXPLORE}, None, "exploring"),
        ({"split": 9, "count": 2}, replace(UNGUARDED, shrink_over_slo=False), LATE, {"split": 9}, "over_slo"),
        ({"split": 9, "count": 2}, replace(UNGUARDED, shrink_over_slo=False), AGED, {"split": 9}, "over_slo"),
        ({"count": 2}, replace(UNGUARDED, shrink_over_slo=False), CALM, {"count": 2}, None),
        ({"count": 2}, UNGUARDED, LATE, {"count": 2}, None),
        ({"split": 9, "count": 2}, UNGUARDED, {"bottlenecks": ("skew",)}, {"count": 2}, "bottleneck"),
        ({"count": 2}, UNGUARDED, {"bottlenecks": ("skew",)}, {"count": 2}, None),
        ({"split": 9}, replace(UNGUARDED, dry_run=True), {}, None, "dry_run"),
        ({"split": 9}, replace(UNGUARDED, explore="live"), {"reason": Reason.EXPLORE}, {"split": 9}, None),
    ],
)
def test_what_guards_leave_of_a_decision(
    tasks: dict[str, int], guards: Guards, more: dict[str, Any], left: dict[str, int] | None, guard: str | None
) -> None:
    decision = after(tasks, guards, **more)
    assert decision.target == (None if left is None else RUNNING.with_tasks(left))
    assert [note.guard for note in decision.guards] == ([guard] if guard else [])
    if guard:
        assert decision.asked == RUNNING.with_tasks(tasks)
        assert decision.guards[0].why


def test_a_target_that_already_runs_is_hold() -> None:
    decision = after({"split": 4}, UNGUARDED)
    assert decision.target is None
    assert decision.asked == RUNNING


def test_hold_stays_hold() -> None:
    hold = Decision.hold(Reason.STEADY, "fine")
    scene = Scene(
        RUNNING, WINDOW, OPEN, OBJECTIVES, replace(UNGUARDED, frozen=(FrozenPeriod(0, 9999),)), Reason.STEADY, None
    )
    assert apply_guards(hold, scene) is hold


TASKS = st.fixed_dictionaries({"split": st.integers(1, 9), "count": st.integers(1, 9)})


@given(TASKS, TASKS, st.integers(2, 12), st.integers(2, 12), st.sampled_from(["cool", "grow", "low", "behind", "slow"]))
def test_a_guard_that_stops_half_a_change_keeps_the_jobs_bounds(
    running: dict[str, int], asked: dict[str, int], least: int, most: int, held: str
) -> None:
    """Growth that needs the slots of an operator that may not shrink waits with it, and the other way round."""
    allowed = limits(SPEC, SLO(job=Bounds(min(least, most), max(least, most))))
    now, _ = clip(Allocation(running), allowed)
    target, _ = clip(Allocation(asked), allowed)
    seen = replace(
        window(SPEC, 100.0, dict(now.tasks), 600.0, at_s=1000.0),
        status=Status.RECOVERING if held == "behind" else Status.RUNNING,
        bottlenecks=("a slow sink",) if held == "slow" else (),
    )
    guards = replace(
        UNGUARDED,
        cooldown_down_s=300.0 if held == "cool" else 0.0,
        cooldown_up_s=300.0 if held == "grow" else 0.0,
        shrink_after_s=300.0 if held == "low" else 0.0,
    )
    scene = Scene(now, seen, allowed, SLO(), guards, Reason.MIXED, changed_at_s=900.0)
    left = apply_guards(Decision(target, Reason.MIXED, ""), scene).target or now
    assert clip(left, allowed) == (left, "")
    for name, count in left.tasks.items():
        if held in ("cool", "low", "behind"):
            assert count >= now.tasks[name]
        else:
            assert count <= now.tasks[name]
