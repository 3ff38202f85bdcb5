"""Our latency model, in parts: the queueing of every operator, and the waiting of every exchange between two of them.

    latency(p) = base + sum over operators b_i (p_i / capacity_i) rho_i / (1 - rho_i)
                      + T sum over edges min(1, p_up p_down / room) / 2

The shape of an operator's queueing follows from its capacity, which is measured independently of latency. So only a few
numbers are learned: base, T, room, and b_i, the records that an operator queues. They come from a non-negative
least-squares fit with a prior: half of the latency is queueing, a quarter each is base and exchange, and all operators
have the same b. One sample is enough to start; each further one corrects the fit. The joint process of `joint.py` needs
samples all over the box to learn the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rheostat.model.capacity import Floats
from rheostat.policy.autrascale.box import Box, Ints

FULL = 0.98
"""Utilisation at which an operator's queueing is capped: above it the law has no meaning."""
ROOMS = (4.0, 16.0, 64.0, 256.0, 1e9)
"""Candidate products p_up p_down from which on buffers wait for their timeout; the last one means never."""
ERROR = 0.05
"""Relative error of a measured latency."""
LEAST_GAIN = 0.002
"""Least saving of a task, as a share of the target."""
PRIOR = (0.25, 0.25, 0.5)
"""Prior shares of base, exchange and queueing."""
PRIOR_SD, OPERATOR_SD = 1.0, 0.7
"""Relative standard deviations of these shares, and of an operator's b around the mean of all."""


@dataclass(frozen=True)
class Network:
    """Everything that does not depend on latency: capacities by tasks, demands, and the rates of the edges."""

    capacities: tuple[Floats, ...]
    """Per tunable operator: records/s at 1, 2, 3 ... tasks."""
    demand_per_s: Floats
    edges: tuple[tuple[int, int, float], ...]
    """(upstream, downstream, records/s relative to the load); -1 stands for a pinned operator."""
    pinned: float = 1.0
    """Tasks of a pinned operator."""

    @cached_property
    def _table(self) -> Floats:
        """Capacities as one array, operators x tasks; beyond an operator's last size its capacity stays level."""
        width = max(len(each) for each in self.capacities)
        rows = [np.concatenate([each, np.full(width - len(each), each[-1])]) for each in self.capacities]
        table: Floats = np.maximum(np.array(rows), 1e-300)
        return table

    @cached_property
    def _ends(self) -> tuple[Ints, Ints, Floats]:
        up, down, share = (np.array(part) for part in zip(*self.edges, strict=True)) if self.edges else ((),) * 3
        return np.asarray(up, dtype=np.int64), np.asarray(down, dtype=np.int64), np.maximum(np.asarray(share), 1e-9)

    def _capacity(self, tasks: Ints) -> Floats:
        at = np.minimum(tasks, self._table.shape[1]) - 1
        capacity: Floats = self._table[np.arange(len(self.capacities))[None, :], at]
        return capacity

    def utilisation(self, tasks: Ints) -> Floats:
        """Return rho of every row and operator."""
        share: Floats = self.demand_per_s / self._capacity(tasks)
        return share

    def queueing(self, tasks: Ints) -> Floats:
        """Return the seconds that a queued record of every operator costs."""
        capacity = self._capacity(tasks)
        rho = np.minimum(self.demand_per_s / capacity, FULL)
        seconds: Floats = np.minimum(tasks / capacity, 1e6) * rho / (1.0 - rho)
        return seconds

    def exchange(self, tasks: Ints, room: float) -> Floats:
        """Return the number of timeouts that the exchanges of every row wait."""
        up, down, share = self._ends
        counts = np.concatenate([tasks, np.full((len(tasks), 1), self.pinned)], axis=1)
        waits: Floats = 0.5 * np.minimum(1.0, counts[:, up] * counts[:, down] / (room * share)).sum(axis=1)
        return waits


