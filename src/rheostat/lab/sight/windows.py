"""What the scaler saw and decided, window by window, from its journal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Reason
from rheostat.job.observation import Change, Observation
from rheostat.job.record import Intent, IntentStep
from rheostat.journal import open_journal
from rheostat.ports import Entry

KINDS = ("observation", "decision", "intent", "intent_step")


@dataclass(frozen=True, slots=True)
class Window:
    """One observation, and the decision after it."""

    at_s: float
    rate_per_s: float | None = None
    backlog: float | None = None
    lag_s: float | None = None
    measured_s: float | None = None
    """When rate and backlog were measured, as the scaler says; None for `at_s`."""
    problem: str | None = None
    """Why nothing could be decided from it."""
    changing: bool = False
    """Whether a change was under way: then nothing is decided, whatever the window shows."""
    jumping: bool = False
    """Whether the load had just jumped: then it is measured again before anything is decided."""
    target: int | None = None
    """Slots that the decision asks for; None to hold."""
    decided_s: float | None = None
    """When the decision was in the journal, and its change began; None for `at_s`."""
    running: int | None = None
    why: str = ""
    """The decision in words, with what guards did to it."""


@dataclass
class _Step:
    observation: Observation | None = None
    decision: Decision | None = None
    begun_s: float | None = None


def read_windows(journal: Path) -> list[Window]:
    """Return the windows of the journal's only job, oldest first."""
    book = open_journal(journal)
    try:
        return windows_of([entry for job in book.jobs() for entry in book.read(job, kinds=KINDS)])
    finally:
        book.close()


def windows_of(entries: Iterable[Entry]) -> list[Window]:
    """Return the windows of one job's records."""
    steps: dict[int, _Step] = {}
    owner: dict[str, _Step] = {}
    for entry in entries:
        match entry.record:
            case Observation() as seen:
                steps.setdefault(entry.step, _Step()).observation = seen
            case Decision() as decision:
                steps.setdefault(entry.step, _Step()).decision = decision
            case Intent() as intent:
                owner[intent.id] = steps.setdefault(entry.step, _Step())
            case IntentStep() as sub_step:
                if (step := owner.get(sub_step.intent)) is not None and step.begun_s is None:
                    step.begun_s = sub_step.at_s
    return [_window(step.observation, step) for _, step in sorted(steps.items()) if step.observation is not None]


def _window(seen: Observation, step: _Step) -> Window:
    source = seen.sources[0] if seen.sources else None
    problem = seen.problem
    if step.decision is not None and step.decision.reason is Reason.UNUSABLE:
        problem = problem or step.decision.sentence
    window = Window(
        seen.at_s,
        problem=problem,
        changing=seen.change is Change.UNDER_WAY,
        jumping=seen.settles_in_s > 0,
        running=_slots(seen.running),
        decided_s=step.begun_s,
    )
    if source is not None:
        window = replace(
            window, rate_per_s=seen.load_per_s, backlog=seen.backlog, lag_s=seen.lag_s, measured_s=source.measured_s
        )
    if step.decision is None:
        return window
    notes = (f"{note.guard}: {note.why}" for note in step.decision.guards)
    return replace(window, target=_slots(step.decision.target), why="; ".join((step.decision.sentence, *notes)))


def _slots(allocation: Allocation | None) -> int | None:
    return None if allocation is None else sum(allocation.tasks.values())
