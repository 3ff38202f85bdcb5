"""The bounds of Theorem 1 and 2 in numbers: Eq 19, 20, 24 and 31, in units of the load.

Constants as the policy has them: σ is its noise, the kernel has its length scale, β_T counts one operator's sizes, and
δ = 2, so each bound holds with probability 1/2. Γ_T <= log det(I + T K / σ²) / 2, since no size is sampled more than T
times. With selectivities of 1, H = G = 1. ε is the smallest spare capacity at all operators' largest sizes. Under a
constant load V(y*) = 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rheostat.lab.papers.dragster.measures import lacking, load_per_s, plant
from rheostat.lab.papers.dragster.play import Run
from rheostat.model.gp import kernel
from rheostat.policy.dragster.policy import Dragster
from rheostat.policy.dragster.regression import fit_function
from rheostat.policy.dragster.ucb import beta

H = G = 1.0
"""Bounds of the throughput functions and of the gradient of f."""
COUNT_NOISE = 0.01
"""Noise of a counted rate, as a share, in the evaluation of Eq 31."""
MOST_DOUBLINGS = 60


@dataclass(frozen=True)
class Theorem:
    """Theorem 1 for one job under one constant load."""

    job: str
    level: float
    policy: Dragster = Dragster()

    @cached_property
    def most(self) -> int:
        """Sizes of one operator: |X|."""
        return min(bounds.max or 1 for bounds in (each.bounds for each in plant(self.job).spec().tunable))

    @cached_property
    def operators(self) -> int:
        """M."""
        return len(plant(self.job).spec().tunable_names)

    @cached_property
    def slack(self) -> float:
        """ε of Assumption 1."""
        largest = plant(self.job).start().with_tasks(dict.fromkeys(plant(self.job).spec().tunable_names, self.most))
        return -max(lacking(self.job, largest, self.level)) / load_per_s(self.job, self.level)

    @cached_property
    def covariance(self) -> np.typing.NDArray[np.float64]:
        """K over all sizes."""
        sizes = np.arange(1.0, self.most + 1)
        return kernel(sizes, sizes, self.policy.length_scale * self.most)

    def gain(self, slots: float) -> float:
        """Return an upper bound of Γ_T."""
        return 0.5 * float(
            np.linalg.slogdet(np.eye(self.most) + slots / self.policy.noise**2 * self.covariance).logabsdet
        )

    def variances(self, slots: float) -> float:
        """Return the right-hand side of Eq 24."""
        return 2.0 * self.gain(slots) / math.log1p(self.policy.noise**-2)

    def explored(self, slots: float) -> float:
        """Return sqrt(8 T β_T Γ_T / log(1 + σ^-2))."""
        return math.sqrt(4.0 * slots * beta(self.most, round(slots), self.policy.delta) * self.variances(slots))

    def fit(self, slots: float) -> float:
        """Return the right-hand side of Eq 19."""
        m, eps = self.operators, self.slack
        return math.pow(m, 2 / 3) * H * (1 + H / (2 * eps)) + H * math.sqrt(slots / eps) + m * self.explored(slots)

    def regret(self, slots: float) -> float:
        """Return the right-hand side of Eq 20, with Fit_T at its own bound."""
        m, eps = self.operators, self.slack
        first = math.sqrt(slots) * G**2 / 2
        return first + H * (m + (2 + m * H) / (2 * eps)) * self.fit(slots) + G * m * self.explored(slots)

    def meaningful_slots(self) -> float:
        """Return the T, by doubling, from which on Eq 20 is below T: before, it allows to lose every record."""
        doublings = (2.0 ** float(k) for k in range(1, MOST_DOUBLINGS))
        return next((slots for slots in doublings if self.regret(slots) < slots), math.inf)

    def sampled(self, run: Run) -> float:
        """Return the left-hand side of Eq 24 along a run, of the operator with the largest."""
        totals = []
        for name in run[0].tasks.tasks:
            left, total = self.covariance.copy(), 0.0
            for slot in run:
                at = slot.tasks.tasks[name] - 1
                column, own = left[:, at].copy(), float(left[at, at])
                total += own
                left -= np.outer(column, column) / (own + self.policy.noise**2)
            totals.append(total)
        return max(totals)


def function_error(slots: int, retained: int, seed: int) -> float:
    """Return the error of a throughput function that is learned from this many noisy windows, as a share (Eq 31).

    The largest one for inputs up to the load; the true function is linear, as in every job of the suite.
    """
    rng = np.random.default_rng([seed, slots])
    received = rng.uniform(0.5, 1.0, (slots, 1))
    emitted = received[:, 0] * np.exp(COUNT_NOISE * rng.standard_normal(slots))
    function = fit_function(received[-retained:], emitted[-retained:]).function
    inputs: list[float] = np.linspace(0.1, 1.0, 10).tolist()
    return max(abs(function.rate_per_s((each,)) - each) for each in inputs)
