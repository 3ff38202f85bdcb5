"""What must hold in a storm: one actor, changes that end once, memory, decisions, bounds, calm, replay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from rheostat.control.controller import Controller, Step
from rheostat.control.guards import HOUR_S
from rheostat.control.memory import remember
from rheostat.control.replay import replay
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Reason
from rheostat.job.fit import clip
from rheostat.job.graph import JobSpec
from rheostat.job.guards import Guards
from rheostat.job.record import Intent, IntentEnd, Record
from rheostat.job.slo import Limits
from rheostat.policy.registry import make_policy
from rheostat.ports import Journal

CLEAN_WINDOWS = 3
"""Clean windows in a row within which a policy decides."""
BLIND = frozenset({Reason.NO_POLICY, Reason.UNUSABLE, Reason.UNJOURNALED})
"""Reasons of decisions that no policy made."""
MOST_REPORTED = 20
"""Violations that one storm reports."""


@dataclass(frozen=True, slots=True)
class Violation:
    """What happened, in which storm, and when."""

    seed: int
    at_s: float
    what: str

    def __str__(self) -> str:
        days, seconds = divmod(int(self.at_s), 86_400)
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}"
        return f"seed {self.seed}, day {days} {clock}: {self.what}"


@dataclass(frozen=True, slots=True)
class Opened:
    """A journaled change: when, by the storm's time, and what the writer's clock was off by."""

    at_s: float
    offset_s: float
    intent: Intent


class Watch:
    """Watches one storm."""

    def __init__(self, seed: int, spec: JobSpec, limits: Limits, guards: Guards) -> None:
        self.seed, self.spec, self.limits, self.guards = seed, spec, limits, guards
        self.now_s = 0.0
        self.violations: list[Violation] = []
        self.steps = self.changes = self.decisions = self.memory_checks = self.replayed = self.skipped = 0
        self._blind: dict[str, int] = {}
        self._opened: list[Opened] = []
        self._open: str | None = None
        self._ended: set[str] = set()
        self._damages_s: list[float] = []
        self._last_end: tuple[float, float] | None = None
        """When the last change ended, and what the clock was off by."""
        self.most_turns = 0
        """Most turns of an operator within an hour."""

    def violated(self, what: str) -> None:
        """Report a violation."""
        if len(self.violations) < MOST_REPORTED:
            self.violations.append(Violation(self.seed, self.now_s, what))

    def started(self, driver: str) -> None:
        """Count the clean windows of a driver from here on."""
        self._blind[driver] = 0

    def stepped(self, driver: str, step: Step, clean: bool) -> None:
        """Check that clean windows lead to a decision."""
        self.steps += 1
        decided = step.decision.reason not in BLIND
        self.decisions += decided
        if decided or not clean:
            self._blind[driver] = 0
            return
        self._blind[driver] += 1
        if self._blind[driver] >= CLEAN_WINDOWS:
            self._blind[driver] = 0
            text = f"{step.decision.reason}: {step.decision.sentence}"
            self.violated(f"no decision within {CLEAN_WINDOWS} clean windows ({text})")

    def journaled(self, records: Sequence[Record], offset_s: float) -> None:
        """Check every change as it is journaled: it is allowed, ends once, and before the next one begins."""
        for record in records:
            if isinstance(record, Intent):
                if self._open is not None:
                    self.violated(f"the change {record.id} began before {self._open} had ended")
                self._open = record.id
                self.changes += 1
                self._opened.append(Opened(self.now_s, offset_s, record))
                self._check_bounds(record.target)
                if record.undoes is None:
                    self._check_shrinking(record)
                    self._check_turns()
            elif isinstance(record, IntentEnd):
                if record.intent in self._ended or record.intent != self._open:
                    self.violated(f"the change {record.intent} ended twice, or was not open")
                self._ended.add(record.intent)
                self._open = None
                self._last_end = (self.now_s, offset_s)

    def _check_bounds(self, target: Allocation) -> None:
        if why := clip(target, self.limits)[1]:
            self.violated(f"{target} was asked for: {why}")

    def acted(self, driver: str, intent: Intent, *, current: bool, dry_run: bool) -> None:
        """Check who acts, and for which change."""
        if not current:
            self.violated(f"the {driver} driver acted after it was overtaken ({intent.id})")
        if dry_run:
            self.violated(f"the {driver} driver acted in a dry run ({intent.id})")
        if intent.id in self._ended:
            self.violated(f"the {driver} driver acted for {intent.id} after it had ended")

    def _check_shrinking(self, intent: Intent) -> None:
        """Check that a change that shrinks anything is late enough after the last one, and one of few in its hour.

        Where the clock was set, or a record was lost, in between, the controller cannot know that.
        """
        before = intent.previous.tasks if intent.previous else {}
        if not any(count < before.get(name, 0) for name, count in intent.target.tasks.items()):
            return
        recent, breaks = self._last_hour()
        most = self.guards.max_changes_per_hour
        if most is not None and not breaks and len(recent) > most:
            self.violated(f"{intent.id} shrinks, as change {len(recent)} within an hour; the most is {most}")
        if self._last_end is None or self._last_end[1] != recent[-1].offset_s or breaks:
            return
        age_s = self.now_s - self._last_end[0]
        if age_s < self.guards.cooldown_down_s:
            self.violated(f"{intent.id} shrinks {age_s:.0f} s after a change, not {self.guards.cooldown_down_s:.0f} s")

    def _check_turns(self) -> None:
        """Check how often the direction of an operator's tasks turned round within the last hour.

        A shrink needs fewer than `max_changes_per_hour` changes in the hour before it, and every second turn is a
        shrink: so an hour has at most that many turns. Growth out of an emergency exceeds the number of changes, not
        that of turns. Undoing a failed change is no decision and does not count. Where the clock was set forward, or a
        record of a change was lost, the controller cannot know the changes before: another hour may begin there.
        """
        recent, breaks = self._last_hour()
        if self.guards.max_changes_per_hour is None:
            return
        most = self.guards.max_changes_per_hour * (1 + breaks)
        for name in self.spec.tunable_names:
            turns = _turns([o.intent for o in recent if o.intent.undoes is None], name)
            self.most_turns = max(self.most_turns, turns)
            if turns > most:
                self.violated(f"{name} turned round {turns} times within an hour, the most is {most}")

    def _last_hour(self) -> tuple[list[Opened], int]:
        """Return the changes of the last hour, and how often the clock was set forward or a record lost in it."""
        recent = [o for o in self._opened[-100:] if self.now_s - o.at_s < HOUR_S]
        breaks = sum(after.offset_s > before.offset_s for before, after in pairwise(recent))
        return recent, breaks + sum(self.now_s - at_s < HOUR_S for at_s in self._damages_s)

    def recount(self, journal: Journal) -> None:
        """Read again which changes are open and ended, after a record was damaged."""
        self._damages_s.append(self.now_s)
        self._open, self._ended = None, set()
        for entry in journal.read(self.spec.name, kinds=("intent", "intent_end"), skip=lambda _: None):
            if isinstance(entry.record, Intent):
                self._open = entry.record.id
            elif isinstance(entry.record, IntentEnd):
                self._ended.add(entry.record.intent)
                self._open = None if self._open == entry.record.intent else self._open

    def check_memory(self, journal: Journal, controller: Controller[Any]) -> None:
        """Check that what a controller remembers is the fold of the journal."""
        self.memory_checks += 1
        if (controller.state, controller.knowledge) != remember(journal, controller.mind):
            self.violated("memory is not the fold of the journal")

    def check_journal(self, journal: Journal) -> None:
        """Check that replaying the whole journal gives the same decisions."""
        if self.spec.name not in journal.jobs():
            return
        again = replay(journal, self.spec.name, lambda run: make_policy(run.policy, run.options))
        self.replayed, self.skipped = again.steps, again.skipped
        for difference in again.differences[:3]:
            self.violated(
                f"replay differs in step {difference.step}: recorded {difference.recorded}, again {difference.again}"
            )


def _turns(intents: Sequence[Intent], operator: str) -> int:
    """Return how often the tasks of an operator changed their direction."""
    signs = []
    for intent in intents:
        before = intent.previous.tasks[operator] if intent.previous else intent.target.tasks[operator]
        if (count := intent.target.tasks[operator]) != before:
            signs.append(count > before)
    return sum(a != b for a, b in pairwise(signs))
