"""Mean capacity and number of samples of every size: sufficient statistics under Gaussian noise, in constant memory.

`History` retains the newest few samples of a size, for models that detect drift. A bandit whose regret vanishes must
average without end; here a mean counts up to `MOST_COUNTED` samples, and afterwards a new one weighs 1 / that.
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
"""Most samples in a mean."""


@dataclass(frozen=True, slots=True)
class Size:
    """One size of one operator."""

    tasks: int
    count: int
    capacity_per_s: float
    """Mean of the samples."""
    number: int
    """Number of the last window with this size."""


@dataclass(frozen=True)
class Tally:
    """Sizes of every tunable operator, the last observed one at the end."""

    operators: Mapping[str, tuple[Size, ...]] = field(default_factory=FrozenMap)
    windows: int = 0
    """Windows folded so far: the paper's t."""

    def __post_init__(self) -> None:
        put(self, operators=FrozenMap(self.operators))

    def sizes(self, operator: str) -> tuple[Size, ...]:
        """Return the observed sizes of one operator."""
        return self.operators.get(operator, ())


def fold_tally(tally: Tally, record: Record) -> Tally:
    """Return the tally after one more record: a window adds samples, a new graph removes operators that left it."""
    match record:
        case Run():
            names = record.spec.tunable_names
            return Tally({name: sizes for name, sizes in tally.operators.items() if name in names}, tally.windows)
        case Observation() if can_learn_from(record):
            return _add_window(tally, record)
    return tally


def samples(sizes: tuple[Size, ...]) -> tuple[Sample, ...]:
    """Return one sample per size, its mean, for models that need samples."""
    return tuple(Sample(size.tasks, size.capacity_per_s, size.number) for size in sizes)


def _add_window(tally: Tally, window: Observation) -> Tally:
    assert window.running is not None
    operators, number = dict(tally.operators), tally.windows + 1
    for name, tasks in window.running.tasks.items():
        reading = window.operator(name)
        if reading.capacity_per_s and reading.tasks == tasks:
            before = next((size for size in tally.sizes(name) if size.tasks == tasks), Size(tasks, 0, 0.0, number))
            count = min(before.count + 1, MOST_COUNTED)
            mean = before.capacity_per_s + (reading.capacity_per_s - before.capacity_per_s) / count
            others = [size for size in tally.sizes(name) if size.tasks != tasks]
            operators[name] = (*others, Size(tasks, count, mean, number))[-MAX_SIZES:]
    return Tally(operators, number)
