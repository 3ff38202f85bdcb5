"""The error of capacity models with a few samples, and the time of a decision with them.

The true curves are StreamBed's fitted operators (a p^b, each with its own noise). A draw measures n different sizes
from 1 to 16 once each, small ones more often, and predicts every size between them (inside) and those up to four times
the largest (beyond). Errors are relative; a draw's error is the median over its sizes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np

from rheostat.control.limits import limits
from rheostat.engine.simulated import Fleet
from rheostat.engine.simulated.plant import PlantOperator
from rheostat.engine.testbed.loads import Sine
from rheostat.job.slo import SLO
from rheostat.lab.bench.measure import Measure
from rheostat.lab.bench.speed import example, slope
from rheostat.lab.experiment.trial import Progress
from rheostat.lab.jobs.streambed import JOBS
from rheostat.model.capacity import CapacityModel, Floats, Sample
from rheostat.model.history import History
from rheostat.model.registry import MODELS
from rheostat.policy.conttune.policy import ContTune
from rheostat.ports import Situation

COUNTS = (1, 2, 3, 5)
"""Numbers of samples."""
LARGEST = 16
"""Largest measured size."""
BEYOND = 4
"""Largest predicted size, as a multiple of the largest measured one."""
PLACES = ("inside", "beyond")
OURS = "loglog"
TIMED: tuple[Literal["gp", "loglog"], ...] = ("gp", "loglog")
RESAMPLES = 400
"""Bootstrap resamples of a comparison."""
Errors = Mapping[tuple[str, int, str], Floats]
"""(model, samples, inside or beyond) -> operators x draws."""


def truths() -> list[tuple[str, PlantOperator]]:
    """Return StreamBed's operators that have noise, by name."""
    plants = [make() for make in JOBS.values()]
    return [(f"{p.name} {o.name}", o) for p in plants for o in p.operators if o.noise > 0]


def draw(operator: PlantOperator, count: int, rng: np.random.Generator) -> list[Sample]:
    """Measure an operator at `count` different sizes."""
    sizes = np.arange(1, LARGEST + 1)
    drawn = rng.choice(sizes, count, replace=False, p=(1 / sizes) / (1 / sizes).sum())
    noise = np.exp(operator.noise * rng.standard_normal(count))
    pairs = zip(drawn.tolist(), noise.tolist(), strict=True)
    return [Sample(p, operator.curve.capacity_per_s(p) * e, k) for k, (p, e) in enumerate(pairs)]


def errors(draws: int, models: Mapping[str, Callable[[Sequence[Sample]], CapacityModel]] = MODELS) -> Errors:
    """Return the errors of every model on the same draws."""
    operators = truths()
    by_cell = {
        (model, count, place): np.empty((len(operators), draws))
        for model in models
        for count in COUNTS
        for place in PLACES
    }
    for k, (_, operator) in enumerate(operators):
        for count in COUNTS:
            for d in range(draws):
                samples = draw(operator, count, np.random.default_rng([d, k, count]))
                low, high = (f(s.tasks for s in samples) for f in (min, max))
                most = BEYOND * high
                true = np.array([operator.curve.capacity_per_s(p) for p in range(1, most + 1)])
                for model, fit in models.items():
                    off = np.abs(fit(samples).curve(most).capacity_per_s / true - 1.0)
                    by_cell[model, count, "inside"][k, d] = np.median(off[low - 1 : high])
                    by_cell[model, count, "beyond"][k, d] = np.median(off[high:])
    return by_cell


def significantly_worse(ours: Floats, theirs: Floats, rng: np.random.Generator) -> bool:
    """Return whether our median error over paired draws is larger, by the 95 % bootstrap interval."""
    picks = rng.integers(0, len(ours), (RESAMPLES, len(ours)))
    difference = np.median(ours[picks], axis=1) - np.median(theirs[picks], axis=1)
    return bool(np.quantile(difference, 0.025) > 0.0)


def worse_operators(by_cell: Errors) -> list[tuple[str, str]]:
    """Return (operator, place) for every number of samples and rival model that is significantly better there."""
    rng, worse = np.random.default_rng(0), []
    for k, (name, _) in enumerate(truths()):
        for model, count, place in by_cell:
            theirs = by_cell[model, count, place][k]
            if model != OURS and significantly_worse(by_cell[OURS, count, place][k], theirs, rng):
                worse.append((name, place))
    return worse


