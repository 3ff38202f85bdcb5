"""Our capacity model: log(rate per task) is nearly a straight line in log(tasks), plus small deviations.

    log rate_per_task(p) = b0 + b1 log p + g(log p) + roughness(p) + noise

A Gaussian process whose prior mean is that line. b0 is free; b1 ~ N(-0.1, 0.15²), since tasks slow each other down a
little; g is smooth and small; roughness is the deviation of a single size. The model is positive by construction,
extrapolates along the line, and its uncertainty never falls below its roughness. The noise, the length scale of g and
whether old samples still count are learned: the most probable values of a few.

- Repeated samples of a size are pooled exactly: their mean enters with n times the precision, and their scatter informs
  the noise.
- Drift: when the newest samples do not fit, the earlier ones may belong to another level. They then share an unknown
  shift of about 30 %, so they count for the shape but hardly for the level. The moment of the change is selected like
  the other parameters, against the odds of no change.
- The capacity of the whole operator, p x rate, never falls with p in an answer: where more tasks reduce it, it stays
  level.

The prior of the slope comes from the jobs of ContTune's paper. `rheostat bench models` tests the model on StreamBed's
operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rheostat.model.capacity import CapacityCurve, Floats, Sample, columns, distances

SLOPE, SLOPE_SD = -0.1, 0.15
"""Mean and standard deviation of b1."""
LEVEL_SD = 10.0
"""Standard deviation of b0 around the mean of the samples: in logarithms practically unbounded."""
ROUGH_SD = 0.02
"""Standard deviation of a single size from its neighbours; it remains however often the size is sampled."""
NOISES = 0.01 * 2.0 ** np.arange(6.0)
"""Candidate noises, as a share of the rate."""
NOISE_0, NOISE_SPREAD = 0.05, 0.9
"""Log-normal prior of the noise: about 5 %, within a factor of 2.5."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A prior of g."""

    length: float
    """Length scale in log(tasks); 0.7 is a doubling."""
    sd: float = 0.04
    """Standard deviation from the line."""
    log_odds: float = 0.0


SHAPES = (Shape(1.0), Shape(0.5), Shape(2.0))
LOOSE = Shape(1.0, sd=0.4, log_odds=-3.0)
"""Shape of operators that no line fits, such as those that more tasks slow down."""
LOOSE_FROM_NOISE = 0.16
"""Noise from which on `LOOSE` is tried: deviations that no line explains look like noise."""
SHIFT_SD = 0.3
"""Standard deviation of the level before a change, in logarithms."""
ODD_SAMPLES = 2
"""Newest samples that must all be odd before a change is searched: a single odd one is noise."""
CHANGE_ODDS = -3.0
"""Log odds of a change at one moment against no change."""
ODD_NOISES = 0.5
"""Deviation of an odd sample, in noises; all odd ones deviate to the same side."""


@dataclass(frozen=True)
class Candidate:
    """One moment of change, with the most probable shape and noise for it."""

    sizes: Floats
    """One per group: a size before the change and the same size after it are two groups."""
    shape: Shape
    since: int
    noise: float
    log_probability: float
    weights: Floats
    covariance: Floats

    @staticmethod
    def fit(tasks: Floats, rate: Floats, age: Floats, shapes: Sequence[Shape], since: int = 0) -> Candidate:
        """Pool samples of the same size and select the most probable shape and noise."""
        old = (age >= since) & (since > 0)
        groups, where, counts = np.unique(2 * tasks + old, return_inverse=True, return_counts=True)
        sizes, before = np.floor(groups / 2), groups % 2
        x, mean = np.log(sizes), np.bincount(where, rate) / counts
        residual = mean - SLOPE * x
        fixed = SHIFT_SD**2 * before[:, None] * before[None, :] + ROUGH_SD**2 * (sizes[:, None] == sizes[None, :])
        noise = NOISES[:, None, None] ** 2 * np.diag(1.0 / counts)
        # shapes x noises x groups x groups
        covariance = np.stack([_prior(x, x, shape) + fixed + noise for shape in shapes])
        weights = np.linalg.solve(covariance, residual[:, None])[..., 0]
        fits = -0.5 * (weights @ residual + np.linalg.slogdet(covariance)[1])
        scatter = float(((rate - mean[where]) ** 2).sum())
        within = -(len(rate) - len(groups)) * np.log(NOISES) - 0.5 * scatter / NOISES**2
        prior = (CHANGE_ODDS if since else 0.0) - 0.5 * (np.log(NOISES / NOISE_0) / NOISE_SPREAD) ** 2
        prior = prior + np.array([[shape.log_odds] for shape in shapes])
        # Pooling removes this term from the likelihood of the single samples.
        probable = fits + within + prior - 0.5 * float(np.log(counts).sum())
        k, s = divmod(int(np.argmax(probable)), len(NOISES))
        best = float(probable[k, s])
        return Candidate(sizes, shapes[k], since, float(NOISES[s]), best, weights[k, s], covariance[k, s])


