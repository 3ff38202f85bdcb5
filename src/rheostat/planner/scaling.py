"""Our model of capacity over (memory, slots): power-law capacities per operator, and the losses of the job as a whole.

    log R = log η(Π) + g(M) + log B(Π) + noise
    B(Π)  = the highest rate that Π slots carry when every operator's capacity is a_i p^b_i (BIDS2)
    η(Π)  = e0                                  "steady"
          = e0 (Π / Π0)^e1                      "power"
          = e0 / (1 + k (Π - Π_min))            "per slot"

The curves a_i, b_i are learned from every operator's true rate per task, η and g from the sustained rates of whole
runs; g is a level per memory profile of one regime (`memory.py`). All of them are posteriors, not point estimates:

- log true rate per task = α_i + (b_i - 1) log p + noise, with b_i - 1 ~ N(0, 0.1²): draws of (a_i, b_i) from a
  conjugate regression whose noise is integrated out.
- Every draw of the curves leaves residuals log R - log B. Their probability under each of the three laws of η, with e0,
  e1, g and the noise integrated out, weighs the draw and the law (importance sampling). So the runs inform the curves,
  too, and the laws are averaged by their evidence.
- A prediction is that mixture: its median and its 5 and 95 % quantiles. It widens beyond the measured sizes, because
  exponents and laws differ there, and because no law needs to hold beyond them: the exponent may drift by 0.05.

Where operators' rates were not measured, the operator with the most tasks counts as the bottleneck, and its rate per
task is the job's; the others keep their share of tasks in the largest run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rheostat.errors import InvalidValue
from rheostat.job.decision import Interval
from rheostat.job.plan import Estimate
from rheostat.planner.configuration_optimizer import readings
from rheostat.planner.evidence import Production
from rheostat.planner.sequential_estimator import log_upper

Floats = NDArray[np.float64]

DRAWS = 160
"""Draws of the curves."""
SLOPE, SLOPE_SD = 0.0, 0.1
"""Prior of the slope of log(rate per task) over log(tasks): near DS2's linear scaling, from no job's measurements."""
DRIFT_SD = 0.05
"""Standard deviation of the exponents beyond the largest measured size around those up to it."""
LEVEL_SD = 3.0
"""Prior standard deviation of the level around the samples, in logarithms: practically unbounded."""
NOISES = np.geomspace(0.02, 0.5, 8)
"""Candidate noises, as a share of the rate."""
NOISE_0, NOISE_SPREAD = 0.07, 0.8
"""Log-normal prior of the noise: about 7 %, within a factor of 2.2."""
ETA_SD, POWER_SD, LEVEL_OF_MEMORY_SD = 1.0, 0.3, 0.15
"""Prior standard deviations of log e0 (the runs determine it), e1 and g(M)."""
PER_SLOT = np.geomspace(0.0007, 0.05, 12)
"""Candidate values of k."""
LAWS = ("steady", "power", "per slot")
LOG_ODDS = {"steady": 0.0, "power": -0.9, "per slot": -0.3}
"""Prior log odds of the laws: most jobs lose nothing with size, or a little with every slot."""
QUANTILES = (0.05, 0.5, 0.95)
SPOTS = np.array([-1.2816, -0.5244, 0.0, 0.5244, 1.2816]) * 1.056
"""A normal distribution as five equally likely points of the same variance; a mixture of many needs no more."""
MIXTURE_SHARE = 0.999
"""Share of the mixture that is computed; the least likely components are dropped."""


@dataclass(frozen=True)
class Runs:
    """The measured runs as arrays: runs x operators."""

    names: tuple[str, ...]
    slots: Floats
    profile: NDArray[np.intp]
    """Place of the memory profile in `memories_mb`."""
    rate: Floats
    """Logarithms of the sustained rates."""
    tasks: Floats
    true_rate: Floats
    """Logarithms of records/s of one task; NaN where not measured."""
    ratio: Floats
    """Median over the runs of every operator's input relative to the sources'."""
    memories_mb: tuple[int | None, ...]

    @staticmethod
    def of(estimates: Sequence[Estimate]) -> Runs:
        """Take the usable estimates; an operator without input carries any rate."""
        good = [e for e in estimates if e.usable]
        if not good:
            raise InvalidValue("there is no usable measurement to learn from")
        names = tuple(good[0].allocation.tasks)
        measured = [readings(e) for e in good]
        true = np.array([[rates.get(n, math.nan) for n in names] for rates, _ in measured])
        ratios = np.array([[ratio.get(n, math.nan) for n in names] for _, ratio in measured])
        rate = np.array([e.middle_per_s for e in good])
        tasks = np.array([[float(e.allocation.tasks[n]) for n in names] for e in good])
        if np.isnan(true).all():
            true, ratios = _from_tasks(rate, tasks)
        present = ~np.isnan(ratios).all(axis=0)
        ratio = np.full(len(names), math.nan)
        ratio[present] = np.nanmedian(ratios[:, present], axis=0)
        memories = tuple(sorted({e.memory_mb for e in good}, key=lambda memory: memory or 0))
        return Runs(
            names,
            np.array([float(e.slots) for e in good]),
            np.array([memories.index(e.memory_mb) for e in good]),
            np.log(rate),
            tasks,
            np.log(_drop_outliers(true)),
            ratio,
            memories,
        )

    def profiles(self, memory_mb: int | None) -> Floats:
        """Return the columns of one memory profile for a single size."""
        if memory_mb not in self.memories_mb:
            measured = ", ".join(str(memory) for memory in self.memories_mb)
            raise InvalidValue(f"nothing was measured with {memory_mb} MB, only with {measured} MB")
        columns: Floats = np.eye(len(self.memories_mb))[self.memories_mb.index(memory_mb)]
        return columns


def _from_tasks(rate: Floats, tasks: Floats) -> tuple[Floats, Floats]:
    """Return true rates and ratios that explain the split over the operators."""
    largest = int(np.argmax(tasks.sum(axis=1)))
    top = int(np.argmax(tasks[largest]))
    true, ratios = np.full(tasks.shape, math.nan), np.full(tasks.shape, math.nan)
    true[:, top] = rate / tasks[:, top]
    shared = tasks[largest] > 1
    true[largest, shared] = rate[largest] / tasks[largest, shared]
    ratios[:, shared] = 1.0
    ratios[:, top] = 1.0
    return true, ratios


def _drop_outliers(true: Floats) -> Floats:
    """Drop true rates more than ten times off the operator's median: they stem from nearly no useful time."""
    result = true.copy()
    for k in range(true.shape[1]):
        column = true[:, k]
        measured = column[~np.isnan(column)]
        if len(measured):
            middle = float(np.median(measured))
            result[(column > 10 * middle) | (column < 0.1 * middle), k] = math.nan
    return result


