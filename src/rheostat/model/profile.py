"""Phoebe's profile: deployments of several sizes under rising rates, and the maximum throughput T_max of each.

Geldenhuys, Scheinert, Kao, Thamsen: "Phoebe: QoS-aware distributed stream processing through anticipating dynamic
workloads", ICWS 2022, section III-C. As long as all deployments keep up, their latencies lie close together. A
deployment that leaves this group has reached its T_max and is released. With fewer than three deployments there is no
majority, so each is compared with a line through its own earlier latencies.

Ours: a deployment that cannot process the rate of the sources has reached its T_max whatever its latency. The
comparison with a deployment's own past also applies with three or more, because all may reach T_max in the same round.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rheostat.job.decision import Measurement
from rheostat.job.frozen import check_number
from rheostat.model.clusters import two_groups

APART = math.log(2.0)
"""Least gap between two groups of log latencies: a factor of two."""
DEVIATES = math.log(2.0)
"""Least gap between a log latency and its prediction from the deployment's past: a factor of two."""
KEEPS_UP = 0.97
"""Least share of the rate that a deployment processes when it keeps up."""
MAJORITY = 3
"""Fewest deployments among which one can leave the group."""
BUSY_SHARE = 0.3
"""Useful time from which on records per useful second show a deployment's capacity."""
LEAST_LATENCY_S = 1e-6
"""Shorter latencies count as this one, since latencies enter as logarithms."""


@dataclass(frozen=True, slots=True)
class Point:
    """One deployment at one rate."""

    scale_out: int
    rate_per_s: float
    throughput_per_s: float
    latency_s: float | None = None
    useful_share: float | None = None
    """Useful time of the busiest operator."""

    def __post_init__(self) -> None:
        check_number("scale_out of a profile", self.scale_out, least=1)
        check_number("rate_per_s of a profile", self.rate_per_s)
        check_number("throughput_per_s of a profile", self.throughput_per_s)
        check_number("latency_s of a profile", self.latency_s)

    @property
    def log_latency(self) -> float | None:
        """The latency's logarithm; None where it was not measured."""
        return None if self.latency_s is None else math.log(max(self.latency_s, LEAST_LATENCY_S))

    @property
    def capacity_per_s(self) -> float:
        """Throughput over useful time if the deployment was busy enough; else the throughput."""
        if self.useful_share is None or self.useful_share < BUSY_SHARE:
            return self.throughput_per_s
        return self.throughput_per_s / min(self.useful_share, 1.0)


@dataclass(frozen=True, slots=True)
class Limit:
    """T_max of one deployment, from the point that revealed it."""

    scale_out: int
    throughput_per_s: float
    capacity_per_s: float


def point_of(measurement: Measurement) -> Point | None:
    """Return a trial's result as a point; None if it has no throughput."""
    window = measurement.observation
    if measurement.problem is not None or window is None or window.running is None:
        return None
    throughput = window.throughput_per_s
    observed = [phase for phase in measurement.trial.phases if phase.observed]
    if throughput is None or not math.isfinite(throughput) or throughput < 0:
        return None
    shares = [o.useful_share for o in window.operators if o.useful_share is not None and o.name in window.running.tasks]
    return Point(
        max(window.running.tasks.values()),
        sum(observed[-1].rates_per_s.values()),
        throughput,
        window.latency.event_p95_s if window.latency else None,
        max(shares) if shares else None,
    )


def find_limits(points: tuple[Point, ...]) -> tuple[Limit, ...]:
    """Return T_max of every deployment that has reached it, smallest scale-out first."""
    limits, _ = _read_rounds(points)
    return tuple(limits[size] for size in sorted(limits))


@lru_cache(maxsize=256)
def _read_rounds(points: tuple[Point, ...]) -> tuple[Mapping[int, Limit], Mapping[int, tuple[Point, ...]]]:
    """Return the limits and the past of every deployment after all rounds; a new round continues the cached ones."""
    if not points:
        return {}, {}
    rate = max(point.rate_per_s for point in points)
    limits, past = _read_rounds(tuple(point for point in points if point.rate_per_s < rate))
    at_rate = {p.scale_out: p for p in points if p.rate_per_s == rate and p.scale_out not in limits}
    found = {
        point.scale_out: Limit(point.scale_out, point.throughput_per_s, point.capacity_per_s)
        for point in find_full(list(at_rate.values()), past)
    }
    grown = {size: (*past.get(size, ()), point) for size, point in at_rate.items()}
    return {**limits, **found}, {**past, **grown}


def find_full(at_rate: Sequence[Point], past: Mapping[int, Sequence[Point]]) -> list[Point]:
    """Return the deployments of one round that have left the group, left their own past, or do not keep up."""
    latencies = [point.log_latency for point in at_rate if point.log_latency is not None]
    border = math.inf
    if len(latencies) >= MAJORITY:
        groups = two_groups(latencies)
        border = groups.border if groups.gap >= APART else math.inf
    return [
        point
        for point in at_rate
        if (point.log_latency is not None and point.log_latency > border)
        or _exceeds_past(point, past.get(point.scale_out, ()))
        or point.throughput_per_s < KEEPS_UP * point.rate_per_s
    ]


def _exceeds_past(point: Point, past: Iterable[Point]) -> bool:
    """Whether a latency is far above the line through this deployment's earlier ones."""
    pairs = [(p.rate_per_s, p.log_latency) for p in past if p.log_latency is not None]
    if point.log_latency is None or not pairs:
        return False
    rates, latencies = np.array(pairs, dtype=float).T
    expected = float(latencies[-1])
    if len(pairs) > 1 and rates.max() > rates.min():
        slope, level = np.polyfit(rates, latencies, 1)
        expected = max(expected, float(slope * point.rate_per_s + level))
    return point.log_latency > expected + DEVIATES
