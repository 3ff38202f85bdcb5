"""Target capacities: the multipliers of Eq 15, the online saddle point (Eq 14) and online gradient descent (Eq 16).

With any positive multiplier the Lagrangian of Eq 13 grows without end in y_i, so Eq 14 has no maximum. As printed, the
target is then above every capacity, and Eq 18 selects the size with the largest μ + β σ². Ours subtracts a proximal
term, γ |y - y°|² / 2 around y°, the smallest capacities that limit nothing, and the margin. The maximum is then
y_i = y°_i + λ_i / γ: λ / γ is the queue that Eq 15 integrates, and the next step works it off. The records of a queue
pass every operator, so the longest one counts for the whole job (`catch_up`). Fit (Eq 12) bounds the unprocessed
records only from above: where the sources' backlog is measured, no queue is longer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rheostat.job.observation import Observation
from rheostat.model.capacity import Floats
from rheostat.model.loglog import LogLog
from rheostat.policy.dragster.tally import Size, samples
from rheostat.policy.dragster.throughput import Dataflow
from rheostat.policy.dragster.ucb import Posterior

MOST_CATCH_UP = 0.5
"""Largest catch-up capacity, as a share of the load."""


@dataclass(frozen=True)
class View:
    """Demand, capacity and candidate sizes of one operator. Rates count input records."""

    tasks: int
    sampled: tuple[Size, ...]
    sizes: tuple[int, ...]
    """The candidates: X of Eq 18."""
    demand_per_s: float
    """Least capacity that limits nothing."""
    wanted_per_s: float
    """The demand plus margin and catch-up capacity (ours)."""
    unit_per_s: float
    """Its peak load, or its largest capacity if that is more."""
    capacity_per_s: float
    """c_i(t): its present capacity."""
    per_record: float
    """Output records per input record."""
    posterior: Posterior | None = None
    """Eq 17; None without samples."""

    def capacity_curve(self) -> Floats:
        """Return the capacity that our model expects at every candidate size; the paper's does not extrapolate."""
        if not self.sampled:
            return np.ones(len(self.sizes))
        curve = LogLog.fit(samples(self.sampled)).curve(self.sizes[-1]).capacity_per_s
        at_sizes: Floats = curve[np.array(self.sizes) - 1]
        return at_sizes


def demand(flow: Dataflow, name: str) -> float:
    """Return the least input capacity of an operator that limits nothing (Eq 14 without multipliers)."""
    received, output = sum(flow.full.received[name]), flow.full_output(name)
    # Above its input if the configured weights split its capacity badly.
    return received * (flow.sufficient[name] / output if output > 0 else 1.0)


def step_size(windows: int) -> float:
    """Return γ of Theorem 1."""
    return 1.0 / math.sqrt(max(windows, 1))


def dual_step(flow: Dataflow, views: Mapping[str, View], before: Mapping[str, float], gamma: float) -> dict[str, float]:
    """Return λ(t) of Eq 15 from the running capacities, with l_i in peak loads."""
    output_capacity = {n: v.capacity_per_s * v.per_record for n, v in views.items() if v.capacity_per_s > 0}
    lacking = flow.lacking(output_capacity)
    multipliers = {}
    for name, view in views.items():
        short = lacking.get(name, 0.0) / (view.unit_per_s * view.per_record) if view.unit_per_s > 0 else 0.0
        multipliers[name] = max(0.0, float(before.get(name, 0.0)) + gamma * short)  # Eq 15
    return multipliers


def saddle_point(views: Mapping[str, View], multipliers: Mapping[str, float]) -> dict[str, float]:
    """Return y_t of Eq 14: the wanted capacity, or the largest one there is where a multiplier is positive.

    Ours passes no multipliers: they are in the wanted capacity.
    """
    targets = {}
    for name, view in views.items():
        largest = float(view.posterior.mean.max()) * view.unit_per_s if view.posterior else 0.0
        targets[name] = max(view.wanted_per_s, largest) if multipliers.get(name) else view.wanted_per_s
    return targets


def gradient_step(
    flow: Dataflow,
    views: Mapping[str, View],
    multipliers: Mapping[str, float],
    before: Mapping[str, float],
    eta: float,
    descends: bool,
) -> dict[str, float]:
    """Return y_t of Eq 16, in steps of peak loads.

    With `descends` (ours) it stops at the wanted capacity, and above it falls by η.
    """
    now = {n: float(before.get(n, 0.0)) or v.capacity_per_s for n, v in views.items() if v.unit_per_s > 0}
    scale = {name: views[name].unit_per_s * views[name].per_record for name in now}
    most = flow.full.throughput_per_s
    slopes = flow.slopes(
        {name: per_s * views[name].per_record for name, per_s in now.items()},
        {name: multipliers.get(name, 0.0) / scale[name] for name in now},
        1.0 / most if most > 0 else 0.0,
    )
    targets = dict.fromkeys(views, 0.0)
    for name, per_s in now.items():
        view = views[name]
        targets[name] = max(0.0, per_s + eta * slopes[name] * scale[name] * view.unit_per_s)  # Eq 16
        if descends and per_s > view.wanted_per_s:
            targets[name] = max(view.wanted_per_s, per_s - eta * view.unit_per_s)
        elif descends:
            targets[name] = min(view.wanted_per_s, targets[name])
    return targets


# -- ours ---------------------------------------------------------------------------------------------------------


def catch_up(
    views: Mapping[str, View], multipliers: Mapping[str, float], gamma: float, window: Observation, margin: float
) -> float:
    """Return the capacity that works off the longest queue in one step, as a share of the load.

    None, where the margin does so.
    """
    queues = [multipliers[n] / gamma * v.unit_per_s / v.demand_per_s for n, v in views.items() if v.demand_per_s > 0]
    longest = max(queues, default=0.0)
    waiting, arriving = [s.backlog for s in window.sources], sum(s.rate_per_s or 0.0 for s in window.sources)
    seconds = window.end_s - window.start_s
    if None not in waiting and arriving * seconds > 0:
        longest = min(longest, sum(backlog or 0.0 for backlog in waiting) / (arriving * seconds))
    return min(longest, MOST_CATCH_UP) if longest > margin else 0.0
