"""Mean capacity and number of samples of every size: sufficient statistics under Gaussian noise, in constant memory.

`History` retains the newest few samples of a size, for models that detect drift. A bandit whose regret vanishes must
average without end, as Eq 17 does. Averages without end do not notice that capacities change. So (ours) Page's test
watches every operator's samples: while they agree with their means, a mean counts up to `MOST_COUNTED` samples. Once
they leave them, the newest sample replaces its mean, and the other sizes move by the same ratio, as one sample each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from rheostat.job.frozen import FrozenMap, put
from rheostat.job.observation import Observation
from rheostat.job.record import Record, Run
from rheostat.model.capacity import Sample
from rheostat.model.history import MAX_SIZES, can_learn_from

MOST_COUNTED = 100
"""Most samples in a mean, and in an estimate of the noise."""
FIRST_NOISE, FIRST_SAMPLES = 0.03, 5
"""Prior of the noise of a sample, as a share of the capacity, and the samples that it counts as."""
LARGEST = 4.0
"""Deviations beyond this many noises count as this: a single odd sample changes nothing."""
ALLOWED, ALARM = 1.0, 5.0
"""Page's test in noises: the part of a deviation that does not add up, and the sum that is a change."""


@dataclass(frozen=True, slots=True)
class Size:
    """One size of one operator."""

    tasks: int
    count: int
    capacity_per_s: float
    """Mean of the samples."""
    number: int
    """Number of the last window with this size."""


@dataclass(frozen=True, slots=True)
class Watch:
    """Page's test for one operator: whether its samples still scatter around their means."""

    count: int = 0
    variance: float = 0.0
    """Mean squared deviation of a sample from the mean of its size, as a share of it."""
    above: float = 0.0
    below: float = 0.0
    """Sums of the deviations to either side, in noises."""

    def fold(self, sample_per_s: float, size: Size) -> tuple[Watch, bool]:
        """Return the test after a sample of a known size, and whether the capacity has changed."""
        off = (sample_per_s / size.capacity_per_s - 1.0) / math.sqrt(1.0 + 1.0 / size.count)
        prior = FIRST_SAMPLES * FIRST_NOISE**2
        noise = math.sqrt((prior + self.count * self.variance) / (FIRST_SAMPLES + self.count))
        noises = min(max(off / noise, -LARGEST), LARGEST)
        above, below = max(0.0, self.above + noises - ALLOWED), max(0.0, self.below - noises - ALLOWED)
        count = min(self.count + 1, MOST_COUNTED)
        variance = self.variance + ((noises * noise) ** 2 - self.variance) / count
        if max(above, below) > ALARM:
            return Watch(self.count, self.variance), True
        return Watch(count, variance, above, below), False


@dataclass(frozen=True)
class Tally:
    """Sizes of every tunable operator, the last observed one at the end."""

    operators: Mapping[str, tuple[Size, ...]] = field(default_factory=FrozenMap)
    windows: int = 0
    """Windows folded so far: the paper's t."""
    watches: Mapping[str, Watch] = field(default_factory=FrozenMap)

    def __post_init__(self) -> None:
        put(self, operators=FrozenMap(self.operators), watches=FrozenMap(self.watches))

    def sizes(self, operator: str) -> tuple[Size, ...]:
        """Return the observed sizes of one operator."""
        return self.operators.get(operator, ())


def fold_tally(tally: Tally, record: Record, forgets: bool = True) -> Tally:
    """Return the tally after one more record: a window adds samples, a new graph removes operators that left it.

    Without `forgets` every sample counts the same for ever, as in Eq 17.
    """
    match record:
        case Run():
            names = record.spec.tunable_names
            return Tally(
                {name: sizes for name, sizes in tally.operators.items() if name in names},
                tally.windows,
                {name: watch for name, watch in tally.watches.items() if name in names},
            )
        case Observation() if can_learn_from(record):
            return _add_window(tally, record, forgets)
    return tally


def samples(sizes: tuple[Size, ...]) -> tuple[Sample, ...]:
    """Return one sample per size, its mean, for models that need samples."""
    return tuple(Sample(size.tasks, size.capacity_per_s, size.number) for size in sizes)


def _add_window(tally: Tally, window: Observation, forgets: bool) -> Tally:
    assert window.running is not None
    operators, watches, number = dict(tally.operators), dict(tally.watches), tally.windows + 1
    for name, tasks in window.running.tasks.items():
        reading = window.operator(name)
        if not reading.capacity_per_s or reading.tasks != tasks:
            continue
        sample, sizes = reading.capacity_per_s, tally.sizes(name)
        before = next((size for size in sizes if size.tasks == tasks), None)
        others = tuple(size for size in sizes if size.tasks != tasks)
        changed = False
        if before is not None and forgets:
            watches[name], changed = watches.get(name, Watch()).fold(sample, before)
        if before is None or changed:
            now = Size(tasks, 1, sample, number)
        else:
            count = before.count + 1 if not forgets else min(before.count + 1, MOST_COUNTED)
            mean = before.capacity_per_s + (sample - before.capacity_per_s) / count
            now = Size(tasks, count, mean, number)
        if before is not None and changed:
            ratio = sample / before.capacity_per_s
            others = tuple(Size(each.tasks, 1, ratio * each.capacity_per_s, each.number) for each in others)
        operators[name] = (*others, now)[-MAX_SIZES:]
    return Tally(operators, number, watches)