@dataclass(frozen=True)
class Curves:
    """Draws of every operator's curve: p tasks carry exp(level) p ** exponent source records/s."""

    level: Floats
    """Draws x operators, logarithms; infinite for an operator that carries any rate."""
    exponent: Floats

    def carried(self, tasks: Floats) -> Floats:
        """Return log B of runs with given tasks: draws x runs."""
        log_tasks = np.log(tasks)
        log_rate: Floats = (self.level[:, None, :] + self.exponent[:, None, :] * log_tasks[None]).min(axis=2)
        return log_rate

    def best(self, slots: Floats) -> Floats:
        """Return log B of the best split of these slots, without rounding to whole tasks: draws x sizes."""
        level, exponent = self.level[:, None, :], self.exponent[:, None, :]
        size = slots[None, :]
        count = level.shape[2]
        top = (level + exponent * np.log(np.maximum(size - (count - 1), 1.0))[..., None]).min(axis=2)
        low: Floats = (level + exponent * np.log(np.maximum(size / count, 1.0) * 0.5)[..., None]).min(axis=2)
        for _ in range(26):
            middle = 0.5 * (low + top)
            with np.errstate(over="ignore"):
                needed = np.maximum(np.exp((middle[..., None] - level) / exponent), 1.0).sum(axis=2)
            fits = needed <= size
            low, top = np.where(fits, middle, low), np.where(fits, top, middle)
        return low


def draw_curves(runs: Runs, count: int, rng: np.random.Generator) -> Curves:
    """Draw every operator's curve from its own posterior."""
    levels, exponents = [], []
    for k in range(len(runs.names)):
        measured = ~np.isnan(runs.true_rate[:, k])
        ratio = runs.ratio[k]
        if not measured.any() or math.isnan(ratio) or ratio <= 0:
            levels.append(np.full(count, np.inf))
            exponents.append(np.ones(count))
            continue
        level, slope = _draw_lines(np.log(runs.tasks[measured, k]), runs.true_rate[measured, k], count, rng)
        levels.append(level - math.log(ratio))
        exponents.append(np.clip(1.0 + slope, 0.05, 3.0))
    level = np.stack(levels, axis=1)
    return Curves(level, np.stack(exponents, axis=1))


