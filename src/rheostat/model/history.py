"""H^t: the measured capacities of every operator, folded from the journal, so they survive a tuning and a restart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rheostat.job.frozen import FrozenMap, put
from rheostat.job.observation import Change, Observation, Status
from rheostat.job.plan import Estimate
from rheostat.job.record import Record, Run
from rheostat.model.capacity import Sample

MAX_SAMPLES_PER_SIZE = 5
"""Newest samples of one size that are retained; ContTune's published example averages five."""
MAX_SIZES = 24
"""Last observed sizes of one operator that are retained, so that the cost of a decision does not grow with the job's
age."""


@dataclass(frozen=True)
class History:
    """Samples of every tunable operator, oldest first."""

    operators: Mapping[str, tuple[Sample, ...]] = field(default_factory=FrozenMap)
    most_tasks: Mapping[str, int] = field(default_factory=FrozenMap)
    """Largest observed size of each operator."""
    windows: int = 0
    """Windows folded so far."""

    def __post_init__(self) -> None:
        put(self, operators=FrozenMap(self.operators), most_tasks=FrozenMap(self.most_tasks))

    def samples(self, operator: str) -> tuple[Sample, ...]:
        """Return one operator's samples; an operator without any has none."""
        return self.operators.get(operator, ())


def fold(history: History, record: Record) -> History:
    """Return the history after one more record: a window adds samples, a new graph removes operators that left it."""
    match record:
        case Run():
            names = record.spec.tunable_names
            return History(
                {name: samples for name, samples in history.operators.items() if name in names},
                {name: most for name, most in history.most_tasks.items() if name in names},
                history.windows,
            )
        case Observation() if can_learn_from(record):
            return _add_window(history, record)
        case Estimate() if record.usable and record.observation is not None and can_learn_from(record.observation):
            # A controller starts with the capacities that planning measured before the first start.
            return _add_window(history, record.observation)
    return history


def can_learn_from(window: Observation) -> bool:
    """Whether a window shows capacities: it has no problem, and no failure or change happened in it."""
    return (
        window.usable
        and window.running is not None
        and window.status is Status.RUNNING
        and window.change is Change.NONE
    )


def _add_window(history: History, window: Observation) -> History:
    assert window.running is not None
    operators, most, number = dict(history.operators), dict(history.most_tasks), history.windows + 1
    for name, tasks in window.running.tasks.items():
        reading = window.operator(name)
        if reading.true_rate_per_s and reading.tasks == tasks:
            sample = Sample(tasks, reading.true_rate_per_s * tasks, number)
            operators[name] = _drop_oldest((*history.samples(name), sample))
            most[name] = max(most.get(name, 0), tasks)
    return History(operators, most, number)


def _drop_oldest(samples: tuple[Sample, ...]) -> tuple[Sample, ...]:
    """Drop the oldest sample of a size, or the oldest size, if the newest sample exceeds a maximum."""
    size = samples[-1].tasks
    same = [sample for sample in samples if sample.tasks == size]
    if len(same) > MAX_SAMPLES_PER_SIZE:
        return tuple(sample for sample in samples if sample is not same[0])
    newest = {sample.tasks: sample.number for sample in samples}
    if len(newest) > MAX_SIZES:
        forgotten = min(newest, key=lambda tasks: newest[tasks])
        return tuple(sample for sample in samples if sample.tasks != forgotten)
    return samples
