"""The pure half of the loop: what follows from the records, and nothing else.

    observation -> inspect -> settle -> judge -> decide -> guard      = think

The controller (`controller.py`) thinks about a live engine, `replay.py` about a journal; both come to the same
decisions because everything that a decision depends on is in the arguments.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from rheostat.control import recovery
from rheostat.control.guards import Scene, Stability, apply_guards, fold_stability
from rheostat.control.limits import limits
from rheostat.errors import InvalidValue, PolicyError, describe
from rheostat.forecast.loads import Loads
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Interval, Measurement, Outcome, Reason, Verdict
from rheostat.job.fit import clip
from rheostat.job.forecast import Forecast, ForecastChoice
from rheostat.job.frozen import FrozenMap, freeze, put, readable, to_json
from rheostat.job.graph import JobSpec
from rheostat.job.guards import Guards
from rheostat.job.observation import Change, Observation, Status, mark_problem
from rheostat.job.record import Ending, Intent, IntentEnd, Record, Run
from rheostat.job.slo import SLO, Limits
from rheostat.model.downtime import drilled_kind
from rheostat.ports import Policy, Situation

K = TypeVar("K")

LOAD_TOLERANCE = 1.05
"""A load up to 5 % above the expected one does not excuse a missed expectation."""


@dataclass(frozen=True, slots=True)
class Awaiting:
    """An applied decision that has not been judged yet."""

    step: int
    decision: Decision
    since_s: float
    downtime_s: float | None


@dataclass(frozen=True, slots=True)
class State:
    """What the loop must remember between two steps; a fold over the journal."""

    step: int = 0
    memo: Mapping[str, Any] = field(default_factory=FrozenMap)
    asked: Allocation | None = None
    applied: Allocation | None = None
    changed_at_s: float | None = None
    last_at_s: float = -math.inf
    last_end_s: float = -math.inf
    """Moment and end of the last window that was not blind: a window that ends earlier is stale, unless the clock was
    set back in between."""
    open: Intent | None = None
    decided: Decision | None = None
    """The decision behind the open intent."""
    awaiting: Awaiting | None = None
    policy: str = ""
    loads: Loads | None = None
    """The load so far, where it is forecast."""
    choice: ForecastChoice | None = None
    forecast: Forecast | None = None
    recoveries: recovery.Recoveries | None = None
    """What the recovery-time objective is computed from, where there is one."""
    spec: JobSpec | None = None
    """The job's description, where one of these needs it."""
    stability: Stability = Stability()
    """What the guards against restless changes look at."""

    def __post_init__(self) -> None:
        if not isinstance(self.memo, FrozenMap):  # of a snapshot: the types of its parts are not declared
            put(self, memo=freeze(self.memo))


def identity(policy: str, options: Mapping[str, Any]) -> str:
    """Return the identity of a policy: memo and knowledge of one mean nothing to another."""
    return f"{policy} {to_json(options)}"


def advance(state: State, record: Record) -> State:
    """Fold one record into the state."""
    stability = fold_stability(state.stability, record)
    if stability is not state.stability:
        state = replace(state, stability=stability)
    if state.recoveries is not None:
        state = replace(state, recoveries=recovery.fold(state.recoveries, record, state.spec))
    match record:
        case Measurement() if state.recoveries is None and drilled_kind(record):
            # A drill comes before the first run of a controller.
            return replace(state, recoveries=recovery.fold(recovery.Recoveries(), record, None))
        case Run():
            policy = identity(record.policy, record.options)
            state = replace(state, policy=policy, memo=state.memo if policy == state.policy else FrozenMap())
            return _looking_ahead(state, record)
        case ForecastChoice():
            return replace(state, choice=record)
        case Forecast():
            return replace(state, forecast=record)
        case Observation() if record.running is not None:
            loads = state.loads.with_window(record) if state.loads is not None else None
            # After the clock was set back, windows are counted from there.
            set_back = record.at_s < state.last_at_s
            end_s = (
                min(record.end_s, record.at_s) if set_back else max(state.last_end_s, min(record.end_s, record.at_s))
            )
            return replace(state, last_at_s=record.at_s, last_end_s=end_s, loads=loads)
        case Decision():
            asked = record.asked or record.target or state.asked
            decided = record if record.target is not None else state.decided
            return replace(state, step=state.step + 1, memo=record.memo, asked=asked, decided=decided)
        case Intent():
            return replace(state, open=record, decided=None if record.undoes else state.decided)
        case IntentEnd():
            awaiting = None
            if state.open and state.decided and record.ending in (Ending.DONE, Ending.PARTIAL):
                # Engines mark windows that overlap a change as unusable, so any usable one after the intent is clean.
                awaiting = Awaiting(state.open.step, state.decided, state.open.at_s, record.downtime_s)
            return replace(
                state, open=None, decided=None, awaiting=awaiting, applied=record.running, changed_at_s=record.at_s
            )
        case Outcome():
            return replace(state, awaiting=None)
    return state


