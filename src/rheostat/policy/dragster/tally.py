"""Every size's mean capacity and how often it was seen: all that Gaussian noise leaves to know, in constant memory.

`History` keeps the newest few samples of a size, for models that look for drift. A bandit whose regret is to vanish
must average without end; here a mean counts up to `MOST_COUNTED` samples, and from then on the newest weigh 1 / that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rheostat.job.frozen import FrozenMap, put
from rheostat.job.observation import Observation
from rheostat.job.record import Record, Run
from rheostat.model.capacity import Sample
from rheostat.model.history import MAX_SIZES, can_learn_from

MOST_COUNTED = 100


@dataclass(frozen=True, slots=True)
class Size:
    """One size of one operator."""

    tasks: int
    count: int
    capacity_per_s: float
    """The mean."""
    number: int
    """Which window saw it last."""


@dataclass(frozen=True)
class Tally:
    """Sizes of every tunable operator, the one seen last at the end."""

    operators: Mapping[str, tuple[Size, ...]] = field(default_factory=FrozenMap)
    seen: int = 0
    """Windows: the paper's t."""

    def __post_init__(self) -> None:
        put(self, operators=FrozenMap(self.operators))

    def sizes(self, operator: str) -> tuple[Size, ...]:
        """Return what was seen of one operator."""
        return self.operators.get(operator, ())


def fold_tally(tally: Tally, record: Record) -> Tally:
    """Fold one record in: a window counts for every operator, another graph takes away what it no longer has."""
    match record:
        case Run():
            names = record.spec.tunable_names
            return Tally({name: kept for name, kept in tally.operators.items() if name in names}, tally.seen)
        case Observation() if can_learn_from(record):
            return _counted(tally, record)
    return tally


def samples(sizes: tuple[Size, ...]) -> tuple[Sample, ...]:
    """Return one sample per size, its mean, for models that want samples."""
    return tuple(Sample(size.tasks, size.capacity_per_s, size.number) for size in sizes)


def _counted(tally: Tally, window: Observation) -> Tally:
    assert window.running is not None
    operators, seen = dict(tally.operators), tally.seen + 1
    for name, tasks in window.running.tasks.items():
        reading = window.operator(name)
        if reading.capacity_per_s and reading.tasks == tasks:
            before = next((size for size in tally.sizes(name) if size.tasks == tasks), Size(tasks, 0, 0.0, seen))
            count = min(before.count + 1, MOST_COUNTED)
            mean = before.capacity_per_s + (reading.capacity_per_s - before.capacity_per_s) / count
            others = [size for size in tally.sizes(name) if size.tasks != tasks]
            operators[name] = (*others, Size(tasks, count, mean, seen))[-MAX_SIZES:]
    return Tally(operators, seen)