@dataclass(frozen=True)
class DecomposedLatency:
    """A fitted model."""

    network: Network
    weights: Floats
    """base, T, then b of every operator."""
    room: float
    level: float = 1.0
    """Ratio of the newest measurement to the fit; it scales the whole model."""

    @staticmethod
    def fit(network: Network, tasks: Sequence[Sequence[int]], latency_s: Sequence[float]) -> DecomposedLatency:
        """Fit to samples, oldest first; the newest one is met exactly."""
        rows, measured = np.array(tasks, dtype=np.int64), np.maximum(np.array(latency_s, dtype=float), 1e-9)
        queueing = network.queueing(rows)
        best: tuple[float, float, Floats] | None = None
        for room in ROOMS:
            waits = network.exchange(rows, room)
            error, weights = _fit_weights(queueing, waits, measured)
            if best is None or error < best[0] * 0.999:
                best = (error, room, weights)
        assert best is not None
        unscaled = DecomposedLatency(network, best[2], best[1])
        expected = float(unscaled.latency_s(rows[-1:])[0])
        level = float(np.clip(measured[-1] / expected, 0.2, 5.0)) if expected > 0 else 1.0
        return DecomposedLatency(network, best[2], best[1], level)

    def latency_s(self, tasks: Ints) -> Floats:
        """Return the expected latency of every row."""
        parts = _columns(self.network.queueing(tasks), self.network.exchange(tasks, self.room))
        expected: Floats = self.level * (parts @ self.weights)
        return expected

    def cheapest(self, box: Box, target_s: float) -> tuple[Ints, float]:
        """Return the fewest tasks that are expected to meet the target and keep up, or the nearest to it.

        Greedy: the step that saves most latency per task until the target is met; then unneeded tasks are removed.
        """
        row = box.least.copy()
        value = self._cost(row[None])[0]
        while value > target_s:
            steps = _steps(box, row, up=True)
            if not len(steps):
                break
            gains = (value - self._cost(steps)) / (steps - row).sum(axis=1)
            top = int(np.argmax(gains))
            if gains[top] <= LEAST_GAIN * target_s:
                break
            row, value = steps[top], float(self._cost(steps[top : top + 1])[0])
        while value <= target_s:
            steps = _steps(box, row, up=False)
            if not len(steps):
                break
            costs = self._cost(steps)
            saved = np.where(costs <= target_s, (row - steps).sum(axis=1), 0)
            if saved.max() <= 0:
                break
            row = steps[int(np.argmax(saved - costs / (target_s + costs)))]
        return row, float(self.latency_s(row[None])[0])

    def beside(self, box: Box, row: Ints, without: Sequence[Ints]) -> Ints | None:
        """Return the best allocation with a few more tasks of one operator that is not among `without`."""
        excluded = {tuple(each.tolist()) for each in without}
        steps = [step for step in _steps(box, row, up=True) if tuple(step.tolist()) not in excluded]
        if not steps:
            return None
        best: Ints = steps[int(np.argmin(self._cost(np.array(steps))))]
        return best

    def _cost(self, rows: Ints) -> Floats:
        """Return the latency, with a large penalty where an operator would not keep up."""
        lack = np.maximum(self.network.utilisation(rows) - 1.0, 0.0).max(axis=1)
        cost: Floats = self.latency_s(rows) + 1e3 * np.minimum(lack, 1e6)
        return cost


def _columns(queueing: Floats, waits: Floats) -> Floats:
    return np.concatenate([np.ones((len(waits), 1)), waits[:, None], queueing], axis=1)


def _fit_weights(queueing: Floats, waits: Floats, latency_s: Floats) -> tuple[float, Floats]:
    """Return the misfit and the weights: first with one b for all operators, then with one each near that."""
    typical, n = float(np.median(latency_s)), queueing.shape[1]
    at = np.stack([np.ones(len(latency_s)), waits, queueing.sum(axis=1)], axis=1)
    scale = np.maximum(at.mean(axis=0), 1e-12)
    prior = np.array(PRIOR) * typical / scale
    ones = np.full(len(latency_s), 1.0 / ERROR)
    tied = _least_squares(at / (ERROR * latency_s)[:, None], ones, prior, PRIOR_SD * prior)
    each = np.concatenate([tied[:2], np.full(n, max(float(tied[2]), 0.05 * float(prior[2])))])
    spread = np.concatenate([PRIOR_SD * prior[:2], OPERATOR_SD * each[2:]])
    parts = _columns(queueing, waits) / (ERROR * latency_s)[:, None]
    weights = _least_squares(parts, ones, each, spread)
    misfit = float(((parts @ weights - 1.0 / ERROR) ** 2).sum() + (((weights - each) / spread) ** 2).sum())
    return misfit, weights


def _least_squares(a: Floats, b: Floats, prior: Floats, sd: Floats) -> Floats:
    """Return non-negative weights that fit a x = b and stay near a prior; negative ones are set to zero."""
    free = np.ones(len(prior), dtype=bool)
    weights = np.zeros(len(prior))
    for _ in range(len(prior)):
        pull = 1.0 / sd[free]
        left = np.concatenate([a[:, free], np.diag(pull)])
        solved = np.linalg.lstsq(left, np.concatenate([b, prior[free] * pull]), rcond=None)[0]
        if (solved >= 0).all():
            weights[free] = solved
            return weights
        free[np.flatnonzero(free)[solved < 0]] = False
        if not free.any():
            break
    return weights


def _steps(box: Box, row: Ints, up: bool) -> Ints:
    """Return the rows in which one operator has one, two, four or eight choices more, or one fewer."""
    steps = []
    for k, each in enumerate(box.choices):
        at = int(np.searchsorted(each, row[k]))
        for jump in (1, 2, 4, 8) if up else (-1,):
            if 0 <= at + jump < len(each):
                step = row.copy()
                step[k] = each[at + jump]
                steps.append(step)
    rows = np.array(steps, dtype=np.int64).reshape(len(steps), len(row))
    return rows[box.allowed(rows)]