def _draw_lines(x: Floats, y: Floats, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Draw level and slope of y = level + slope x; the noise is drawn from its posterior first."""
    centre = float(np.mean(y - SLOPE * x))
    columns = np.stack([np.ones_like(x), x], axis=1)
    prior_mean, prior = np.array([centre, SLOPE]), np.diag([1.0 / LEVEL_SD**2, 1.0 / SLOPE_SD**2])
    residual = y - columns @ prior_mean
    logs, means, factors = [], [], []
    for noise in NOISES:
        precision = prior + columns.T @ columns / noise**2
        mean = np.linalg.solve(precision, columns.T @ residual / noise**2)
        fit = float(residual @ residual) / noise**2 - float(mean @ precision @ mean)
        evidence = -0.5 * fit - len(y) * math.log(noise) - 0.5 * float(np.linalg.slogdet(precision)[1])
        logs.append(evidence - 0.5 * (math.log(noise / NOISE_0) / NOISE_SPREAD) ** 2)
        means.append(prior_mean + mean)
        factors.append(np.linalg.cholesky(np.linalg.inv(precision)))
    weight = _normalise(np.array(logs))
    noise_draws = rng.choice(len(NOISES), count, p=weight)
    draws = np.array(means)[noise_draws] + (np.array(factors)[noise_draws] @ rng.standard_normal((count, 2, 1)))[..., 0]
    return draws[:, 0], draws[:, 1]


def _normalise(logs: Floats) -> Floats:
    weight: Floats = np.exp(logs - logs.max())
    weight /= weight.sum()
    return weight


@dataclass(frozen=True)
class Law:
    """One law of η with one value of its non-linear parameter and one noise."""

    name: str
    per_slot: float
    noise: float

    def columns(self, slots: Floats, profiles: Floats, first: float, last: float) -> tuple[Floats, Floats]:
        """Return the columns of the learned parameters (e0, e1, drift, every g), and the fixed part of log η."""
        grows = np.log(slots / first) if self.name == "power" else np.zeros_like(slots)
        fixed = -np.log1p(self.per_slot * np.maximum(slots - first, 0.0))
        beyond = np.log(np.maximum(slots / last, 1.0))
        return np.column_stack([np.ones_like(slots), grows, beyond, profiles]), fixed


@dataclass(frozen=True)
class Scaling:
    """The posterior: draws of curves x laws with their weights, and the posterior of e0, e1 and g under each."""

    runs: Runs
    curves: Curves
    laws: tuple[Law, ...]
    weight: Floats
    """Laws x draws."""
    mean: Floats
    """Laws x draws x parameters."""
    covariance: Floats
    """Laws x parameters x parameters: the same for every draw."""
    first: float

    @staticmethod
    def fit(
        estimates: Sequence[Estimate], seed: int = 0, draws: int = DRAWS, production: Sequence[Production] = ()
    ) -> Scaling:
        """Fit the posterior to the usable estimates, and to production runs with their memory profiles."""
        runs = Runs.of(estimates)
        curves = draw_curves(runs, draws, np.random.default_rng([seed, len(runs.slots)]))
        laws = tuple(
            Law(name, k, float(noise))
            for name in LAWS
            for k in (PER_SLOT.tolist() if name == "per slot" else [0.0])
            for noise in NOISES
        )
        first, last = float(runs.slots.min()), float(runs.slots.max())
        y = runs.rate[None, :] - curves.carried(runs.tasks)  # draws x runs
        logs, means, covariances = [], [], []
        profiles = np.eye(len(runs.memories_mb))
        prior = np.diag([ETA_SD**-2, POWER_SD**-2, DRIFT_SD**-2, *[LEVEL_OF_MEMORY_SD**-2] * len(profiles)])
        known = float(np.log(np.diag(prior)).sum())
        for k, law in enumerate(laws):
            if k % len(NOISES) == 0:  # laws that differ in their noise only have the same columns
                columns, fixed = law.columns(runs.slots, profiles[runs.profile], first, last)
            precision = prior + columns.T @ columns / law.noise**2
            covariance = np.linalg.inv(precision)
            off = y - fixed[None, :]
            projected = off @ columns / law.noise**2
            mean = projected @ covariance
            fit = (off**2).sum(axis=1) / law.noise**2 - (mean * projected).sum(axis=1)
            evidence = -0.5 * fit - len(runs.slots) * math.log(law.noise)
            evidence += 0.5 * (float(np.linalg.slogdet(covariance)[1]) + known)
            evidence -= 0.5 * (math.log(law.noise / NOISE_0) / NOISE_SPREAD) ** 2
            evidence += LOG_ODDS[law.name] - (math.log(len(PER_SLOT)) if law.name == "per slot" else 0.0)
            logs.append(evidence)
            means.append(mean)
            covariances.append(covariance)
        flat = _normalise(np.stack(logs).ravel()).reshape(len(laws), draws)
        fitted = Scaling(runs, curves, laws, flat, np.stack(means), np.stack(covariances), first)
        for run in production:
            if run.memory_mb in runs.memories_mb:
                fitted = fitted.update(run)
        return fitted

    def update(self, run: Production) -> Scaling:
        """Return the posterior after a censored observation: a size sustained a rate, or did not.

        It reweighs the components, and moves their means by moment matching. Their variances stay: too wide at most.
        """
        slots = np.array([float(run.slots)])
        means, variances = self.log_rates(slots, run.memory_mb)
        side = 1.0 if run.sustained else -1.0
        logs, shifted = [], []
        for k, law in enumerate(self.laws):
            profile = self.runs.profiles(run.memory_mb)[None]
            columns, _ = law.columns(slots, profile, self.first, float(self.runs.slots.max()))
            sd = math.sqrt(float(variances[k, 0]) + law.noise**2)
            z = side * (means[k, :, 0] - math.log(run.rate_per_s)) / sd
            log_share = log_upper(-z)
            hazard = np.exp(-0.5 * z**2 - 0.5 * math.log(2 * math.pi) - log_share)
            shifted.append(self.mean[k] + (side * hazard / sd)[:, None] * (columns[0] @ self.covariance[k])[None, :])
            logs.append(np.log(np.maximum(self.weight[k], 1e-300)) + log_share)
        weight = _normalise(np.stack(logs).ravel()).reshape(self.weight.shape)
        return replace(self, weight=weight, mean=np.stack(shifted))

    def weights(self) -> dict[str, float]:
        """Return the weight of every law of η."""
        return {
            name: float(sum(self.weight[k].sum() for k, law in enumerate(self.laws) if law.name == name))
            for name in LAWS
        }

    def log_rates(self, slots: Floats, memory_mb: int | None) -> tuple[Floats, Floats]:
        """Return mean and variance of log R: laws x draws x sizes, laws x sizes."""
        profiles = np.tile(self.runs.profiles(memory_mb), (len(slots), 1))
        carried = self.curves.best(slots)
        means, variances = [], []
        for k, law in enumerate(self.laws):
            if k % len(NOISES) == 0:  # laws that differ in their noise only have the same columns
                columns, fixed = law.columns(slots, profiles, self.first, float(self.runs.slots.max()))
            means.append(carried + fixed[None, :] + self.mean[k] @ columns.T)
            variances.append(((columns @ self.covariance[k]) * columns).sum(axis=1))
        return np.stack(means), np.stack(variances)

    def rates(self, slots: Sequence[float] | Floats, memory_mb: int | None) -> Floats:
        """Return the 5, 50 and 95 % quantiles of the capacity at these sizes: sizes x 3."""
        sizes = np.asarray(slots, dtype=float)
        mean, variance = self.log_rates(sizes, memory_mb)
        quantiles = np.empty((len(sizes), len(QUANTILES)))
        law, draw = self.main_components()
        weight = np.repeat(self.weight[law, draw], len(SPOTS)) / len(SPOTS)
        for j in range(len(sizes)):
            values = (mean[law, draw, j][:, None] + np.sqrt(variance[law, j])[:, None] * SPOTS).ravel()
            order = np.argsort(values)
            total = np.cumsum(weight[order])
            places = np.searchsorted(total, np.array(QUANTILES) * total[-1]).clip(max=len(order) - 1)
            quantiles[j] = np.exp(values[order][places])
        return quantiles

    def share_below(self, slots: Floats, memory_mb: int | None, rate_per_s: float) -> Floats:
        """Return the probability, size by size, that the capacity is below a rate: `rates` without sorting."""
        mean, variance = self.log_rates(slots, memory_mb)
        law, draw = self.main_components()
        weight = self.weight[law, draw]
        gap = (math.log(rate_per_s) - mean[law, draw]) / np.sqrt(variance[law])
        spots = sum((gap > spot).astype(float) for spot in SPOTS)
        shares: Floats = weight @ spots / (len(SPOTS) * weight.sum())
        return shares

    def main_components(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the laws and draws that make up nearly all of the mixture: most components have almost no weight."""
        order = np.argsort(-self.weight.ravel())
        main = order[: int(np.searchsorted(np.cumsum(self.weight.ravel()[order]), MIXTURE_SHARE)) + 1]
        law, draw = np.divmod(main, self.weight.shape[1])
        return law, draw

    def rate_per_s(self, slots: float, memory_mb: int | None) -> Interval:
        """Return the capacity at one size."""
        low, middle, high = (float(v) for v in self.rates([slots], memory_mb)[0])
        return Interval(low, middle, high)

    def exponents(self) -> Mapping[str, float]:
        """Return every operator's expected exponent; operators without measurements are absent."""
        per_draw = self.weight.sum(axis=0)
        return {
            name: float(per_draw @ self.curves.exponent[:, k])
            for k, name in enumerate(self.runs.names)
            if np.isfinite(self.curves.level[:, k]).all()
        }

    def levels(self) -> Mapping[str, float]:
        """Return the source records/s that one task of every measured operator carries."""
        per_draw = self.weight.sum(axis=0)
        return {
            name: math.exp(float(per_draw @ self.curves.level[:, k]))
            for k, name in enumerate(self.runs.names)
            if np.isfinite(self.curves.level[:, k]).all()
        }
