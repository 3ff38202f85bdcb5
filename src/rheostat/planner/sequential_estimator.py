"""Our capacity estimator: the paper's phases, ended as soon as the result is certain.

Above its capacity c a job with back pressure processes c, with noise; below it, its whole input. So a sample of a few
seconds at the target rate r is min(r, c e^(σ z)): a measurement of c if it lies below r, else a lower bound (a Tobit
likelihood). The posterior of (log c, log σ) on a grid determines the end: when the 90 % interval of c is within 3 %, or
within 0.4 σ (at most 8 %) where noise makes 3 % too expensive. The estimated rate is the capacity over time, which a
job with a backlog really sustains. The paper's 99 % rule requires that every window keeps up, so it ends lower with
more noise.

- The end of the warm-up is sampled, too, with a doubt of 5 %: far above its capacity a job may behave differently.
- There is no cool-down. A cool-down empties the buffers, and just above the capacity they take minutes to fill, during
  which too high a rate looks sustained. Coming from above, the buffers are full, and the input equals the throughput.
- Every phase has a level of its own, within 1.5 %: no estimate is more certain than that.
- Samples of one phase are correlated: their lag-one correlation increases the noise of their mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rheostat.job.plan import Estimate
from rheostat.planner.capacity_estimator import Bench, conclude, injector_limit, upper_bound
from rheostat.planner.rig import UNLIMITED_PER_S, pool_windows

Floats = NDArray[np.float64]

WITHIN, OF_NOISE, MOST_WITHIN = 0.03, 0.4, 0.08
"""Half width of the 90 % interval that ends the search: a share, in units of the noise, and its upper end."""
WARM_DOUBT, DOUBT = 0.05, 0.015
"""Standard deviation of the level of a phase: during the warm-up, and at a target rate."""
WARM_SAMPLES = 6
"""Samples at the end of the warm-up."""
FULL = 0.995
"""Share of the target from which on a sample is only a lower bound."""
LEAST_ABOVE, ABOVE = 0.03, 1.5
"""Distance of a target above the expected capacity: least share, and in units of the noise. Nearly all samples then
measure the capacity."""
BATCH = 3
"""Samples between two checks of the posterior."""
MOST_PER_RATE, MOST_RATES = 18, 4
"""Most samples at one target, and most targets."""
NOISES = np.geomspace(0.004, 1.5, 18)
"""Candidate noises, as a share of the capacity."""
Z_90 = 1.645
"""Standard deviations in half a 90 % interval."""


@dataclass
class Belief:
    """The posterior over log capacity and noise, on a grid around the first measurement."""

    centre: float
    log_c: Floats = field(init=False)
    weight: Floats = field(init=False)
    """log c x noise, logarithms."""

    def __post_init__(self) -> None:
        self.log_c = math.log(self.centre) + np.concatenate(
            [-np.geomspace(2.0, 0.0015, 160), [0.0], np.geomspace(0.0015, 2.0, 160)]
        )
        # Log-normal prior of the noise: about 4 %, within a factor of 3; flat prior of the capacity.
        prior = -0.5 * (np.log(NOISES / 0.04) / 1.1) ** 2
        spacing = np.log(np.gradient(self.log_c))
        self.weight = spacing[:, None] + prior[None, :]

    def add_samples(self, samples: Floats, target: float, doubt: float = 0.0) -> None:
        """Update with samples at one target rate; `doubt` is the standard deviation of their common level."""
        top = math.log(target)
        full = samples >= FULL * target
        measured = samples[~full]
        n = len(measured)
        gap = self.log_c[:, None]
        if n:
            # Mean and scatter are sufficient statistics of normal samples; correlated samples count less. Both are of
            # the samples themselves, not of logarithms: where buffers read in bursts, samples of zero are normal.
            correlation = _lag_one_correlation(measured)
            effective = max(1.0, n * (1 - correlation) / (1 + correlation))
            middle = max(float(measured.mean()), 1e-9 * self.centre)
            mean, scatter = math.log(middle), float(((measured / middle - 1.0) ** 2).sum())
            variance = NOISES[None, :] ** 2 / effective + doubt**2
            self.weight = self.weight - 0.5 * (mean - gap) ** 2 / variance - 0.5 * np.log(variance)
            spread = effective / n
            self.weight = self.weight - spread * (0.5 * scatter / NOISES**2 + (n - 1) * np.log(NOISES))
        if full.any():
            sd = np.sqrt(NOISES[None, :] ** 2 + doubt**2)
            above = log_upper((top - gap) / sd)
            # Consecutive full samples are nearly the same observation, so they count with the root of their number.
            self.weight = self.weight + math.sqrt(float(full.sum())) * above

    def capacity(self) -> tuple[float, float, float]:
        """Return the mean of log c, its standard deviation, and the noise."""
        weight = np.exp(self.weight - self.weight.max())
        weight /= weight.sum()
        over_c, over_noise = weight.sum(axis=1), weight.sum(axis=0)
        mean = float(over_c @ self.log_c)
        sd = math.sqrt(max(float(over_c @ (self.log_c - mean) ** 2), 0.0))
        return mean, sd, float(np.exp(over_noise @ np.log(NOISES)))


def sequential(bench: Bench, expected_per_s: float | None) -> Estimate:
    """Search until the result is certain."""
    phases, step = bench.phases, bench.phases.sample_s
    low, high, early = _warm_up(bench, expected_per_s)
    if early is not None:
        return early
    live = bench.rig.holds_back
    windows = bench.windows[:]
    belief = Belief(high if live else math.sqrt(max(low, 0.5 * high) * high))
    if live:
        throughputs = np.array([window.throughput_per_s or 0.0 for window in windows])
        belief.add_samples(throughputs, UNLIMITED_PER_S, WARM_DOUBT)
    for _ in range(MOST_RATES):
        mean, _, noise = belief.capacity()
        target = math.exp(mean) * (1.0 + max(LEAST_ABOVE, ABOVE * noise))
        bench.rates_tried += 1
        samples: list[float] = []
        first, start = True, len(bench.windows)
        while len(samples) < MOST_PER_RATE:
            before = [(phases.ramp_up_s / 2, target)] if first and live else []
            count = BATCH if live else 1
            for k in range(count):
                processed = bench.look(target, step if live else phases.observe_s, *(before if k == 0 else ()))
                samples.append(processed)
            first = False
            if not live or _is_certain(_update(belief, samples, target)):
                break
        belief = _update(belief, samples, target)
        windows = bench.windows[start:]
        if _is_certain(belief):
            break
    mean, sd, _ = belief.capacity()
    middle = math.exp(mean)
    half = math.exp(Z_90 * sd)
    return conclude(middle / half, middle, middle * half, pool_windows(windows))


def _warm_up(bench: Bench, expected_per_s: float | None) -> tuple[float, float, Estimate | None]:
    """Warm up as in the paper, and sample the end of it."""
    phases = bench.phases
    if not bench.rig.holds_back:
        return upper_bound(bench, expected_per_s)
    sampled = min(WARM_SAMPLES * phases.sample_s, phases.warm_up_s)
    count = max(int(sampled / phases.sample_s), 1)
    bench.rates_tried += 1
    processed = []
    for k in range(count):
        warm = [(phases.warm_up_s - count * phases.sample_s, UNLIMITED_PER_S)] if k == 0 else []
        processed.append(bench.look(UNLIMITED_PER_S, phases.sample_s, *warm))
    rate = float(np.mean(processed))
    if bench.injector_is_the_limit(UNLIMITED_PER_S, rate):
        return 0.0, rate, injector_limit(bench, rate)
    return 0.0, rate, None if rate > 0 else conclude(0.0, 0.0, 0.0, None)


def _update(belief: Belief, samples: list[float], target: float) -> Belief:
    updated = Belief(belief.centre)
    updated.weight = belief.weight.copy()
    updated.add_samples(np.array(samples), target, DOUBT)
    return updated


def _is_certain(belief: Belief) -> bool:
    _, sd, noise = belief.capacity()
    return Z_90 * sd <= max(WITHIN, min(OF_NOISE * noise, MOST_WITHIN))


def _lag_one_correlation(values: Floats) -> float:
    """Return the lag-one correlation, shrunk towards zero for few values; never negative."""
    if len(values) < 4:
        return 0.0
    off = values - values.mean()
    total = float((off**2).sum())
    if total <= 0:
        return 0.0
    raw = float((off[1:] * off[:-1]).sum()) / total
    return min(max(raw - 1.0 / math.sqrt(len(values)), 0.0), 0.9)


def log_upper(z: Floats) -> Floats:
    """Return log P(Z > z) of a standard normal, accurate in the tail."""
    t = 1.0 / (1.0 + 0.2316419 * np.abs(z))
    series = ((((1.330274429 * t - 1.821255978) * t + 1.781477937) * t - 0.356563782) * t + 0.319381530) * t
    tail = -0.5 * z * z - 0.5 * math.log(2 * math.pi) + np.log(np.maximum(series, 1e-300))
    upper: Floats = np.where(z > 0, tail, np.log1p(-np.exp(np.minimum(tail, -1e-12))))
    return upper