def _looking_ahead(state: State, run: Run) -> State:
    """Begin to remember loads and failures where this run needs them; what is not needed is not carried along."""
    looks = run.foresight is not None
    recovers = run.slo.max_recovery_s is not None and run.guards.recovery_floor
    return replace(
        state,
        loads=(state.loads or Loads()) if looks else None,
        choice=state.choice if looks else None,
        forecast=state.forecast if looks else None,
        recoveries=recovery.fold(state.recoveries or recovery.Recoveries(), run, run.spec) if recovers else None,
        spec=run.spec if recovers else None,
    )


NOT_YET = "nothing has been measured since the last change"


@dataclass(frozen=True)
class Mind(Generic[K]):
    """What decides: a policy with the objectives and guards it works under, for one job."""

    policy: Policy[K]
    spec: JobSpec
    slo: SLO
    guards: Guards
    seed: int
    limits: Limits = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "limits", limits(self.spec, self.slo))
        name, own = self.policy.factor()
        if own is not None and self.slo.headroom is not None:
            raise InvalidValue(
                f"both slo.headroom ({self.slo.headroom:g}) and {self.policy.name}'s {name} ({own:g}) are set: "
                "they are the same factor, keep one"
            )


def inspect(state: State, spec: JobSpec, window: Observation) -> Observation:
    """Return the window with `problem` set where it is stale, incomplete or absurd."""
    try:
        seen = state.last_at_s <= window.at_s and window.end_s <= state.last_end_s
        if window.running is not None and window.problem is None and seen:
            return replace(window, problem=f"stale: this window ended at {window.end_s:g} s and was seen before")
        return mark_problem(window, spec)
    except Exception as error:  # noqa: BLE001 - a window may hold anything
        return Observation.blind(window.at_s, f"the window cannot be read: {describe(error)}")


@dataclass(frozen=True, slots=True)
class Settlement:
    """What becomes of the open intent: it ended, it is to be applied again, or it is to be undone."""

    end: IntentEnd | None = None
    again: Intent | None = None
    undo: Intent | None = None


def settle(state: State, window: Observation, guards: Guards, allowed: Limits) -> Settlement:
    """Compare what is wanted with what runs. This is also how a change is finished after a crash.

    An intent comes from the journal, the limits from the user's code: what the limits do not allow is given up. A dry
    run finishes no change of the controller before it: it gives the change up.
    """
    intent = state.open
    if intent is None or window.running is None:
        return Settlement()
    passed_s = window.at_s - intent.at_s

    def end(ending: Ending, why: str = "") -> IntentEnd:
        return IntentEnd(intent.id, window.at_s, ending, window.running, why, window.downtime_s)

    if window.change is Change.UNDER_WAY:
        if passed_s <= guards.change_deadline_s:
            return Settlement()
        return Settlement(end(Ending.FAILED, f"still under way after {passed_s:.0f} s: wanted {intent.target}"))
    # An engine that gave up may still run what was wanted, in a way that was not: slots without tasks, say.
    if window.running == intent.target and window.change is not Change.FAILED:
        return Settlement(end(Ending.UNDONE if intent.undoes else Ending.DONE))
    if window.change is Change.PARTIAL:
        return Settlement(end(Ending.PARTIAL, f"wanted {intent.target}, got {window.running}"))
    if guards.dry_run:
        return Settlement(end(Ending.FAILED, f"wanted {intent.target}, runs {window.running}; given up by a dry run"))
    if refusal := _outside(intent.target, window.running, allowed):
        return Settlement(end(Ending.FAILED, f"wanted {intent.target}, runs {window.running}; given up: {refusal}"))
    if window.change is Change.NONE and passed_s < guards.change_patience_s:
        return Settlement(again=intent)
    failed = end(Ending.FAILED, f"wanted {intent.target}, runs {window.running}")
    if intent.undoes or intent.previous is None or intent.previous == window.running:
        return Settlement(failed)
    if _outside(intent.previous, window.running, allowed):
        return Settlement(failed)
    undo = Intent(f"{intent.id}-undo", state.step, window.at_s, intent.previous, window.running, undoes=intent.id)
    return Settlement(failed, undo=undo)