def worse_cells(by_cell: Errors) -> list[str]:
    """Return `samples/place` of every cell whose mean over operators is significantly worse than another model's."""
    rng, worse = np.random.default_rng(0), []
    for model, count, place in by_cell:
        ours, theirs = by_cell[OURS, count, place], by_cell[model, count, place]
        picks = rng.integers(0, ours.shape[1], (RESAMPLES, ours.shape[1]))
        means = [np.median(errors[:, picks], axis=2).mean(axis=0) for errors in (ours, theirs)]
        if model != OURS and np.quantile(means[0] - means[1], 0.025) > 0.0:
            worse.append(f"{count}/{place}")
    return worse


def known_job(operators: int, samples: int) -> Situation[History]:
    """Return a situation in which every operator of a chain has a history of `samples` samples."""
    fleet = Fleet(example(operators + 1), [Sine(100.0, 50.0, 3600.0)], [1])
    fleet.advance(120)
    window, spec = fleet.engine(0).observe(), fleet.spec
    rng = np.random.default_rng(0)
    history = {}
    for tunable in spec.tunable:
        sizes = rng.integers(1, 25, samples)
        curve = fleet.plant.operator(tunable.operator).curve
        noise = np.exp(0.03 * rng.standard_normal(samples))
        pairs = zip(sizes.tolist(), noise.tolist(), strict=True)
        history[tunable.operator] = tuple(Sample(p, curve.capacity_per_s(p) * e, k) for k, (p, e) in enumerate(pairs))
    knowledge = History(history, dict.fromkeys(history, 24), samples)
    return Situation(spec, SLO(), limits(spec, SLO()), window, knowledge, 0, 0, {})


def decision_ms(model: Literal["gp", "loglog"], operators: int, repeats: int) -> float:
    """Return the shortest processor time of a decision of ContTune with 50 samples per operator."""
    situation, policy, times = known_job(operators, 50), ContTune(model=model, big=False), []
    for _ in range(repeats):
        started = time.process_time()
        policy.decide(situation)
        times.append(time.process_time() - started)
    return min(times) * 1e3


def models(quick: bool, progress: Progress) -> list[Measure]:
    """Compare the models on StreamBed's operators, and time ContTune's decisions."""
    progress("errors of StreamBed's operators")
    by_cell = errors(20 if quick else 200)
    measures = []
    for count in COUNTS:
        for place in PLACES:
            means = {m: float(np.median(by_cell[m, count, place], axis=1).mean()) for m in MODELS}
            rivals = min(value for model, value in means.items() if model != OURS)
            for model, value in means.items():
                goal = f"<= {rivals:.3g}" if model == OURS else ""
                name = f"error_{model}_{count}_{place}"
                measures.append(Measure("models", name, round(value, 4), "share", goal, "lower"))
    cells, operators = worse_cells(by_cell), worse_operators(by_cell)
    note = f"of {len(COUNTS) * len(PLACES)} rows, the mean over operators; {', '.join(cells) or 'none'}"
    measures.append(Measure("models", "rows_significantly_worse", float(len(cells)), "", "<= 0", "lower", note))
    comparisons = len(truths()) * len(COUNTS) * len(PLACES) * (len(MODELS) - 1)
    where = ", ".join(f"{name} {place}" for name, place in dict.fromkeys(operators))
    note = f"of {comparisons} comparisons, operator by operator: {where or 'none'}"
    measures.append(Measure("models", "operators_significantly_worse", float(len(operators)), "", "", "lower", note))
    for model in TIMED:
        progress(f"decisions with {model}")
        times = {n: decision_ms(model, n, 20 if quick else 60) for n in (5, 10, 20, 40)}
        for n, goal in ((5, "<= 5"), (10, "<= 10")):
            note = f"ContTune, {n} operators with 50 samples each"
            measures.append(Measure("models", f"ms_{model}_{n}", times[n], "ms", goal, "lower", note))
        # The time depends on the samples; from ten operators on that evens out.
        exponent = slope(tuple(times)[1:], list(times.values())[1:])
        measures.append(
            Measure("models", f"slope_{model}", exponent, "", "<= 1.1", "lower", "1 is linear in operators")
        )
    return measures
