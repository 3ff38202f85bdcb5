"""The control loop: observe, learn, decide, guard, apply, judge, and journal every step.

`Controller.step` is one turn of the cycle; `Controller.run` repeats it on a clock. The thinking is in
`control/cycle.py`; here is what touches the world. Three rules: nothing is done before it is journaled; whatever
the engine does (raise, hang, return nonsense) the loop goes on; and no controller means no change.
"""

from __future__ import annotations

import logging
import math
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from rheostat import __version__
from rheostat.control.cycle import Mind, State, Thought, advance, learn, think
from rheostat.control.heartbeat import Heartbeat
from rheostat.control.memory import remember, snapshot
from rheostat.control.recovery import doubt
from rheostat.control.trials import Trials
from rheostat.deadline import Deadline
from rheostat.errors import (
    EngineError,
    InvalidValue,
    JournalError,
    LeaseRefused,
    PolicyError,
    describe,
    plain_text,
    redact_settings,
)
from rheostat.forecast.loads import backtest_is_due, forecast_load, run_backtest
from rheostat.forecast.registry import check_candidates
from rheostat.job.decision import Decision, Measurement, Outcome, Reason
from rheostat.job.forecast import Forecast, Foresight
from rheostat.job.frozen import check_number, readable
from rheostat.job.graph import JobSpec
from rheostat.job.guards import UNGUARDED, Guards
from rheostat.job.observation import Observation
from rheostat.job.record import RETENTION_S, Intent, IntentStep, Record, Run
from rheostat.job.slo import SLO
from rheostat.model.downtime import prior_of
from rheostat.policy.registry import file_of
from rheostat.ports import Clock, Engine, Journal, Lease, Policy, Testbed

K = TypeVar("K")

log = logging.getLogger(__name__)

CLOCK_TOLERANCE_S = 60.0
"""Seconds between a window's moment and the controller's clock: an engine may have taken that long to answer."""
GRACE_S = 15.0
"""Seconds after the end of a lease in which a take-over succeeds: a call to a journal that stalls returns by then."""
QUANTILES = (0.1, 0.5, 0.9)
"""Of every forecast, besides the one that an objective needs."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one turn of the cycle saw, decided and did."""

    number: int
    observation: Observation
    decision: Decision
    outcome: Outcome | None = None
    intent: Intent | None = None
    measurements: tuple[Measurement, ...] = ()
    problem: str | None = None
    """Why the step could not be finished: the engine refused, or the journal could not be written."""
    decision_ms: float = 0.0
    step_ms: float = 0.0
    """Observing, thinking and journaling; applying is not in it."""
    policy_failure: PolicyError | None = None
    """The policy's exception, where it raised one; its cause has the traceback."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How long the loop waits for others."""

    observe_deadline_s: float | None = 10.0
    apply_deadline_s: float | None = 120.0
    lease_s: float = 60.0
    """A controller that is silent for this long is taken for dead."""
    snapshot_every: int = 100
    """Steps between two snapshots of state and knowledge."""
    retention_s: float | None = RETENTION_S
    """How long records are kept behind a snapshot; None keeps them for ever."""

    def __post_init__(self) -> None:
        check_number("retention_s", self.retention_s, least=1.0)


IMMEDIATE = Pace(observe_deadline_s=None, apply_deadline_s=None, retention_s=None)
"""For engines that live in this process and cannot hang, such as the simulator."""


