"""Our capacity estimator: the same phases, but it ends as soon as the answer is certain.

Above its capacity c a job that heeds back pressure processes c, with noise; below it, what it is given. So a sample of
a few seconds at the target rate r is min(r, c e^(σ z)): a measurement of c where it lies below r, a lower bound where
it does not (a Tobit likelihood). The posterior of (log c, log σ) on a grid tells when to stop: when the 90 % interval
of c is within 3 %, or within 0.4 σ (at most 8 %) where noise makes that too dear. The rate that comes out is the
capacity over time, which is what a job with a backlog really sustains: the paper's 99 % rule asks that every window
keeps up, and so ends the lower, the more noise there is.

- The end of the warm-up is sampled, too, but counted with 5 % of doubt: far above its capacity a job may behave oddly.
- There is no cool-down. It empties the buffers, and at a rate just above the capacity they take minutes to fill: all
  that time too much looks sustained. Coming from above, they are full, and what is taken is what is processed.
- A stretch has a level of its own, within 1.5 %: an estimate is never surer than that.
- Samples of one stretch resemble each other: the noise of their mean is raised by their lag-one correlation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rheostat.job.plan import Estimate
from rheostat.planner.capacity_estimator import Bench, concluded, injected, upper_bound
from rheostat.planner.rig import UNLIMITED_PER_S, pooled

Floats = NDArray[np.float64]

WITHIN, OF_NOISE, MOST_WITHIN = 0.03, 0.4, 0.08
WARM_DOUBT, DOUBT = 0.05, 0.015
WARM_SAMPLES = 6
FULL = 0.995
"""From this share of the target on a sample is only a lower bound."""
LEAST_ABOVE, ABOVE = 0.03, 1.5
"""Targets lie so far above the likeliest capacity, the second in units of the noise: nearly all samples measure it."""
BATCH = 3
"""Samples between two looks at the posterior."""
MOST_PER_RATE, MOST_RATES = 18, 4
NOISES = np.geomspace(0.004, 1.5, 18)
Z_90 = 1.645


@dataclass
class Belief:
    """A posterior over log capacity and noise, on a grid around the first look."""

    centre: float
    log_c: Floats = field(init=False)
    weight: Floats = field(init=False)
    """log c x noise, logarithms."""

    def __post_init__(self) -> None:
        self.log_c = math.log(self.centre) + np.concatenate(
            [-np.geomspace(2.0, 0.0015, 160), [0.0], np.geomspace(0.0015, 2.0, 160)]
        )
        # A log-normal prior of the noise: about 4 %, within a factor of 3; capacity is free.
        prior = -0.5 * (np.log(NOISES / 0.04) / 1.1) ** 2
        spacing = np.log(np.gradient(self.log_c))
        self.weight = spacing[:, None] + prior[None, :]

    def sees(self, samples: Floats, target: float, doubt: float = 0.0) -> None:
        """Fold samples at one target rate in; with `doubt` they share a level that may be off by so much."""
        top = math.log(target)
        full = samples >= FULL * target
        measured = samples[~full]
        n = len(measured)
        gap = self.log_c[:, None]
        if n:
            # The mean and the scatter say all that normal samples say; alike samples count less. Both are of the
            # samples themselves, not of logarithms: where buffers take records in gulps, samples of zero are normal.
            effective = max(1.0, n * (1 - _alike(measured)) / (1 + _alike(measured)))
            middle = max(float(measured.mean()), 1e-9 * self.centre)
            mean, scatter = math.log(middle), float(((measured / middle - 1.0) ** 2).sum())
            variance = NOISES[None, :] ** 2 / effective + doubt**2
            self.weight = self.weight - 0.5 * (mean - gap) ** 2 / variance - 0.5 * np.log(variance)
            spread = effective / n
            self.weight = self.weight - spread * (0.5 * scatter / NOISES**2 + (n - 1) * np.log(NOISES))
        if full.any():
            sd = np.sqrt(NOISES[None, :] ** 2 + doubt**2)
            above = _log_upper((top - gap) / sd)
            # Full samples in a row are one statement, said again: their capacity hardly differs.
            self.weight = self.weight + math.sqrt(float(full.sum())) * above

    def capacity(self) -> tuple[float, float, float]:
        """Return mean of log c, its standard deviation, and the noise."""
        weight = np.exp(self.weight - self.weight.max())
        weight /= weight.sum()
        over_c, over_noise = weight.sum(axis=1), weight.sum(axis=0)
        mean = float(over_c @ self.log_c)
        sd = math.sqrt(max(float(over_c @ (self.log_c - mean) ** 2), 0.0))
        return mean, sd, float(np.exp(over_noise @ np.log(NOISES)))


def sequential(bench: Bench, expected_per_s: float | None) -> Estimate:
    """Search until the answer is certain."""
    phases, step = bench.phases, bench.phases.sample_s
    low, high, left = _warmed(bench, expected_per_s)
    if left is not None:
        return left
    live = bench.rig.holds_back
    warm = bench.windows[:]
    belief = Belief(high if live else math.sqrt(max(low, 0.5 * high) * high))
    if live:
        seen = np.array([window.throughput_per_s or 0.0 for window in warm])
        belief.sees(seen, UNLIMITED_PER_S, WARM_DOUBT)
    kept = warm
    for _ in range(MOST_RATES):
        mean, _, noise = belief.capacity()
        target = math.exp(mean) * (1.0 + max(LEAST_ABOVE, ABOVE * noise))
        bench.rates_tried += 1
        samples: list[float] = []
        first, kept_here = True, len(bench.windows)
        while len(samples) < MOST_PER_RATE:
            before = [(phases.ramp_up_s / 2, target)] if first and live else []
            count = BATCH if live else 1
            for k in range(count):
                got = bench.look(target, step if live else phases.observe_s, *(before if k == 0 else ()))
                samples.append(got)
            first = False
            if not live or _certain(_after(belief, samples, target)):
                break
        belief = _after(belief, samples, target)
        kept = bench.windows[kept_here:]
        if _certain(belief):
            break
    mean, sd, _ = belief.capacity()
    middle = math.exp(mean)
    half = math.exp(Z_90 * sd)
    return concluded(middle / half, middle, middle * half, pooled(kept))


def _warmed(bench: Bench, expected_per_s: float | None) -> tuple[float, float, Estimate | None]:
    """Warm up as the paper does, and sample the end of it."""
    phases = bench.phases
    if not bench.rig.holds_back:
        return upper_bound(bench, expected_per_s)
    sampled = min(WARM_SAMPLES * phases.sample_s, phases.warm_up_s)
    count = max(int(sampled / phases.sample_s), 1)
    bench.rates_tried += 1
    got = []
    for k in range(count):
        warm = [(phases.warm_up_s - count * phases.sample_s, UNLIMITED_PER_S)] if k == 0 else []
        got.append(bench.look(UNLIMITED_PER_S, phases.sample_s, *warm))
    rate = float(np.mean(got))
    if bench.injector_is_the_limit(UNLIMITED_PER_S, rate):
        return 0.0, rate, injected(bench, rate)
    return 0.0, rate, None if rate > 0 else concluded(0.0, 0.0, 0.0, None)


def _after(belief: Belief, samples: list[float], target: float) -> Belief:
    grown = Belief(belief.centre)
    grown.weight = belief.weight.copy()
    grown.sees(np.array(samples), target, DOUBT)
    return grown


def _certain(belief: Belief) -> bool:
    _, sd, noise = belief.capacity()
    return Z_90 * sd <= max(WITHIN, min(OF_NOISE * noise, MOST_WITHIN))


def _alike(values: Floats) -> float:
    """Return the lag-one correlation, drawn towards zero where there are few values; never negative."""
    if len(values) < 4:
        return 0.0
    off = values - values.mean()
    total = float((off**2).sum())
    if total <= 0:
        return 0.0
    raw = float((off[1:] * off[:-1]).sum()) / total
    return min(max(raw - 1.0 / math.sqrt(len(values)), 0.0), 0.9)


def _log_upper(z: Floats) -> Floats:
    """Return log P(Z > z) of a standard normal, also far out."""
    t = 1.0 / (1.0 + 0.2316419 * np.abs(z))
    series = ((((1.330274429 * t - 1.821255978) * t + 1.781477937) * t - 0.356563782) * t + 0.319381530) * t
    tail = -0.5 * z * z - 0.5 * math.log(2 * math.pi) + np.log(np.maximum(series, 1e-300))
    upper: Floats = np.where(z > 0, tail, np.log1p(-np.exp(np.minimum(tail, -1e-12))))
    return upper
