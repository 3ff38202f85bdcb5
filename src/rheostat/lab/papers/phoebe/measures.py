"""Measures of runs: recovery per failure, prediction errors, missed targets, slot-seconds, latencies."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from statistics import median

import numpy as np

from rheostat.lab.papers.phoebe import paper
from rheostat.lab.papers.phoebe.oracle import downtime_s, least_slot_seconds, true_recovery_s
from rheostat.lab.papers.phoebe.play import Failure, Run, experiment
from rheostat.lab.papers.phoebe.runs import CONFIDENCE, Found, Runs

NEAR_OPTIMAL_S = 1.5
"""Largest displayed latency that counts as near the best, which is one second."""
took, shown, predicted = attrgetter("took_s"), attrgetter("shown_s"), attrgetter("predicted_s")
"""Of a failure: recovery by source offsets, recovery as displayed, and the method's prediction."""


@dataclass(frozen=True, slots=True)
class Errors:
    """Relative errors of predicted recovery times."""

    median_run: float
    """Median over failures of the median seed's absolute error; the paper takes the median of five runs."""
    single: float
    """Median absolute error over all failures of all seeds."""
    of_means: float
    """The mean of all predictions against the mean of all measurements, which gives the paper's 4.5 %."""
    by_seed: tuple[float, ...]
    """Median absolute error over the failures of every seed; infinite without predictions."""


def errors(
    runs: Sequence[Run], what: Callable[[Failure], float], predicted: Callable[[Failure], float | None]
) -> Errors:
    """Compare predictions with measurements: errors are absolute before their median is taken."""

    def pairs(failures: Iterable[Failure]) -> list[tuple[float, float]]:
        both = [(predicted(f), what(f)) for f in failures]
        return [(p, m) for p, m in both if p is not None and math.isfinite(p) and m > 0]

    def off(failures: Iterable[Failure]) -> float:
        return median([abs(p / m - 1.0) for p, m in pairs(failures)] or [math.inf])

    by_seed = tuple(off(run.failures) for run in runs)
    finite = pairs(f for run in runs for f in run.failures)
    if not finite:
        return Errors(math.inf, math.inf, math.inf, by_seed)
    per_failure = [off(run.failures[k] for run in runs) for k in range(len(runs[0].failures))]
    means = [sum(column) / len(finite) for column in zip(*finite, strict=True)]
    return Errors(
        median([error for error in per_failure if math.isfinite(error)]),
        off(f for run in runs for f in run.failures),
        abs(means[0] / means[1] - 1.0),
        by_seed,
    )


def unpredictable(found: Found, name: str, row: str) -> Errors:
    """Return the errors with known load and capacity and the mean downtime: the lowest that are possible."""
    own = experiment(name, found.folder)
    mean_s = downtime_s(own, 0.5)
    return errors(found.experiments[name][row], took, lambda f: true_recovery_s(own, f.workers, f.at_s, mean_s))


def equation(found: Found, name: str, row: str) -> Errors:
    """Return the errors of the recovery equation itself, with the true load, capacity and downtime."""
    own = experiment(name, found.folder)

    def by_equation(f: Failure) -> float | None:
        return None if math.isnan(f.away_s) else true_recovery_s(own, f.workers, f.at_s, f.away_s)

    return errors(found.experiments[name][row], took, by_equation)


@dataclass(frozen=True, slots=True)
class Missed:
    """Missed targets over all seeds."""

    missed: int
    """Targets that the largest size would have met."""
    infeasible: int
    """Targets that the largest size misses, too, with the same downtime."""
    failures: int
    by_seed: tuple[float, ...] = ()
    """The missed share of every seed's feasible targets."""

    @property
    def share(self) -> float:
        """The missed share of the feasible targets."""
        return self.missed / max(self.failures - self.infeasible, 1)


def missed(runs: Runs, row: str, what: Callable[[Failure], float] = took) -> Missed:
    """Count missed targets; those that the same seed misses on 24 workers are infeasible."""
    late, infeasible, by_seed = 0, 0, []
    for run, largest in zip(runs[row], runs[paper.S24], strict=True):
        feasible = [what(theirs) <= paper.TARGET_S for theirs in largest.failures]
        slow = [what(mine) > paper.TARGET_S for mine in run.failures]
        own_late = sum(can and is_slow for can, is_slow in zip(feasible, slow, strict=True))
        late, infeasible = late + own_late, infeasible + feasible.count(False)
        by_seed.append(own_late / max(sum(feasible), 1))
    return Missed(late, infeasible, sum(len(run.failures) for run in runs[row]), tuple(by_seed))


def saving(runs: Runs, row: str, extra: float = 0.0) -> list[float]:
    """Return the share of static 24's slot-seconds that every seed saves."""
    return [
        1.0 - (run.slot_seconds + extra) / all_.slot_seconds
        for run, all_ in zip(runs[row], runs[paper.S24], strict=True)
    ]


def over_oracle(found: Found, name: str, row: str, limited: bool) -> list[float]:
    """Return slot-seconds over the oracle's: with no more changes than the method, or with any number."""
    return [
        run.slot_seconds / least_slot_seconds(name, found.folder, CONFIDENCE, run.changes if limited else None)
        for run in found.experiments[name][row]
    ]


def near_optimal(run: Run) -> float:
    """Return the share of displayed latencies that are near the best."""
    return float(np.mean(run.latency_s <= NEAR_OPTIMAL_S))
