"""Scores of an allocation: its latency against its cost in tasks, and the distance of its throughput from a target.

AuTraScale+ (TPDS 2024), Eq 4, 7, 8 and 13; and Algorithm 2, which transfers such a score from one rate to another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rheostat.model.capacity import Floats
from rheostat.model.joint import JointGP

SPREAD = 0.1
"""Logarithmic deviation of a latency from window to window before it is known."""


def benefit(latency_s: Floats, target_s: float, base: Floats, tasks: Floats, alpha: float) -> Floats:
    """Return F of every row: latency against its target, and the mean of π^t over p (Eq 4)."""
    quick = np.minimum(1.0, target_s / np.maximum(latency_s, 1e-12))
    score: Floats = alpha * quick + (1.0 - alpha) * (base / tasks).mean(axis=1)
    return score


def enough(alpha: float, waste: float) -> float:
    """Return the score that ends the search: at most `waste` more tasks than needed (Eq 7, 8)."""
    return alpha + (1.0 - alpha) / (1.0 + waste)


def nearness(throughput_per_s: Floats, target_per_s: float, width_per_s: float) -> Floats:
    """Return F_tp of every row: 1 at the target, falling to both sides over the width β (Eq 13)."""
    score: Floats = width_per_s / (np.abs(throughput_per_s - target_per_s) + width_per_s)
    return score


def feasible(latencies_s: Sequence[float], target_s: float) -> float:
    """Return the probability that an allocation meets its latency target, from some windows of it (ours).

    Latencies are log-normal. Near a full operator they scatter by a fifth, elsewhere by a hundredth, so their deviation
    comes from the windows, with one more of the deviation `SPREAD`.
    """
    logs = [math.log(max(latency, 1e-12)) for latency in latencies_s]
    n = len(logs)
    if not n or math.isinf(max(logs)):
        return 0.0
    middle = sum(logs) / n
    variance = (SPREAD**2 + sum((each - middle) ** 2 for each in logs)) / n
    z = (math.log(target_s) - middle) / math.sqrt(variance / n)
    return 0.5 * (1.0 + math.erf(z / math.sqrt(2.0)))


@dataclass(frozen=True)
class Transferred:
    """Algorithm 2: the old rate's model plus a model of the new rate's residuals, for any allocation."""

    old: JointGP
    residual: JointGP
    weight: float
    """β: weight of the new samples in the deviation (line 14)."""

    @staticmethod
    def light(old: JointGP, tasks: Floats, scores: Floats, alpha: float) -> Transferred:
        """Fit the residuals of the samples at the new rate (lines 2 to 8)."""
        residual = JointGP.fit(tasks, scores - old.predict(tasks)[0])
        weight = alpha * len(scores) / (alpha * len(scores) + old.count)
        return Transferred(old, residual, weight)

    def predict(self, tasks: Floats) -> tuple[Floats, Floats]:
        """Return the sum of both means, and the deviations weighted in logarithms (lines 11 to 15)."""
        old_mean, old_sd = self.old.predict(tasks)
        mean, sd = self.residual.predict(tasks)
        return old_mean + mean, sd**self.weight * old_sd ** (1.0 - self.weight)


def traditional(old: JointGP, tasks: Floats, scores: Floats, bootstrap: Floats, alpha: float) -> JointGP:
    """Return the earlier paper's model, fitted to the samples and to estimates of the bootstrapping set."""
    transferred = Transferred.light(old, tasks, scores, alpha)
    estimated, _ = transferred.predict(bootstrap)
    return JointGP.fit(np.concatenate([tasks, bootstrap]), np.concatenate([scores, estimated]))
