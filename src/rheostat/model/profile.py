"""Phoebe's profile: deployments of several sizes under rising rates, and the most that each of them can do.

Geldenhuys, Scheinert, Kao, Thamsen: "Phoebe: QoS-aware distributed stream processing through anticipating dynamic
workloads", ICWS 2022, section III-C. As long as all deployments keep up, their latencies lie close together. One that
leaves this group has found its T_max and is released. With fewer than three deployments there is no majority, so each
is held against a line through its own earlier latencies.

Ours: one that cannot take what the sources bring has found its T_max whatever its latency says, and the line through
its own past is asked also where there are three, because all of them may be full at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rheostat.job.decision import Measurement
from rheostat.job.frozen import check_number
from rheostat.model.clusters import two_groups

APART = math.log(2.0)
"""Two groups of latencies are two only when one is twice the other."""
DEVIATES = math.log(2.0)
"""A latency that is twice what its own past predicts has left it."""
KEPT_UP = 0.97
"""A deployment that takes less than this share of its rate falls behind."""
MAJORITY = 3
"""Deployments that it takes to see who is alone."""
SEEN_BUSY = 0.3
"""Useful time from which on records per useful second say what a deployment could do."""
LEAST_LATENCY_S = 1e-6


@dataclass(frozen=True, slots=True)
class Point:
    """One deployment at one rate."""

    scale_out: int
    rate_per_s: float
    throughput_per_s: float
    latency_s: float | None = None
    useful_share: float | None = None
    """Of its busiest operator."""

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
    def able_per_s(self) -> float:
        """What it could do by its useful time, where that tells; else what it did."""
        if self.useful_share is None or self.useful_share < SEEN_BUSY:
            return self.throughput_per_s
        return self.throughput_per_s / min(self.useful_share, 1.0)


@dataclass(frozen=True, slots=True)
class Limit:
    """T_max of one deployment, as the point that revealed it shows it."""

    scale_out: int
    throughput_per_s: float
    able_per_s: float


def point_of(measurement: Measurement) -> Point | None:
    """Return a trial's answer as a point; None where it has none."""
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


@lru_cache(maxsize=64)
def limits_found(points: tuple[Point, ...]) -> tuple[Limit, ...]:
    """Return T_max of every deployment that has left the group of good latencies, smallest scale-out first."""
    found: dict[int, Limit] = {}
    past: dict[int, list[Point]] = {}
    for rate in sorted({point.rate_per_s for point in points}):
        once = {p.scale_out: p for p in points if p.rate_per_s == rate and p.scale_out not in found}
        for point in spoiled(list(once.values()), past):
            found[point.scale_out] = Limit(point.scale_out, point.throughput_per_s, point.able_per_s)
        for size, point in once.items():
            past.setdefault(size, []).append(point)
    return tuple(found[size] for size in sorted(found))


def spoiled(together: Sequence[Point], past: dict[int, list[Point]]) -> list[Point]:
    """Return the deployments of one round that are full: apart from the others, from their past, or from the load."""
    known = [point.log_latency for point in together if point.log_latency is not None]
    border = math.inf
    if len(known) >= MAJORITY:
        groups = two_groups(known)
        border = groups.border if groups.gap >= APART else math.inf
    return [
        point
        for point in together
        if (point.log_latency is not None and point.log_latency > border)
        or _left_its_past(point, past.get(point.scale_out, ()))
        or point.throughput_per_s < KEPT_UP * point.rate_per_s
    ]


def _left_its_past(point: Point, past: Iterable[Point]) -> bool:
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