@dataclass(frozen=True)
class LogLog:
    """The posterior under the most probable noise, shape and moment of change."""

    best: Candidate
    centre: float
    """Mean log rate per task of the samples."""

    @staticmethod
    def fit(samples: Sequence[Sample]) -> LogLog:
        """Select shape and noise; if the newest samples are odd, search for a change."""
        tasks, capacity, age = columns(samples)
        rate = np.log(capacity / tasks)
        centre = float(rate.mean())
        best = Candidate.fit(tasks, rate - centre, age, SHAPES)
        if best.noise >= LOOSE_FROM_NOISE:
            best = max(best, Candidate.fit(tasks, rate - centre, age, (LOOSE,)), key=_probability)
        expected, _ = LogLog(best, centre).log_rate(tasks)
        off = (rate - expected)[np.argsort(age)]
        off *= np.sign(off[0])
        if len(off) > ODD_SAMPLES and off[:ODD_SAMPLES].min() > ODD_NOISES * best.noise:
            # After a change the newest samples all deviate to the same side: the change lies near the first of them.
            run = int(np.argmax(off < 0)) if (off < 0).any() else len(off)
            moments = {since for since in (run - 1, run, run + 1) if ODD_SAMPLES <= since < len(off)}
            others = [Candidate.fit(tasks, rate - centre, age, (best.shape,), since) for since in sorted(moments)]
            best = max((best, *others), key=_probability)
        return LogLog(best, centre)

    def log_rate(self, tasks: Floats) -> tuple[Floats, Floats]:
        """Return log(rate per task) at these sizes, and its covariance with the samples."""
        x = np.log(tasks)
        cross = _prior(x, np.log(self.best.sizes), self.best.shape)
        # At a sampled size, its roughness is part of the sample.
        cross += ROUGH_SD**2 * (tasks[:, None] == self.best.sizes[None, :])
        return self.centre + SLOPE * x + cross @ self.best.weights, cross

    def curve(self, most: int) -> CapacityCurve:
        """Return the median capacity, made non-decreasing in the tasks, and its standard deviation."""
        tasks = np.arange(1.0, most + 1.0)
        log_rate, cross = self.log_rate(tasks)
        prior = LEVEL_SD**2 + (SLOPE_SD * np.log(tasks)) ** 2 + self.best.shape.sd**2 + ROUGH_SD**2
        explained = (np.linalg.solve(self.best.covariance, cross.T) * cross.T).sum(axis=0)
        # The clip keeps absurd rates finite.
        capacity = np.maximum.accumulate(tasks * np.exp(np.clip(log_rate, -690.0, 690.0)))
        sd = capacity * np.sqrt(np.expm1(np.clip(prior - explained, 0.0, 10.0)))
        return CapacityCurve(capacity, sd, distances(self.best.sizes, most), self.best.noise)


def _prior(a: Floats, b: Floats, shape: Shape) -> Floats:
    """Return the covariance of b0 + b1 x + g(x) between two sets of log tasks."""
    line = LEVEL_SD**2 + SLOPE_SD**2 * a[:, None] * b[None, :]
    covariance: Floats = line + shape.sd**2 * np.exp(-0.5 * ((a[:, None] - b[None, :]) / shape.length) ** 2)
    return covariance


def _probability(candidate: Candidate) -> float:
    return candidate.log_probability