def _outside(target: Allocation, running: Allocation, allowed: Limits) -> str:
    """Return why the limits do not allow a target; "" where they do, or where it goes no further than what runs."""
    if set(target.tasks) != set(allowed.operators):
        return f"the limits are of {', '.join(allowed.operators)}"
    cut, why = clip(target, allowed)
    for name, tasks in target.tasks.items():
        nearest, now = cut.tasks[name], running.tasks.get(name, cut.tasks[name])
        if not min(nearest, now) <= tasks <= max(nearest, now):
            return why
    return ""


def judge(awaiting: Awaiting, window: Observation) -> Outcome | None:
    """Compare what an applied decision expected with the first clean window after it; None while there is none."""
    if not window.usable or window.start_s < awaiting.since_s or window.status is not Status.RUNNING:
        return None
    expects = awaiting.decision.expects
    latency = window.latency.event_p99_s if window.latency else None
    pairs: dict[str, tuple[Interval | None, float | None]] = {
        "throughput_per_s": (expects.throughput_per_s, window.throughput_per_s),
        "latency_s": (expects.latency_s, latency),
    }
    compared = {name: (i, v) for name, (i, v) in pairs.items() if i is not None and v is not None}
    observed = {name: value for name, (_, value) in compared.items()}
    load = window.load_per_s
    if expects.load_per_s is not None and load is not None:
        observed["load_per_s"] = load
        if load > expects.load_per_s * LOAD_TOLERANCE:
            sentence = f"load {load:g}/s is above the expected {expects.load_per_s:g}/s"
            return Outcome(awaiting.step, Verdict.LOAD_CHANGED, sentence, observed, awaiting.downtime_s)
    missed = [f"{n} {v:g}, expected {i.low:g} to {i.high:g}" for n, (i, v) in compared.items() if not i.holds(v)]
    verdict = Verdict.MISSED if missed else Verdict.KEPT if compared else Verdict.UNJUDGED
    sentence = "; ".join(missed) or ("as expected" if compared else "nothing was expected that this window shows")
    return Outcome(awaiting.step, verdict, sentence, observed, awaiting.downtime_s)


def decide(mind: Mind[K], state: State, knowledge: K, window: Observation) -> Decision:
    """Ask the policy, unless this window would make it blind, and apply the guards; raises PolicyError."""
    if window.former is not None and not mind.policy.reads_former_rates:
        window = replace(window, operators=(), edges=(), former=None, problem=NOT_YET)
    if blind := _blind(mind, state, window):
        return blind
    assert window.running is not None
    allowed, floor = mind.limits, None
    forecast = state.forecast if state.forecast and state.forecast.at_s == window.at_s else None
    if state.recoveries is not None:
        floor = recovery.recovery_floor(mind.limits, mind.spec, mind.slo, window, state.recoveries, forecast)
        allowed = recovery.raise_limits(mind.limits, floor) if floor else mind.limits
    situation = Situation(
        mind.spec,
        mind.slo,
        allowed,
        window,
        knowledge,
        state.step,
        mind.seed,
        state.memo,
        state.asked,
        state.applied,
        state.changed_at_s,
        forecast,
    )
    try:
        decision = mind.policy.decide(situation)
        if not isinstance(decision, Decision):
            raise TypeError(f"decide returned {type(decision).__name__}, not a Decision")
        decision = readable(decision)  # what the journal cannot hold is not decided
        if decision.target is not None and set(decision.target.tasks) != set(mind.spec.tunable_names):
            raise ValueError(f"the target names {sorted(decision.target.tasks)}, not the job's tunable operators")
    except Exception as error:
        raise PolicyError(f"{mind.policy.name} failed: {describe(error)}") from error
    if floor is not None:
        decision = recovery.explain_floor(decision, floor, allowed, window.running)
    changed_at_s = state.changed_at_s
    if mind.guards.dry_run and state.stability.changes_s:
        changed_at_s = state.stability.changes_s[-1]
    scene = Scene(
        window.running, window, allowed, mind.slo, mind.guards, decision.reason, changed_at_s, state.stability
    )
    return _add_cost(apply_guards(decision, scene), window)


