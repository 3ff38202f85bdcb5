"""Replay: decide again from a journal and compare with what was decided then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from rheostat.control.cycle import Mind, State, advance, identity, learn, think
from rheostat.control.memory import learn_tail
from rheostat.errors import InvalidValue, PolicyError, first_line
from rheostat.job.decision import Decision, Outcome, Reason
from rheostat.job.frozen import from_json
from rheostat.job.observation import Observation
from rheostat.job.record import Intent, IntentEnd, Record, Run, Snapshot
from rheostat.ports import Entry, Journal, Policy

THOUGHT = (IntentEnd, Outcome, Decision, Intent)
"""Records that thinking produces: these must come out again."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A step in which thinking again came to something else."""

    step: int
    recorded: tuple[Record, ...]
    again: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """A step in which the policy raised."""

    step: int
    why: str
    """The policy and the first line of its exception."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What replaying one job came to."""

    job: str
    steps: int
    differences: tuple[Difference, ...]
    recorded_failures: tuple[Failure, ...] = ()
    """Steps in which the policy failed when they were journaled."""
    failures: tuple[Failure, ...] = ()
    """Steps in which the policy fails now."""


def replay(journal: Journal, job: str, make_policy: Callable[[Run], Policy[Any]]) -> Replayed:
    """Think again about every journaled window, from the first run record or snapshot on."""
    first = next(iter(journal.read(job, kinds=("run",))), None)
    if first is None or not isinstance(first.record, Run):
        if job in journal.jobs():
            return Replayed(job, 0, ())  # planned, and never run
        raise InvalidValue(f"the journal has no job {job!r}; it has: {', '.join(journal.jobs()) or 'none'}")
    mind = _mind(first.record, make_policy)
    state, knowledge = State(), mind.policy.initial()
    taken_over = False
    steps, differences = 0, []
    recorded_failures: list[Failure] = []
    failures: dict[int, Failure] = {}
    for batch in _batches(journal, job):
        head = batch[0]
        if isinstance(head.record, Observation):
            taken_over = False
            if head.step != state.step and not steps:
                continue  # what lay before was deleted: thinking begins at the next snapshot
            again = think(mind, state, knowledge, head.record)
            recorded = tuple(e.record for e in batch if isinstance(e.record, THOUGHT))
            came = tuple(r for r in again.records if isinstance(r, THOUGHT))
            steps += 1
            recorded_failures += [
                Failure(head.step, first_line(record.sentence))
                for record in recorded
                if isinstance(record, Decision) and record.reason is Reason.NO_POLICY
            ]
            if again.failure is not None:
                failures[head.step] = Failure(head.step, first_line(again.failure))
            if came != recorded:
                differences.append(Difference(head.step, recorded, came))
        elif isinstance(head.record, Run):
            mind = _mind(head.record, make_policy)
            if identity(head.record.policy, head.record.options) != state.policy:
                # Another policy takes over: it learned from what came before, so it must again.
                knowledge = learn_tail(journal, job, mind.policy, head.number)
                taken_over = True
        elif isinstance(head.record, Snapshot) and (taken_over or not steps):
            # What lay before this snapshot may have been deleted.
            state = from_json(State, head.record.state)
            if knowledge is not None:
                knowledge = from_json(type(knowledge), head.record.knowledge)
        for entry in batch:
            state = advance(state, entry.record)
            try:
                knowledge = learn(mind.policy, knowledge, entry.record)
            except PolicyError as error:  # the loop goes on without this record, as the live one did
                failures.setdefault(entry.step, Failure(entry.step, first_line(error)))
    return Replayed(job, steps, tuple(differences), tuple(recorded_failures), tuple(failures.values()))


def _mind(run: Run, make_policy: Callable[[Run], Policy[Any]]) -> Mind[Any]:
    return Mind(make_policy(run), run.spec, run.slo, run.guards, run.seed)


def _batches(journal: Journal, job: str) -> Iterator[list[Entry]]:
    """Group the records of one turn: a window with all that followed from it; everything else stands alone."""
    batch: list[Entry] = []
    for entry in journal.read(job):
        if batch and not (isinstance(entry.record, THOUGHT) and entry.step == batch[0].step):
            yield batch
            batch = []
        batch.append(entry)
    if batch:
        yield batch
