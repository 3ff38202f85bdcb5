"""The rules for every engine, and engines that break them: late, partial, failing and lying ones."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rheostat.errors import EngineError
from rheostat.job.allocation import Allocation
from rheostat.job.frozen import from_json, to_json
from rheostat.job.graph import JobSpec
from rheostat.job.observation import Change, Observation, mark_problem
from rheostat.job.record import Intent
from rheostat.ports import Clock, Engine, Note


def silent(step: str) -> None:
    """Ignore the step."""


def intent_to(target: Allocation, name: str = "1", at_s: float = 0.0) -> Intent:
    """Return an intent with this target."""
    return Intent(name, 0, at_s, target, None)


class EngineConformance(ABC):
    """Subclass it, implement `make_engine`, and run pytest."""

    settle_s: float = 300.0
    """Seconds after which a change must be complete."""

    @abstractmethod
    def make_engine(self) -> tuple[Engine, Clock]:
        """Return an engine whose job runs under load, and its clock."""

    def settle(self, engine: Engine, clock: Clock) -> None:
        """Wait until a change must be complete; with a wall clock, a subclass may return as soon as it is."""
        clock.sleep(self.settle_s)

    @pytest.fixture
    def world(self) -> tuple[Engine, Clock]:
        """Return an engine that has run for longer than a window."""
        engine, clock = self.make_engine()
        self.settle(engine, clock)
        return engine, clock

    def another(self, engine: Engine) -> Allocation:
        """Return an allocation that differs from the running one."""
        running = engine.observe().running
        assert running is not None
        first = engine.describe().tunable[0]
        count = running.tasks[first.operator]
        more = count + first.quantum
        fits = first.bounds.max is None or more <= first.bounds.max
        return running.with_tasks({first.operator: more if fits else count - first.quantum})

    def test_describes_the_same_job_every_time(self, world: tuple[Engine, Clock]) -> None:
        """The description is equal every time, and it survives JSON."""
        engine, _ = world
        spec = engine.describe()
        assert spec == engine.describe()
        assert from_json(JobSpec, to_json(spec)) == spec

    def test_shows_a_complete_usable_window(self, world: tuple[Engine, Clock]) -> None:
        """A warm, undisturbed job has a usable window."""
        engine, clock = world
        window = engine.observe()
        assert mark_problem(window, engine.describe()).problem is None
        assert window.at_s == pytest.approx(clock.now(), abs=5.0)
        assert window.change is Change.NONE
        assert window.running == window.wanted

    def test_observing_changes_nothing(self, world: tuple[Engine, Clock]) -> None:
        """Two observations equal one, and take no time of the job."""
        engine, clock = world
        before = clock.now()
        first, second = engine.observe(), engine.observe()
        assert (first.running, first.wanted, first.change) == (second.running, second.wanted, second.change)
        assert clock.now() - before < 5.0

    def test_observation_survives_json(self, world: tuple[Engine, Clock]) -> None:
        """The journaled observation equals the original."""
        window = world[0].observe()
        assert from_json(Observation, to_json(window)) == window

    def test_reaches_the_target(self, world: tuple[Engine, Clock]) -> None:
        """The target runs after `settle_s`, and the window is usable again."""
        engine, clock = world
        target = self.another(engine)
        engine.apply(intent_to(target, at_s=clock.now()), silent)
        assert engine.observe().wanted == target
        self.settle(engine, clock)
        window = engine.observe()
        assert (window.running, window.change) == (target, Change.NONE)
        assert window.problem is None

    def test_the_window_of_a_change_is_not_usable(self, world: tuple[Engine, Clock]) -> None:
        """A window right after a change must not be learned from."""
        engine, clock = world
        engine.apply(intent_to(self.another(engine), at_s=clock.now()), silent)
        window = engine.observe()
        assert window.problem is not None or window.change is Change.UNDER_WAY

    def test_a_repeated_intent_has_no_effect(self, world: tuple[Engine, Clock]) -> None:
        """Crash recovery applies an intent again, which must not restart the job."""
        engine, clock = world
        intent = intent_to(self.another(engine), at_s=clock.now())
        engine.apply(intent, silent)
        self.settle(engine, clock)
        before = engine.observe()
        engine.apply(intent, silent)
        after = engine.observe()
        assert (after.change, after.running) == (Change.NONE, before.running)
        assert after.uptime_s >= before.uptime_s

    def test_journals_every_step_before_it_happens(self, world: tuple[Engine, Clock]) -> None:
        """If the first step cannot be journaled, the job does not change."""
        engine, clock = world

        def refuse(step: str) -> None:
            raise OSError("disk full")

        before = engine.observe()
        with pytest.raises(OSError, match="disk full"):
            engine.apply(intent_to(self.another(engine), at_s=clock.now()), refuse)
        after = engine.observe()
        assert (after.running, after.wanted, after.change) == (before.running, before.wanted, Change.NONE)

    def test_refuses_unknown_operators(self, world: tuple[Engine, Clock]) -> None:
        """An unknown name is an error, and the job does not change."""
        engine, clock = world
        before = engine.observe()
        with pytest.raises(EngineError):
            engine.apply(intent_to(Allocation({"no such operator": 1}), at_s=clock.now()), silent)
        assert engine.observe().wanted == before.wanted


class Wrapped:
    """An engine that delegates to another one; subclasses break a rule."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def describe(self) -> JobSpec:
        """Delegate."""
        return self.engine.describe()

    def observe(self) -> Observation:
        """Delegate."""
        return self.engine.observe()

    def apply(self, intent: Intent, note: Note) -> None:
        """Delegate."""
        self.engine.apply(intent, note)


