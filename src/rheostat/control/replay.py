"""Replay: decide again from a journal and compare with what was decided then."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rheostat.control.cycle import Mind, State, advance, identity, learn, think
from rheostat.control.memory import learn_tail
from rheostat.errors import InvalidValue, PolicyError, UnreadableRecord, first_line
from rheostat.job.decision import Decision, Outcome, Reason
from rheostat.job.frozen import from_json, to_json
from rheostat.job.observation import Observation
from rheostat.job.record import Intent, IntentEnd, Record, Run, Snapshot
from rheostat.ports import Entry, Journal, Policy

RESUMING: tuple[type[Record], ...] = (Run, Snapshot)
"""Records from which steps can be repeated after one that cannot be read."""
THOUGHT = (IntentEnd, Outcome, Decision, Intent)
"""Records that thinking produces: these must come out again."""
SAME = 1e-9
"""Largest relative difference of numbers that count as the same: processors round differently (seen: 1e-14)."""


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
    skipped: int = 0
    """Steps that cannot be repeated, because a record before them was deleted or cannot be read."""


def replay(journal: Journal, job: str, make_policy: Callable[[Run], Policy[Any]]) -> Replayed:
    """Think again about every journaled window, from the first run record or snapshot on.

    A record that cannot be read now could be read then. So the steps after it are skipped, until a run record and then
    a snapshot say again what decided, and from what.
    """
    first = next(iter(journal.read(job, kinds=("run",), skip=lambda _: None)), None)
    if first is None or not isinstance(first.record, Run):
        if job in journal.jobs():
            return Replayed(job, 0, ())  # planned, and never run
        raise InvalidValue(f"the journal has no job {job!r}; it has: {', '.join(journal.jobs()) or 'none'}")
    mind = _mind(first.record, make_policy)
    state, knowledge = State(), mind.policy.initial()
    taken_over = False
    steps, skipped, differences = 0, 0, []
    lost: list[UnreadableRecord] = []
    awaited: tuple[type[Record], ...] = ()
    """Kinds of records that must come, in this order, before steps can be repeated."""
    recorded_failures: list[Failure] = []
    failures: dict[int, Failure] = {}
    for batch in _batches(journal, job, lost):
        head = batch[0]
        if isinstance(head.record, Observation):
            taken_over = False
            if not steps and not awaited and head.step != state.step:
                awaited = RESUMING[1:]  # what lay before was deleted
        if isinstance(head.record, Observation) and (lost or awaited):
            skipped += 1
        elif isinstance(head.record, Observation):
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
            if not alike(came, recorded):
                differences.append(Difference(head.step, recorded, came))
        elif isinstance(head.record, Run):
            mind = _mind(head.record, make_policy)
            if identity(head.record.policy, head.record.options) != state.policy:
                # Another policy takes over: it learned from what came before, so it must again.
                knowledge = learn_tail(journal, job, mind.policy, head.number)
                taken_over = True
        elif isinstance(head.record, Snapshot) and (
            taken_over or awaited == RESUMING[1:] or (steps == 0 and not awaited)
        ):
            # What lay before this snapshot may have been deleted, or not all of it can be read.
            state = from_json(State, head.record.state)
            if knowledge is not None:
                knowledge = from_json(type(knowledge), head.record.knowledge)
        if awaited and isinstance(head.record, awaited[0]):
            awaited = awaited[1:]
        if lost:
            awaited = RESUMING
            lost.clear()
        for entry in batch:
            state = advance(state, entry.record)
            try:
                knowledge = learn(mind.policy, knowledge, entry.record)
            except PolicyError as error:  # the loop goes on without this record, as the live one did
                failures.setdefault(entry.step, Failure(entry.step, first_line(error)))
    return Replayed(job, steps, tuple(differences), tuple(recorded_failures), tuple(failures.values()), skipped)


def _mind(run: Run, make_policy: Callable[[Run], Policy[Any]]) -> Mind[Any]:
    return Mind(make_policy(run), run.spec, run.slo, run.guards, run.seed)


def _batches(journal: Journal, job: str, lost: list[UnreadableRecord]) -> Iterator[list[Entry]]:
    """Group the records of one turn: a window with all that followed from it; everything else stands alone.

    `lost` gets the records up to the next batch that cannot be read.
    """
    batch: list[Entry] = []
    for entry in journal.read(job, skip=lost.append):
        if batch and not (isinstance(entry.record, THOUGHT) and entry.step == batch[0].step):
            yield batch
            batch = []
        batch.append(entry)
    if batch:
        yield batch


def alike(one: Sequence[Record], other: Sequence[Record]) -> bool:
    """Whether two lists of records are the same, up to the rounding of another processor."""
    if one == other:
        return True
    kinds = [type(record) for record in one] == [type(record) for record in other]
    return kinds and all(
        _close(json.loads(to_json(a)), json.loads(to_json(b))) for a, b in zip(one, other, strict=True)
    )


def _close(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_close(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_close, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=SAME)
    return bool(one == other)
