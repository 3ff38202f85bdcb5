"""What a controller remembers: state and knowledge as folds over the journal, from the newest snapshot on.

Whatever the journal holds, a controller starts: a snapshot of another shape is passed over for an older one, a record
that cannot be read is skipped, and so is one that the policy cannot learn from. Each is reported.
"""

from __future__ import annotations

import json
import logging
from typing import Any, TypeVar

from rheostat.control.cycle import Mind, State, advance, identity, learn
from rheostat.errors import InvalidValue, PolicyError, UnreadableRecord, error_text, plain_text
from rheostat.job.frozen import from_json, to_json
from rheostat.job.record import Snapshot
from rheostat.ports import Journal

K = TypeVar("K")
T = TypeVar("T")

log = logging.getLogger(__name__)

SNAPSHOTS_TRIED = 5
"""Newest snapshots that are tried before all records are folded from the first one."""


def snapshot(state: State, knowledge: object, at_s: float) -> Snapshot:
    """Return all records so far as one record; raises PolicyError where the knowledge cannot be written."""
    try:
        text = to_json(knowledge)
    except Exception as error:
        raise PolicyError(f"no snapshot: the policy's knowledge cannot be written: {error_text(error)}") from error
    return Snapshot(at_s, state.step, to_json(state), text)


def remember(journal: Journal, mind: Mind[K]) -> tuple[State, K]:
    """Fold the journal into state and knowledge, starting at the newest readable snapshot of the same policy."""
    job, policy = mind.spec.name, mind.policy
    state, knowledge, after = _newest_snapshot(journal, mind)
    for entry in journal.read(job, after, skip=lambda error: _report(job, error)):
        try:
            state = advance(state, entry.record)
        except Exception as error:  # noqa: BLE001 - a record that was changed by hand may hold anything
            _report(job, error, f"record {entry.number} cannot be folded and is skipped: ")
            continue
        try:
            knowledge = learn(policy, knowledge, entry.record)
        except PolicyError as error:
            _report(job, error, f"record {entry.number}: ")
    return state, knowledge


def _newest_snapshot(journal: Journal, mind: Mind[K]) -> tuple[State, K, int]:
    """Return state, knowledge and number of the newest snapshot that fits; nothing and 0 where none does."""
    job, policy = mind.spec.name, mind.policy
    before: int | None = None
    for _ in range(SNAPSHOTS_TRIED):
        try:
            entry = journal.latest(job, "snapshot", before)
        except UnreadableRecord as error:
            _report(job, error)
            before = error.number
            continue
        if entry is None or not isinstance(entry.record, Snapshot):
            break
        before = entry.number
        try:
            state, knowledge = _decode(State, entry.record.state), policy.initial()
            if state.policy != identity(policy.name, policy.options()):
                break  # of another policy: this one learns from all records
            if knowledge is not None:
                knowledge = _decode(type(knowledge), entry.record.knowledge)
        except Exception as error:  # noqa: BLE001 - as above
            _report(job, error, f"snapshot {entry.number} has another shape and is passed over: ")
            continue
        return state, knowledge, entry.number
    return State(), policy.initial(), 0


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