class Controller(Generic[K]):
    """Keeps one job at the size that its policy decides."""

    def __init__(
        self,
        engine: Engine,
        policy: Policy[K],
        journal: Journal,
        clock: Clock,
        *,
        slo: SLO | None = None,
        guards: Guards | None = None,
        testbed: Testbed | None = None,
        seed: int = 0,
        pace: Pace | None = None,
        settings: Mapping[str, Any] | None = None,
        foresight: Foresight | None = None,
    ) -> None:
        self.engine = engine
        self.journal = journal
        self.clock = clock
        self.pace = pace or Pace()
        threaded = self.pace.observe_deadline_s is not None
        self._trials = Trials(testbed, beside=threaded)
        self._settings = redact_settings(settings or {})
        self._observing = Deadline(self.pace.observe_deadline_s)
        self._applying = Deadline(self.pace.apply_deadline_s)
        self.paused = False
        self.policy_failures = 0
        self._stopping = False
        self._unsure = False
        # An engine that works in the background journals its steps from there.
        self._folding = threading.RLock()
        # Here an engine that cannot describe its job is an error for the caller: there is nothing to guard yet.
        spec = self._observing.call("describe", engine.describe)
        self.mind = Mind(policy, spec, slo or SLO(), guards or UNGUARDED, seed)
        self.foresight = (foresight or Foresight()) if _looks_ahead(self.mind) else None
        check_candidates(self.foresight.candidates if self.foresight else ())
        self.state = State()
        self.knowledge = policy.initial()
        self._lease: Lease | None = None
        self._heart: Heartbeat | None = None

    # -- life -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Take the job's lease, remember what the journal knows, and note that this controller runs."""
        holder = f"{socket.gethostname()}:{os.getpid()}:{id(self):x}"
        since_s, ttl_s = self.clock.monotonic(), self.pace.lease_s
        self._lease = self.journal.acquire(self.mind.spec.name, holder, ttl_s)
        threaded = self.pace.observe_deadline_s is not None
        self._heart = Heartbeat(self.journal, self._lease, ttl_s, self.clock, since_s, threaded=threaded)
        try:
            self.state, self.knowledge = remember(self.journal, self.mind)
            self._unsure = False
            before = self.state.policy
            self._write(self._run_record(self.mind))
            if before not in ("", self.state.policy):
                # What this policy learned from others' records outlives those records.
                for record in self._snapshot(self.state, self.knowledge, self.clock.now()):
                    self._write(record)
        except BaseException:
            # Otherwise the next start would wait until a lease without a holder has expired.
            with suppress(JournalError):
                self._release(self._lease)
            raise

    def start_when_free(
        self,
        refused: Callable[[LeaseRefused], object] = lambda _: None,
        given_up: Callable[[], bool] = lambda: False,
    ) -> None:
        """Start, and wait for the lease while another controller holds it; `refused` is called at every refusal.

        The lease of a killed controller expires. One that is still held after that belongs to a living one, and the
        refusal is raised. So is the error of a journal that has not answered by then: it may be restarting.
        """
        deadline_s, logged = self.clock.monotonic() + self.pace.lease_s + GRACE_S, False
        while not given_up():
            try:
                self.start()
            except JournalError as error:
                if self.clock.monotonic() > deadline_s:
                    raise
                if not logged:
                    log.warning("%s: waiting for the lease: %s", self.mind.spec.name, error)
                    logged = True
                if isinstance(error, LeaseRefused):
                    refused(error)
            else:
                return
            self.clock.sleep(1.0)

    @property
    def started(self) -> bool:
        """Whether it holds the lease."""
        return self._lease is not None

    def stop(self) -> None:
        """Write a snapshot and release the lease."""
        if self._lease is None:
            return
        try:
            with self._folding:
                self._look_again()
                self._write(snapshot(self.state, self.knowledge, self.clock.now()))
        except (JournalError, PolicyError) as error:
            log.warning("%s: the last snapshot could not be written: %s", self.mind.spec.name, error)
        self._release(self._lease)

    def _release(self, lease: Lease) -> None:
        if self._heart is not None:
            self._heart.stop()
        self._lease = self._heart = None
        self._trials.request(())
        self.journal.release(lease)

    def __enter__(self) -> Controller[K]:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def run(
        self, interval_s: float, until_s: float | None = None, each: Callable[[Step], object] | None = None
    ) -> None:
        """Step every `interval_s` on the clock until a moment, or until `halt` is called; `each` gets every step.

        A load that has just jumped is looked at again as soon as its rate is known.
        """
        next_s = begun_s = self.clock.monotonic()
        # The end is a moment of the clock; from here on only the time that passes counts.
        left_s = math.inf if until_s is None else until_s - self.clock.now()
        while not self._stopping and next_s - begun_s <= left_s:
            self.clock.sleep(next_s - self.clock.monotonic())
            if self._stopping:
                break
            soon_s = 0.0
            if not self.paused:
                step = self.step()
                soon_s = step.observation.settles_in_s
                if each:
                    each(step)
            # After a step that took long, the missed turns are skipped, not made up for.
            next_s += interval_s * max(1, int((self.clock.monotonic() - next_s) // interval_s) + 1)
            if soon_s > 0:
                next_s = min(next_s, self.clock.monotonic() + soon_s)

    def halt(self) -> None:
        """Make `run` return after the present step; safe to call from a signal handler."""
        self._stopping = True

    # -- one turn of the cycle --------------------------------------------------------------------------------

    def step(self) -> Step:
        """Observe, think, journal, apply. Raises only when the lease is lost."""
        begun = time.perf_counter()
        earlier, unlearned = self._collect()
        window = self._observe()
        started = time.perf_counter()
        try:
            with self._folding:
                self._look_again()
                number = self.state.step
                thought = self._think(window)
                decision_ms = (time.perf_counter() - started) * 1e3
                records = list(thought.records)
                if thought.state.step % self.pace.snapshot_every == 0:
                    records += self._snapshot(thought.state, thought.knowledge, window.at_s)
                self._append(number, records)
                self.state, self.knowledge = thought.state, thought.knowledge
        except LeaseRefused:
            raise
        except JournalError as error:
            # What could not be written down must not be done; nothing of this step is remembered either.
            log.warning("%s: the step cannot be journaled, so nothing is changed: %s", self.mind.spec.name, error)
            held = Decision.hold(Reason.UNJOURNALED, f"the journal cannot be written: {error}")
            return Step(self.state.step, window, held, problem=str(error))
        step_ms = (time.perf_counter() - begun) * 1e3
        self._log_change(thought)
        problem = self._apply(thought.intent) if thought.intent else None
        if thought.failure is not None:
            self._count_failure(number, thought.failure)
        self._request(thought.decision)
        now, failure = self._collect()
        self._choose(window.at_s)
        self._retain(number, window.at_s)
        return Step(
            number,
            thought.window,
            thought.decision,
            thought.outcome,
            thought.intent,
            earlier + now,
            problem,
            decision_ms,
            step_ms,
            thought.failure or unlearned or failure,
        )

    def _think(self, window: Observation) -> Thought[K]:
        """Think about a window; about a blind one where that raises. It counts as a failure, so that it is seen."""
        try:
            return think(self.mind, self.state, self.knowledge, window, self._foresee(window))
        except Exception as error:  # noqa: BLE001 - a window may hold numbers that nothing can be computed from
            failure = PolicyError(f"the window cannot be used: {describe(error)}")
            failure.__cause__ = error
            blind = Observation.blind(window.at_s, str(failure))
            return replace(think(self.mind, self.state, self.knowledge, blind), failure=failure)

    def _snapshot(self, state: State, knowledge: K, at_s: float) -> list[Record]:
        try:
            return [snapshot(state, knowledge, at_s)]
        except PolicyError as error:
            self._count_failure(state.step, error)
            return []

    def _log_change(self, thought: Thought[K]) -> None:
        """Log a change in one line with its reason."""
        intent, decision = thought.intent, thought.decision
        if intent is not None:
            why = f"undoes {intent.undoes}" if intent.undoes else f"{decision.reason}: {decision.sentence}"
            log.info("%s: %s -> %s (%s)", self.mind.spec.name, intent.previous, intent.target, why)

    def _count_failure(self, number: int, failure: PolicyError) -> None:
        """Count and log a policy's exception; its traceback is logged at debug level."""
        self.policy_failures += 1
        log.warning("%s: step %d: %s", self.mind.spec.name, number, failure)
        log.debug("%s: the exception of the policy", self.mind.spec.name, exc_info=failure.__cause__)

    def _observe(self) -> Observation:
        """Look at the job; whatever goes wrong becomes a blind window that says so."""
        try:
            spec = self._observing.call("describe", self.engine.describe)
            if isinstance(spec, JobSpec) and spec != self.mind.spec:
                self._change_spec(readable(spec))
            window = self._observing.call("observe", self.engine.observe)
        except LeaseRefused:
            raise
        except Exception as error:  # noqa: BLE001 - an engine may raise anything; the job goes on without us
            log.warning("%s: the job could not be observed: %s", self.mind.spec.name, describe(error))
            return Observation.blind(self.clock.now(), describe(error))
        return self._typed(window)

    def _change_spec(self, spec: JobSpec) -> None:
        """Go on with another description of the same job."""
        if spec.name != self.mind.spec.name:
            raise EngineError(f"the engine describes {spec.name!r}, not {self.mind.spec.name!r}")
        if spec != self.mind.spec:
            mind = replace(self.mind, spec=spec)
            self._write(self._run_record(mind))
            self.mind = mind

    def _typed(self, window: Any) -> Observation:
        """Return the window as the journal will hold it; a blind one where it is no window of the present."""
        now_s = self.clock.now()
        if not isinstance(window, Observation):
            return Observation.blind(now_s, f"the engine returned {plain_text(window, 80)}")
        try:
            seen = readable(window)
        except InvalidValue as error:
            return Observation.blind(now_s, f"the window cannot be used: {plain_text(error)}")
        if not abs(seen.at_s - now_s) <= CLOCK_TOLERANCE_S:
            return Observation.blind(now_s, f"the window is of {seen.at_s:.0f} s, and the clock says {now_s:.0f} s")
        return seen

    def _foresee(self, window: Observation) -> Forecast | None:
        """Forecast the load, where something needs that; a forecaster that breaks costs the forecast, not the step."""
        if self.foresight is None or self.state.loads is None or window.running is None:
            return None
        quantiles = tuple(sorted({*QUANTILES, doubt(self.mind.slo.recovery_quantile)}))
        try:
            loads = self.state.loads.with_window(window)
            forecast = forecast_load(loads, self.state.choice, self.foresight, quantiles, window.at_s)
            return None if forecast is None else readable(forecast)
        except Exception as error:  # noqa: BLE001 - as with engines: the job goes on without it
            log.warning("%s: no forecast: %s", self.mind.spec.name, describe(error))
            return None

    def _choose(self, now_s: float) -> None:
        """Compare forecasters on the load so far, from time to time; after the step, because it takes its time."""
        loads, choice = self.state.loads, self.state.choice
        if self.foresight is None or loads is None or not backtest_is_due(loads, choice, self.foresight, now_s):
            return
        try:
            self._write(run_backtest(loads, self.foresight, now_s))
        except LeaseRefused:
            raise
        except Exception as error:  # noqa: BLE001 - the choice before stays, or the last value
            log.warning("%s: the forecasters could not be compared: %s", self.mind.spec.name, describe(error))

    def _apply(self, intent: Intent) -> str | None:
        """Hand the intent to the engine. A refusal stays open: the next windows show what became of it."""

        def note(name: str) -> None:
            with self._folding:
                self._look_again()
                if self.state.open is None or self.state.open.id != intent.id:
                    raise EngineError(f"the change {intent.id} has ended: its step {name!r} comes too late")
                if name:
                    self._write(IntentStep(intent.id, name, self.clock.now()))
                if self._heart is not None:
                    self._heart.check()

        try:
            self._applying.call("apply", lambda: self.engine.apply(intent, note))
        except LeaseRefused:
            raise
        except Exception as error:  # noqa: BLE001 - an engine may raise anything
            log.warning("%s: the change to %s was refused: %s", self.mind.spec.name, intent.target, describe(error))
            return describe(error)
        return None

    def _request(self, decision: Decision) -> None:
        """Request the decision's trials; they run where there is a testbed and experiments are allowed."""
        if decision.trials or not self._trials.idle:
            refused = "explore = never" if self.mind.guards.explore == "never" else ""
            self._trials.request(decision.trials, refused)

    def _collect(self) -> tuple[tuple[Measurement, ...], PolicyError | None]:
        """Journal and fold the measurements of ended trials.

        Returns the policy's exception, too, where it could not learn from one.
        """
        measured = [] if self._trials.idle else self._trials.take()
        failure: PolicyError | None = None
        for measurement in measured:
            try:
                failure = self._write(measurement) or failure
            except LeaseRefused:
                raise
            except JournalError as error:
                log.warning("%s: a measurement cannot be journaled and is dropped: %s", self.mind.spec.name, error)
        return tuple(measured), failure

    # -- the journal -----------------------------------------------------------------------------------------

    def _append(self, number: int, records: list[Record]) -> None:
        if self._lease is None or self._heart is None:
            raise LeaseRefused("the controller holds no lease: call start(), or use it in a with statement")
        since_s = self.clock.monotonic()
        try:
            self.journal.append(self._lease, number, records)
            self._heart.renewed_s = max(self._heart.renewed_s, since_s)
        except JournalError:
            # A connection lost while committing leaves open whether the records were written: look before going on.
            self._unsure = True
            raise

    def _write(self, record: Record) -> PolicyError | None:
        """Append a single record outside the batch of a step, and fold it.

        Returns the policy's exception where it could not learn from it: the loop goes on without, as in a step.
        """
        record = readable(record)
        with self._folding:
            self._look_again()
            self._append(self.state.step, [record])
            self.state = advance(self.state, record)
            try:
                self.knowledge = learn(self.mind.policy, self.knowledge, record)
            except PolicyError as error:
                self._count_failure(self.state.step, error)
                return error
        return None

    def _look_again(self) -> None:
        """Fold the journal again after a write whose outcome is unknown: memory is always the fold of the records."""
        if self._unsure:
            self.state, self.knowledge = remember(self.journal, self.mind)
            self._unsure = False

    def add_setting(self, name: str, value: str) -> None:
        """Add a setting to the origin of the job, and journal it if the controller runs and it is new."""
        if self._settings.get(name) != value:
            self._settings = {**self._settings, name: value}
            if self._lease is not None:
                self._write(self._run_record(self.mind))

    def _run_record(self, mind: Mind[K]) -> Run:
        return Run(
            mind.spec.name,
            self.clock.now(),
            __version__,
            mind.seed,
            mind.spec,
            mind.slo,
            mind.guards,
            mind.policy.name,
            mind.policy.options(),
            self._settings,
            self.foresight,
            file_of(mind.policy),
            None if mind.slo.max_recovery_s is None else prior_of(mind.slo.downtime_s),
        )

    def _retain(self, number: int, now_s: float) -> None:
        if self.pace.retention_s is None or self._lease is None or (number + 1) % self.pace.snapshot_every:
            return
        try:
            self.journal.prune(self._lease, now_s - self.pace.retention_s)
        except LeaseRefused:
            raise
        except JournalError as error:
            log.warning("%s: old records could not be deleted: %s", self.mind.spec.name, error)


def _looks_ahead(mind: Mind[Any]) -> bool:
    """Whether an objective or the policy needs to know the load to come."""
    return (mind.slo.max_recovery_s is not None and mind.guards.recovery_floor) or mind.policy.wants_forecast
