"""The one cost of all comparisons: slots, seconds over the SLO, and changes, with the same weights on every ground.

    cost = slot-seconds + 10 x peak slots x seconds over the SLO + slot-seconds lost to changes

**Peak slots** are the slots of the smallest allocation that serves the trial's highest load, by the true curves,
without headroom, noise and drift. They are a property of the ground: every policy pays the same for a second over the
SLO, whatever it runs itself. A policy's own peak would make the second cheaper for a policy that never grows. And a
second over the SLO weighs as much in a job of ten slots as in a job of a thousand: ten times the whole job.

Slots that run while a change stops the output are paid twice, as slots and as lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rheostat.engine.simulated.draws import Floats
from rheostat.engine.simulated.plant import Plant
from rheostat.job.allocation import Allocation
from rheostat.job.slo import SLO
from rheostat.lab.experiment.oracle.sizes import peak_allocation
from rheostat.lab.experiment.trial import Trial

OVER_WEIGHT = 10.0
"""Price of a second over the SLO, in seconds of the slots at the peak."""


@dataclass(frozen=True, slots=True)
class Cost:
    """A cost in slot-seconds, by its parts."""

    slot_seconds: float
    over_s: float
    """Seconds over the SLO."""
    lost: float
    """Slot-seconds without output because of changes."""
    peak_slots: float

    @property
    def total(self) -> float:
        """The sum of the parts."""
        return self.slot_seconds + OVER_WEIGHT * self.peak_slots * self.over_s + self.lost


def read_cost(trace: Mapping[str, Floats], slo: SLO, peak_slots: float) -> Cost:
    """Return the cost of a simulated run from its trace."""
    slots = trace["slots"]
    lost = float((slots * trace["changing"]).sum())
    return Cost(float(slots.sum()), float(seconds_over(trace, slo)), lost, peak_slots)


def seconds_over(trace: Mapping[str, Floats], slo: SLO) -> int:
    """Count the seconds in which latency or lag missed its objective."""
    over = np.zeros(len(trace["lag_s"]), dtype=bool)
    if slo.max_latency_s is not None:
        over |= trace["latency_s"] > slo.max_latency_s
    if slo.max_lag_s is not None:
        over |= trace["lag_s"] > slo.max_lag_s
    return int(over.sum())


def peak_size(trial: Trial[Plant]) -> Allocation:
    """Return the allocation whose slots price a second over the SLO."""
    return peak_allocation(trial, headroom=0.0)