def _add_cost(decision: Decision, window: Observation) -> Decision:
    """Add to the evidence how long a change is expected to stop the output, where the engine knows."""
    was, target = window.running, decision.target
    if was is None or target is None:
        return decision
    costs = [cost for name, cost in window.change_costs_s.items() if target.tasks.get(name) != was.tasks.get(name)]
    if not costs:
        return decision
    return replace(decision, evidence={**decision.evidence, "expected_downtime_s": max(costs)})


def _blind(mind: Mind[K], state: State, window: Observation) -> Decision | None:
    """Hold before the policy is asked: nothing is known, the job is down, or a change or a jump is under way."""
    unusable = window.problem if not mind.policy.reads_partial_windows else None
    if window.running is None or unusable is not None:
        why = window.problem or "nothing was seen"
        return Decision.hold(Reason.UNUSABLE, why, memo=state.memo)
    if window.status is Status.DOWN:
        return Decision.hold(Reason.DOWN, "the job gives no output", memo=state.memo)
    if state.open is not None or window.change is Change.UNDER_WAY:
        return Decision.hold(Reason.CHANGING, "the last change is not finished", memo=state.memo)
    if window.settles_in_s > 0:
        why = f"the load has just jumped: it is measured again in {window.settles_in_s:.1f} s"
        return Decision.hold(Reason.WAITING, why, memo=state.memo)
    return None


@dataclass(frozen=True, slots=True)
class Thought(Generic[K]):
    """One step's thinking: the records to write, in order, and what to do."""

    records: tuple[Record, ...]
    state: State
    knowledge: K
    window: Observation
    decision: Decision
    outcome: Outcome | None
    intent: Intent | None
    """The change to make now: a new one, one that is applied again, or an undo."""
    failure: PolicyError | None = None
    """The policy's exception, where `decide` or `learn` raised one: the decision is then to hold."""


def learn(policy: Policy[K], knowledge: K, record: Record) -> K:
    """Fold one record into the policy's knowledge; raises PolicyError where the policy raises."""
    try:
        return policy.learn(knowledge, record)
    except Exception as error:
        raise PolicyError(f"{policy.name} could not learn: {describe(error)}") from error


def think(
    mind: Mind[K], state: State, knowledge: K, window: Observation, forecast: Forecast | None = None
) -> Thought[K]:
    """Go once through the cycle, from a window (and a forecast made with it) to what is to be done about it."""
    number = state.step
    records: list[Record] = []
    failure: PolicyError | None = None

    def fold(record: Record) -> None:
        nonlocal state, knowledge, failure
        records.append(record)
        state = advance(state, record)
        try:
            knowledge = learn(mind.policy, knowledge, record)
        except PolicyError as error:  # as in decide: a policy's bug must not stop the loop
            failure = error

    if forecast:
        fold(forecast)
    window = inspect(state, mind.spec, window)
    fold(window)
    settled = settle(state, window, mind.guards, mind.limits)
    if settled.end:
        fold(settled.end)
    outcome = judge(state.awaiting, window) if state.awaiting else None
    if outcome:
        fold(outcome)
    if settled.undo and settled.end:
        decision = Decision.hold(Reason.UNDO, f"the last change failed: {settled.end.why}", memo=state.memo)
    elif failure is not None:
        decision = Decision.hold(Reason.NO_POLICY, str(failure), memo=state.memo)
    else:
        try:
            decision = decide(mind, state, knowledge, window)
        except PolicyError as error:  # a policy's bug must not stop the loop that guards the job
            failure = error
            # Without the memo: one that the policy cannot read would make it fail in every step to come.
            decision = Decision.hold(Reason.NO_POLICY, str(error))
    if decision.target is not None and state.awaiting:
        why = f"replaced in step {number} before it could be judged"
        outcome = Outcome(state.awaiting.step, Verdict.UNJUDGED, why, {}, state.awaiting.downtime_s)
        fold(outcome)
    fold(decision)
    intent = settled.undo
    if decision.target is not None:
        intent = Intent(f"{number}@{window.at_s:.3f}", number, window.at_s, decision.target, window.running)
    if intent:
        fold(intent)
    return Thought(tuple(records), state, knowledge, window, decision, outcome, intent or settled.again, failure)
