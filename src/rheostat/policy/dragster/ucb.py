"""Dragster's extended GP-UCB: the size to try next so that an operator's capacity tracks a target.

Liu, Xu, Lau, ICPP 2022, Eq 17 and 18, and Theorem 1 for β. One operator at a time: the candidates of a whole job are
the product of its operators' sizes, and the objective of Eq 18 is a sum over them.

Ours: everything is in units of `unit_per_s`, the operator's peak load. In raw records/s β σ² is millions of times
larger than |μ - y|, and hardly anything converges. Repeated samples of a size enter as their mean, with n times the
precision, which is exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rheostat.model.capacity import Floats
from rheostat.model.gp import kernel
from rheostat.policy.dragster.tally import Size


@dataclass(frozen=True)
class Posterior:
    """μ and σ² of the capacity at every candidate size, in units of the peak load."""

    sizes: Floats
    mean: Floats
    variance: Floats

    @staticmethod
    def of(samples: Sequence[Size], sizes: Floats, unit_per_s: float, length: float, noise: float) -> Posterior:
        """Return Eq 17: zero mean, squared exponential kernel of unit variance, known noise."""
        tasks, counts, means = np.array([(s.tasks, s.count, s.capacity_per_s) for s in samples], dtype=float).T
        y = means / unit_per_s
        covariance = kernel(tasks, tasks, length) + np.diag(noise**2 / counts)
        k = kernel(sizes, tasks, length)
        solved = np.linalg.solve(covariance, np.column_stack((y, k.T)))
        variance = np.clip(1.0 - (k * solved[:, 1:].T).sum(axis=1), 0.0, 1.0)
        return Posterior(sizes, k @ solved[:, 0], variance)

    def best(self, target: float, beta: float, shortfall: float = 1.0) -> int:
        """Return the index of the size that maximises -|μ - y| + β σ² (Eq 18); among equals the smallest.

        A mean below the target counts `shortfall` times its distance; in the paper it counts once.
        """
        off = self.mean - target
        return int(np.argmax(-np.maximum(off, -shortfall * off) + beta * self.variance))


def beta(sizes: int, slot: int, delta: float) -> float:
    """Return β_t = 2 log(|X| t² π² δ / 6), never below zero."""
    return max(0.0, 2.0 * math.log(sizes * max(slot, 1) ** 2 * math.pi**2 * delta / 6.0))
