"""The paper's production runs as the truth of its recorded small runs (section VIII, Figure 11).

Each ran Table IV's size at 100, 120 and 150 % of the request: a bracket of the highest rate that was sustained and the
lowest that was not. q11's text does not say what happened at 120 %, and q8 ran at 100 and 150 % only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rheostat.job.decision import Interval
from rheostat.lab.papers.streambed.paper import QUERIES, SLOTS_PER_MANAGER
from rheostat.lab.papers.streambed.recordings import Recorded
from rheostat.planner.evidence import Production
from rheostat.planner.failures import drop_doubtful
from rheostat.planner.memory import regime_of
from rheostat.planner.scaling import Scaling

SUSTAINED = 1.0
FAILED: Mapping[str, float] = {"q1": 1.2, "q2": 1.2, "q5": 1.2, "q8": 1.5, "q11": 1.5}
"""Lowest share of the request that the text says was not sustained."""


@dataclass(frozen=True)
class Bracket:
    """One production run, and our interval of its rate from the recorded small runs alone."""

    query: str
    gb: float
    slots: int
    sustained_per_s: float
    failed_per_s: float
    predicted: Interval

    @property
    def covered(self) -> bool:
        """Whether the interval meets the bracket."""
        return self.predicted.high >= self.sustained_per_s and self.predicted.low <= self.failed_per_s


def brackets(query: str, small: Recorded) -> Iterator[Bracket]:
    """Yield a query's production runs, one per memory profile that has small runs."""
    settings, good = QUERIES[query], drop_doubtful(small.estimates)
    for gb, slots in settings.slots.items():
        memory = _manager_mb(gb)
        if runs := regime_of(good, memory):
            rate = settings.rate_per_s
            predicted = Scaling.fit(runs).rate_per_s(slots, memory)
            yield Bracket(query, gb, slots, SUSTAINED * rate, FAILED[query] * rate, predicted)


def with_other_profile(query: str, small: Recorded) -> Interval:
    """Return our interval with the most memory, from the small runs and the production run of the next profile."""
    settings, good = QUERIES[query], drop_doubtful(small.estimates)
    other, most = sorted(settings.slots)[-2:]
    seen = [
        Production(settings.slots[other], _manager_mb(other), share * settings.rate_per_s, share == SUSTAINED)
        for share in (SUSTAINED, FAILED[query])
    ]
    memory = _manager_mb(most)
    return Scaling.fit(regime_of(good, memory), production=seen).rate_per_s(settings.slots[most], memory)


def _manager_mb(gb: float) -> int:
    """Return the memory of a task manager, as in the recorded measurements."""
    return round(1024 * gb * SLOTS_PER_MANAGER)
