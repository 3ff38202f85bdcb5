"""H^t: what every operator was seen to do, folded from the journal, so that it outlives a tuning and a restart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rheostat.job.frozen import FrozenMap, put
from rheostat.job.observation import Change, Observation, Status
from rheostat.job.plan import Estimate
from rheostat.job.record import Record, Run
from rheostat.model.capacity import Sample

KEPT_PER_SIZE = 5
"""Newest observations of one size that are kept; ContTune's published example averages five."""
KEPT_SIZES = 24
"""Sizes of one operator that are kept, those seen last: a decision's cost must not grow with the job's age."""


@dataclass(frozen=True)
class History:
    """Samples of every tunable operator, oldest first."""

    operators: Mapping[str, tuple[Sample, ...]] = field(default_factory=FrozenMap)
    most_tasks: Mapping[str, int] = field(default_factory=FrozenMap)
    """The largest size that each operator was seen at."""
    seen: int = 0

    def __post_init__(self) -> None:
        put(self, operators=FrozenMap(self.operators), most_tasks=FrozenMap(self.most_tasks))

    def samples(self, operator: str) -> tuple[Sample, ...]:
        """Return one operator's samples; an operator that was never seen has none."""
        return self.operators.get(operator, ())


def fold(history: History, record: Record) -> History:
    """Fold one record in: a window adds a sample per operator, another graph takes away what it no longer has."""
    match record:
        case Run():
            names = record.spec.tunable_names
            return History(
                {name: kept for name, kept in history.operators.items() if name in names},
                {name: most for name, most in history.most_tasks.items() if name in names},
                history.seen,
            )
        case Observation() if teaches(record):
            return _learned(history, record)
        case Estimate() if record.usable and record.observation is not None and teaches(record.observation):
            # What planning measured before the first start is where a controller begins.
            return _learned(history, record.observation)
    return history


def teaches(window: Observation) -> bool:
    """Whether capacities may be learned from a window: not from one with a problem, a failure or a change in it."""
    return (
        window.usable
        and window.running is not None
        and window.status is Status.RUNNING
        and window.change is Change.NONE
    )


def _learned(history: History, window: Observation) -> History:
    assert window.running is not None
    operators, most, seen = dict(history.operators), dict(history.most_tasks), history.seen + 1
    for name, tasks in window.running.tasks.items():
        reading = window.operator(name)
        if reading.true_rate_per_s and reading.tasks == tasks:
            operators[name] = _kept((*history.samples(name), Sample(tasks, reading.true_rate_per_s * tasks, seen)))
            most[name] = max(most.get(name, 0), tasks)
    return History(operators, most, seen)


def _kept(samples: tuple[Sample, ...]) -> tuple[Sample, ...]:
    """Return what is kept after the last sample was added: at most one sample, or one size, has to go."""
    size = samples[-1].tasks
    same = [sample for sample in samples if sample.tasks == size]
    if len(same) > KEPT_PER_SIZE:
        return tuple(sample for sample in samples if sample is not same[0])
    newest = {sample.tasks: sample.number for sample in samples}
    if len(newest) > KEPT_SIZES:
        forgotten = min(newest, key=lambda tasks: newest[tasks])
        return tuple(sample for sample in samples if sample.tasks != forgotten)
    return samples
