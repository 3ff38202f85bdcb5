"""What measured sizes say about a plan, whatever the model says.

A model smooths: its median may promise a rate at a size that was measured and did not sustain it. A plan must not. For
one memory profile and one rate, every measured size either sustained the rate on average or did not, and

- no size is planned that was measured and did not sustain the rate, or whose every run failed;
- no smaller size than one that did not sustain it is planned, unless that very size was measured and did;
- no larger size than one that sustained it is planned, unless a size between them did not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rheostat.job.decision import Interval
from rheostat.job.plan import Estimate, Plan
from rheostat.planner.failures import TRIES
from rheostat.planner.verification import NOT_SUSTAINED, SUSTAINED


@dataclass(frozen=True, slots=True)
class Production:
    """A size that ran at a rate and sustained it, or did not: a bound of its capacity."""

    slots: int
    memory_mb: int | None
    rate_per_s: float
    sustained: bool


def production_runs(plans: Sequence[Plan]) -> list[Production]:
    """Return the runs of verified plans."""
    return [
        Production(
            plan.allocation.slots,
            plan.allocation.memory_mb,
            plan.rate_per_s * float(share.rstrip("%")) / 100,
            verdict == SUSTAINED,
        )
        for plan in plans
        for share, verdict in plan.verified.items()
        if verdict in (SUSTAINED, NOT_SUSTAINED)
    ]


@dataclass(frozen=True)
class Evidence:
    """The measurements with one memory profile."""

    rates_per_s: Mapping[int, float]
    """Size -> mean sustained rate, or what the injector could send."""
    lower_bounds: frozenset[int]
    """Sizes at which only the injector's limit was measured."""
    failed: frozenset[int]
    """Sizes at which every run failed."""
    top: float
    """Size from which on every size failed, more than once; infinite if there is none."""
    sustained: Mapping[int, float]
    """Size -> highest rate that it sustained in production."""
    refused: Mapping[int, float]
    """Size -> lowest rate that it did not sustain in production."""

    @staticmethod
    def of(
        estimates: Sequence[Estimate],
        good: Sequence[Estimate],
        memory_mb: int | None,
        production: Sequence[Production] = (),
    ) -> Evidence:
        """Return the evidence of all estimates, of which `good` are believed, and of production runs."""
        own = [e for e in estimates if e.memory_mb == memory_mb]
        rates: dict[int, float] = {}
        limited = {e.slots: e.rate_per_s.low for e in own if e.limited_by == "injector" and e.rate_per_s is not None}
        for slots in sorted({e.slots for e in good if e.memory_mb == memory_mb}):
            each = [e.middle_per_s for e in good if e.memory_mb == memory_mb and e.slots == slots]
            rates[slots] = float(np.exp(np.mean(np.log(each))))
        bounds = {slots: rate for slots, rate in limited.items() if slots not in rates}
        runs: dict[int, list[bool]] = {}
        for e in own:
            runs.setdefault(e.slots, []).append(e.problem is not None)
        failed = frozenset(slots for slots, each in runs.items() if all(each))
        beyond = [s for s in failed if s > max(rates | bounds, default=0) and len(runs[s]) >= TRIES]
        ran: dict[bool, dict[int, list[float]]] = {True: {}, False: {}}
        for one in production:
            if one.memory_mb == memory_mb:
                ran[one.sustained].setdefault(one.slots, []).append(one.rate_per_s)
        sustained = {slots: max(each) for slots, each in ran[True].items()}
        refused = {slots: min(each) for slots, each in ran[False].items()}
        top = min(beyond, default=math.inf)
        return Evidence(rates | bounds, frozenset(bounds), failed, top, sustained, refused)

    def enough(self, slots: int, wanted_per_s: float) -> bool | None:
        """Return whether a size sustains a rate; None if nothing says so."""
        if self.refused.get(slots, math.inf) <= wanted_per_s:
            return False
        if self.sustained.get(slots, 0.0) >= wanted_per_s:
            return True
        rate = self.rates_per_s.get(slots)
        if rate is None or (rate < wanted_per_s and slots in self.lower_bounds):
            return None
        return rate >= wanted_per_s

    def bound(self, slots: int, modelled: Interval) -> Interval:
        """Return the rate of a size: it holds the measured mean, and what production showed."""
        low, middle, high = modelled.low, modelled.middle, modelled.high
        measured = self.rates_per_s.get(slots)
        if measured is not None and slots not in self.lower_bounds and not modelled.holds(measured):
            low, middle, high = min(low, measured), measured, max(high, measured)
        least, most = self.sustained.get(slots, 0.0), self.refused.get(slots, math.inf)
        if least > most:
            # The same size did and did not sustain its rate: production varies as much.
            return Interval(min(low, most), middle, max(high, least))
        low, middle, high = (min(max(rate, least), most) for rate in (low, middle, high))
        return Interval(low, middle, high)

    def size(self, modelled: float, wanted_per_s: float, reaching: Callable[[int], float]) -> float:
        """Return the size for a rate: the modelled one, moved where measurements exclude it.

        `reaching` returns the smallest size, from a least one on, that reaches the rate by the model.
        """
        sizes = sorted({*self.rates_per_s, *self.sustained, *self.refused})
        enough = [s for s in sizes if self.enough(s, wanted_per_s)]
        short = [s for s in sizes if self.enough(s, wanted_per_s) is False]
        too_small = max(short, default=0)
        proved = [s for s in enough if s > too_small]
        if proved:
            size = min(max(modelled, too_small + 1), float(min(proved)))
        else:
            size = modelled if modelled > too_small else reaching(too_small + 1)
            if enough and (math.isinf(size) or size >= self.top):
                # Larger sizes sustain less: the smallest of the largest unbroken range that is enough.
                below = max((s for s in short if s < max(enough)), default=0)
                return float(min(s for s in enough if s > below))
        while size in self.failed:
            size += 1
        return math.inf if size >= self.top else size
