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

from rheostat.job.plan import Estimate
from rheostat.planner.failures import TRIES


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

    @staticmethod
    def of(estimates: Sequence[Estimate], good: Sequence[Estimate], memory_mb: int | None) -> Evidence:
        """Return the evidence of all estimates, of which `good` are believed."""
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
        return Evidence(rates | bounds, frozenset(bounds), failed, min(beyond, default=math.inf))

    def size(self, modelled: float, wanted_per_s: float, reaching: Callable[[int], float]) -> float:
        """Return the size for a rate: the modelled one, moved where measurements exclude it.

        `reaching` returns the smallest size, from a least one on, that reaches the rate by the model.
        """
        enough = [s for s, rate in self.rates_per_s.items() if rate >= wanted_per_s]
        short = [s for s, rate in self.rates_per_s.items() if rate < wanted_per_s and s not in self.lower_bounds]
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
