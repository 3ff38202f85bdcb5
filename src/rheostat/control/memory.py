"""What a controller remembers: state and knowledge as folds over the journal, from the newest snapshot on."""

from __future__ import annotations

from typing import TypeVar

from rheostat.control.cycle import Mind, State, advance, identity, learn
from rheostat.job.frozen import from_json, to_json
from rheostat.job.record import Snapshot
from rheostat.ports import Journal

K = TypeVar("K")


def snapshot(state: State, knowledge: object, at_s: float) -> Snapshot:
    """Write down what all records so far came to."""
    return Snapshot(at_s, state.step, to_json(state), to_json(knowledge))


def remember(journal: Journal, mind: Mind[K]) -> tuple[State, K]:
    """Fold the journal into state and knowledge, starting at the newest snapshot of the same policy."""
    job, policy = mind.spec.name, mind.policy
    state, knowledge, after = State(), policy.initial(), 0
    latest = journal.latest(job, "snapshot")
    if latest is not None and isinstance(latest.record, Snapshot):
        kept = from_json(State, latest.record.state)
        if kept.policy == identity(policy.name, policy.options()):
            state, after = kept, latest.number
            if knowledge is not None:
                knowledge = from_json(type(knowledge), latest.record.knowledge)
    for entry in journal.read(job, after):
        state = advance(state, entry.record)
        knowledge = learn(policy, knowledge, entry.record)
    return state, knowledge