class Late(Wrapped):
    """Hangs in `observe` or `apply` until `let_go` is set."""

    def __init__(self, engine: Engine, hang: str) -> None:
        super().__init__(engine)
        self.hang, self.let_go = hang, threading.Event()

    def observe(self) -> Observation:
        """Hang, then delegate."""
        if self.hang == "observe":
            self.let_go.wait()
        return super().observe()

    def apply(self, intent: Intent, note: Note) -> None:
        """Hang, then delegate."""
        if self.hang == "apply":
            self.let_go.wait()
        super().apply(intent, note)


class Failing(Wrapped):
    """Raises in the named calls, a given number of times each."""

    def __init__(self, engine: Engine, times: dict[str, int], error: Callable[[], Exception] | None = None) -> None:
        super().__init__(engine)
        self.times, self.error = dict(times), error or (lambda: RuntimeError("connection refused"))

    def _raise_if_due(self, call: str) -> None:
        if self.times.get(call, 0) > 0:
            self.times[call] -= 1
            raise self.error()

    def describe(self) -> JobSpec:
        """Raise, or delegate."""
        self._raise_if_due("describe")
        return super().describe()

    def observe(self) -> Observation:
        """Raise, or delegate."""
        self._raise_if_due("observe")
        return super().observe()

    def apply(self, intent: Intent, note: Note) -> None:
        """Raise, or delegate."""
        self._raise_if_due("apply")
        super().apply(intent, note)


class Partial(Wrapped):
    """Grants at most `most` tasks per operator, and reports a partial change."""

    def __init__(self, engine: Engine, most: int) -> None:
        super().__init__(engine)
        self.most, self.asked = most, None

    asked: Allocation | None

    def apply(self, intent: Intent, note: Note) -> None:
        """Apply the target, cut to `most` tasks."""
        self.asked = intent.target
        granted = intent.target.with_tasks({name: min(c, self.most) for name, c in intent.target.tasks.items()})
        super().apply(replace(intent, target=granted), note)

    def observe(self) -> Observation:
        """Report that the change stays partial."""
        window = super().observe()
        if self.asked is None or window.change is not Change.NONE or window.running == self.asked:
            return window
        return replace(window, wanted=self.asked, change=Change.PARTIAL)


class Ignoring(Wrapped):
    """Accepts every change and never applies it; with `fail`, it reports a failure."""

    def __init__(self, engine: Engine, fail: bool = False) -> None:
        super().__init__(engine)
        self.fail, self.applied = fail, list[Intent]()

    def apply(self, intent: Intent, note: Note) -> None:
        """Store the intent and do nothing."""
        note("pretend")
        self.applied.append(intent)

    def observe(self) -> Observation:
        """Show the unchanged job."""
        window = super().observe()
        return replace(window, change=Change.FAILED) if self.fail and self.applied else window


class Lying(Wrapped):
    """Falsifies the true window with a function: NaN, negative rates, no window."""

    def __init__(self, engine: Engine, lie: Callable[[Observation], Any]) -> None:
        super().__init__(engine)
        self.lie = lie

    def observe(self) -> Observation:
        """Return the falsified window."""
        false: Observation = self.lie(super().observe())
        return false
