"""Memory profiles as regimes: profiles that behave alike are learned together, a profile that collapses alone.

StreamBed's joins lose most of their rate below 2 GB per task (section VIII), which no smooth law in the memory
describes. So a regime is a range of neighbouring profiles between two change points. A change point lies where the
rate at the same sizes differs by more than half from one profile to the next. Within a regime every profile has a
level of its own. Nothing is assumed about a profile that was not measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rheostat.job.plan import Estimate

CHANGE = math.log(1.5)
"""Distance of the rates of neighbouring profiles, in logarithms, from which on they are two regimes."""


def regimes(good: Sequence[Estimate]) -> list[list[Estimate]]:
    """Split usable estimates into regimes, the one with the most memory first."""
    profiles = sorted({e.memory_mb for e in good}, key=lambda memory: -(memory or 0))
    groups: list[list[Estimate]] = []
    for memory in profiles:
        own = [e for e in good if e.memory_mb == memory]
        if groups and abs(_distance(own, groups[-1])) <= CHANGE:
            groups[-1] += own
        else:
            groups.append(own)
    return groups


def regime_of(good: Sequence[Estimate], memory_mb: int | None) -> list[Estimate]:
    """Return the estimates of a profile's regime; none if the profile was not measured."""
    return next((group for group in regimes(good) if any(e.memory_mb == memory_mb for e in group)), [])


def _distance(own: Sequence[Estimate], others: Sequence[Estimate]) -> float:
    """Return the median distance of rates from the others' at the same sizes, in logarithms.

    Beyond the others' sizes the nearest rate per slot is compared.
    """
    means = {math.log(s): np.mean([math.log(e.middle_per_s / s) for e in others if e.slots == s])
             for s in sorted({e.slots for e in others})}  # fmt: skip
    x, y = np.array(list(means)), np.array(list(means.values()), dtype=float)
    off = [math.log(e.middle_per_s / e.slots) - float(np.interp(math.log(e.slots), x, y)) for e in own]
    return float(np.median(off))
