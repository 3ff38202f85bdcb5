"""Our capacity model: log(rate per task) is nearly a straight line in log(tasks), with a little of everything else.

    log rate_per_task(p) = b0 + b1 log p + g(log p) + roughness(p) + noise

A Gaussian process whose prior mean is that line: b0 is free, b1 ~ N(-0.1, 0.15²) says that tasks cost each other a
little, g is smooth and small, roughness is one size's own deviation. Positive by construction, it extrapolates along
the line, and it is never surer than its own roughness. Learned are the noise, the length scale of g, and whether old
samples still count: the most probable values of a few.

- Repeated observations of a size are pooled exactly: their mean enters with n times the precision, and their scatter
  tells about the noise.
- Drift: when the newest samples do not fit, the ones before may have been of another level. They then share an unknown
  shift of about 30 %: what they say about the level is weighted down to next to nothing, what they say about the shape
  stays. Where the change was is chosen like the rest, against the odds of no change at all.
- The capacity of the whole operator, p x rate, never falls with p in an answer: where tasks hurt, it stays level.

The prior of the slope comes from the jobs of ContTune's paper (CALIBRATION.md); `rheostat bench models` judges the
model on StreamBed's operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rheostat.model.capacity import CapacityCurve, Floats, Sample, columns, distances

SLOPE, SLOPE_SD = -0.1, 0.15
LEVEL_SD = 10.0
"""Of b0, around the mean of the samples: in logarithms this is as good as free."""
ROUGH_SD = 0.02
"""What a single size may differ from its neighbours, however often it was seen."""
NOISES = 0.01 * 2.0 ** np.arange(6.0)
NOISE_0, NOISE_SPREAD = 0.05, 0.9
"""A log-normal prior of the noise: about 5 %, within a factor of 2.5."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How g may bend."""

    length: float
    """In log tasks: 0.7 is a doubling."""
    sd: float = 0.04
    """A few per cent off the line."""
    log_odds: float = 0.0


SHAPES = (Shape(1.0), Shape(0.5), Shape(2.0))
LOOSE = Shape(1.0, sd=0.4, log_odds=-3.0)
"""For operators that no line fits, such as those that tasks slow down."""
LOUD = 0.16
"""It is tried when the noise seems to be this large: what a line does not explain looks like noise."""
SHIFT_SD = 0.3
"""Of the level before a change, in logarithms."""
ODD = 2
"""So many of the newest samples must be odd: a single one is noise."""
CHANGE_ODDS = -3.0
"""Log odds of a change at one moment against none."""
SUSPICIOUS = 0.5
"""A change is looked for when all of them are this many noises off, to the same side."""


@dataclass(frozen=True)
class Candidate:
    """One moment of change, with the shape and the noise that suit it best."""

    sizes: Floats
    """One per group: a size before the change and the same size after it are two groups."""
    shape: Shape
    since: int
    noise: float
    log_probability: float
    weights: Floats
    covariance: Floats

    @staticmethod
    def of(tasks: Floats, rate: Floats, age: Floats, shapes: Sequence[Shape], since: int = 0) -> Candidate:
        """Pool what was measured alike and find the most probable shape and noise."""
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
        # What pooling takes out of the likelihood of single samples.
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
        """Choose shape and noise, and where the newest samples are odd look for a change."""
        tasks, capacity, age = columns(samples)
        rate = np.log(capacity / tasks)
        centre = float(rate.mean())
        best = Candidate.of(tasks, rate - centre, age, SHAPES)
        if best.noise >= LOUD:
            best = max(best, Candidate.of(tasks, rate - centre, age, (LOOSE,)), key=_probability)
        expected, _ = LogLog(best, centre).log_rate(tasks)
        off = (rate - expected)[np.argsort(age)]
        off *= np.sign(off[0])
        if len(off) > ODD and off[:ODD].min() > SUSPICIOUS * best.noise:
            # After a change the newest samples are all off to the same side: it lies about where that begins.
            run = int(np.argmax(off < 0)) if (off < 0).any() else len(off)
            moments = {since for since in (run - 1, run, run + 1) if ODD <= since < len(off)}
            others = [Candidate.of(tasks, rate - centre, age, (best.shape,), since) for since in sorted(moments)]
            best = max((best, *others), key=_probability)
        return LogLog(best, centre)

    def log_rate(self, tasks: Floats) -> tuple[Floats, Floats]:
        """Return log(rate per task) at these sizes, and the covariance with what was seen."""
        x = np.log(tasks)
        seen = _prior(x, np.log(self.best.sizes), self.best.shape)
        # At a size that was seen, its own roughness is part of what was seen.
        seen += ROUGH_SD**2 * (tasks[:, None] == self.best.sizes[None, :])
        return self.centre + SLOPE * x + seen @ self.best.weights, seen

    def curve(self, most: int) -> CapacityCurve:
        """Return the median capacity, its standard deviation, and never less for more tasks."""
        tasks = np.arange(1.0, most + 1.0)
        log_rate, seen = self.log_rate(tasks)
        prior = LEVEL_SD**2 + (SLOPE_SD * np.log(tasks)) ** 2 + self.best.shape.sd**2 + ROUGH_SD**2
        known = (np.linalg.solve(self.best.covariance, seen.T) * seen.T).sum(axis=0)
        # The clip keeps absurd rates finite.
        capacity = np.maximum.accumulate(tasks * np.exp(np.clip(log_rate, -690.0, 690.0)))
        sd = capacity * np.sqrt(np.expm1(np.clip(prior - known, 0.0, 10.0)))
        return CapacityCurve(capacity, sd, distances(self.best.sizes, most))


def _prior(a: Floats, b: Floats, shape: Shape) -> Floats:
    """Return the covariance of b0 + b1 x + g(x) between two sets of log tasks."""
    line = LEVEL_SD**2 + SLOPE_SD**2 * a[:, None] * b[None, :]
    covariance: Floats = line + shape.sd**2 * np.exp(-0.5 * ((a[:, None] - b[None, :]) / shape.length) ** 2)
    return covariance


def _probability(candidate: Candidate) -> float:
    return candidate.log_probability
