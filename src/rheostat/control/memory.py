"""What a controller remembers: state and knowledge as folds over the journal, from the newest snapshot on.

Whatever the journal holds, a controller starts: a snapshot of another shape is passed over for an older one, a record
that cannot be read is skipped, and so is one that the policy cannot learn from. Each is reported.
"""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from typing import Any, TypeVar

from rheostat.control.cycle import Mind, State, advance, identity, learn
from rheostat.errors import InvalidValue, PolicyError, UnreadableRecord, describe, plain_text
from rheostat.job.frozen import from_json, to_json
from rheostat.job.record import Snapshot
from rheostat.ports import Entry, Journal, Policy

K = TypeVar("K")
T = TypeVar("T")

log = logging.getLogger(__name__)

SNAPSHOTS_TRIED = 5
"""Newest snapshots that are tried before the last records are folded without one."""
TAIL = 50_000
"""Last records that are folded where no snapshot helps: of two days at a decision every 10 s."""


def snapshot(state: State, knowledge: object, at_s: float) -> Snapshot:
    """Return all records so far as one record; raises PolicyError where the knowledge cannot be written."""
    try:
        text = to_json(knowledge)
    except Exception as error:
        raise PolicyError(f"no snapshot: the policy's knowledge cannot be written: {describe(error)}") from error
    return Snapshot(at_s, state.step, to_json(state), text)


def remember(journal: Journal, mind: Mind[K]) -> tuple[State, K]:
    """Fold the journal into state and knowledge, from the newest readable snapshot on.

    A policy that takes over learns from the last records: the knowledge of another one means nothing to it.
    """
    job, policy = mind.spec.name, mind.policy
    found = _newest_snapshot(journal, job)
    state, after, text = found if found is not None else (State(), journal.tail(job, TAIL), None)
    same = text is not None and state.policy == identity(policy.name, policy.options())
    for entry in journal.read(job, after, skip=lambda error: _report(job, error)):
        try:
            # Where records are missing, their steps are still counted.
            state = advance(replace(state, step=max(state.step, entry.step)), entry.record)
        except Exception as error:  # noqa: BLE001 - a record that was changed by hand may hold anything
            _report(job, error, f"record {entry.number} cannot be folded and is skipped: ")
    if same and text is not None:
        knowledge = policy.initial()
        try:
            knowledge = knowledge if knowledge is None else _decode(type(knowledge), text)
            return state, _learn(journal, job, policy, knowledge, after)
        except Exception as error:  # noqa: BLE001 - as above
            _report(job, error, f"the knowledge in snapshot {after} has another shape: ")
    return state, learn_tail(journal, job, policy)


def learn_tail(journal: Journal, job: str, policy: Policy[K], before: int | None = None) -> K:
    """Return what a policy that takes over learns: from the last records, up to a number where one is given."""
    return _learn(journal, job, policy, policy.initial(), journal.tail(job, TAIL, before), before)


def _learn(journal: Journal, job: str, policy: Policy[K], knowledge: K, after: int, before: int | None = None) -> K:
    for entry in journal.read(job, after, skip=lambda _: None):
        if before is not None and entry.number >= before:
            break
        try:
            knowledge = learn(policy, knowledge, entry.record)
        except PolicyError as error:
            _report(job, error, f"record {entry.number}: ")
    return knowledge


def _newest_snapshot(journal: Journal, job: str) -> tuple[State, int, str] | None:
    """Return state, number and encoded knowledge of the newest snapshot whose state can be read; None without one."""
    before: int | None = None
    for _ in range(SNAPSHOTS_TRIED):
        entry = newest(journal, job, "snapshot", before)
        if entry is None or not isinstance(entry.record, Snapshot):
            return None
        before = entry.number
        try:
            return _decode(State, entry.record.state), entry.number, entry.record.knowledge
        except Exception as error:  # noqa: BLE001 - a snapshot may hold anything
            _report(job, error, f"snapshot {entry.number} has another shape and is passed over: ")
    return None


def newest(journal: Journal, job: str, kind: str, before: int | None = None) -> Entry | None:
    """Return the newest record of a kind that can be read, of the last few; None without one."""
    for _ in range(SNAPSHOTS_TRIED):
        try:
            return journal.latest(job, kind, before)
        except UnreadableRecord as error:
            _report(job, error)
            before = error.number
    return None


def _decode(kind: type[T], text: str) -> T:
    """Decode a part of a snapshot; InvalidValue where it holds anything that this version does not."""
    value = from_json(kind, text)
    if not _holds(json.loads(to_json(value)), json.loads(text)):
        raise InvalidValue(f"cannot read {kind.__name__}: it has keys of another version")
    return value


def _holds(value: Any, stored: Any) -> bool:
    """Whether a JSON value has all that was stored; a key that is new in this version is no loss."""
    if isinstance(stored, dict):
        return isinstance(value, dict) and all(key in value and _holds(value[key], stored[key]) for key in stored)
    if isinstance(stored, list):
        return isinstance(value, list) and len(value) == len(stored) and all(map(_holds, value, stored))
    return bool(value == stored)


def _report(job: str, error: Exception, what: str = "") -> None:
    log.warning("%s: %s%s", job, what, plain_text(error))
