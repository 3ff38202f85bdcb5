"""A search over all allocations that scores about a thousand of them: P_max^N is too many.

Candidates are drawn evenly, as sparse changes of an anchor allocation, and near each anchor; the best three of them
then climb, one operator at a time, as long as the score rises. Everything is scored in batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rheostat.model.capacity import Floats

Ints = NDArray[np.int64]
Score = Callable[[Floats], Floats]
"""Rows of tasks -> one number each; larger is better."""

EVEN, SPARSE, NEAR = 400, 300, 300
"""Candidates of each kind."""
CLIMBERS, CLIMBS = 3, 3
"""Best candidates that climb, and their most rounds."""


@dataclass(frozen=True)
class Box:
    """The search space: the allowed task counts of every operator, rising, and the slots of the whole job."""

    choices: tuple[Ints, ...]
    most_slots: int | None = None

    def allowed(self, rows: Ints) -> NDArray[np.bool_]:
        """Whether the rows fit into the slots."""
        return np.ones(len(rows), dtype=bool) if self.most_slots is None else rows.sum(axis=1) <= self.most_slots

    def snap(self, rows: Floats) -> Ints:
        """Return the nearest allowed counts not above the rows, at least the smallest of each operator."""
        return np.stack(
            [
                each[np.clip(np.searchsorted(each, rows[:, k] + 1e-9, side="right") - 1, 0, None)]
                for k, each in enumerate(self.choices)
            ],
            axis=1,
        )

    @property
    def least(self) -> Ints:
        """The fewest tasks of every operator."""
        return np.array([each[0] for each in self.choices], dtype=np.int64)

    @property
    def size(self) -> float:
        """Number of allocations, regardless of the slots."""
        return float(np.prod([float(len(each)) for each in self.choices]))

    def squeeze(self, rows: Ints) -> Ints:
        """Return the rows, with those that exceed the slots moved towards the fewest tasks until they fit."""
        if self.most_slots is None:
            return rows
        least = self.least
        spare, wanted = self.most_slots - int(least.sum()), rows.sum(axis=1) - int(least.sum())
        share = np.minimum(1.0, max(spare, 0) / np.maximum(wanted, 1))
        return self.snap(least + (rows - least) * share[:, None])


def candidates(box: Box, anchors: Sequence[Ints], rng: np.random.Generator) -> Ints:
    """Return candidate allocations: evenly drawn ones, sparse changes of each anchor, neighbours of each anchor."""
    n, sizes = len(box.choices), [len(each) for each in box.choices]
    if box.size <= EVEN + SPARSE + NEAR:
        every = np.meshgrid(*box.choices, indexing="ij")
        rows = np.stack([each.ravel() for each in every], axis=1)
        return np.asarray(rows[box.allowed(rows)])
    where = np.stack([rng.integers(0, size, EVEN) for size in sizes], axis=1)
    parts = [_take(box, where)]
    for anchor in anchors:
        at = np.array([np.searchsorted(each, anchor[k]) for k, each in enumerate(box.choices)])
        at = np.minimum(at, np.array(sizes) - 1)
        count = SPARSE // len(anchors)
        change = rng.random((count, n)) < rng.choice([1.0, 2.0, 3.0], count)[:, None] / n
        jump = np.stack([rng.integers(0, size, count) for size in sizes], axis=1)
        parts.append(_take(box, np.where(change, jump, at)))
        count = NEAR // len(anchors)
        step = np.rint(rng.normal(0.0, 2.0, (count, n))).astype(np.int64)
        parts.append(_take(box, np.clip(at + step, 0, np.array(sizes) - 1)))
        parts.append(_take(box, at[None, :]))
    rows = box.squeeze(np.concatenate(parts))
    return np.asarray(rows[box.allowed(rows)])


def maximise(
    box: Box, score: Score, anchors: Sequence[Ints], rng: np.random.Generator, without: Sequence[Ints] = ()
) -> tuple[Ints, float] | None:
    """Return the allocation with the best score that is not among `without`, and its score; None if there is none."""
    excluded = {tuple(int(v) for v in row) for row in without}
    rows = candidates(box, anchors, rng)
    if excluded:
        others = np.array(sorted(excluded), dtype=np.int64)
        rows = rows[~(rows[:, None, :] == others[None, :, :]).all(axis=2).any(axis=1)]
    if not len(rows):
        return None
    values = score(rows.astype(float))
    top = np.argsort(-values, kind="stable")[:CLIMBERS]
    best, best_value = rows[top[0]], float(values[top[0]])
    for k in top:
        row, value = _climb(box, score, rows[k], float(values[k]), excluded)
        if value > best_value:
            best, best_value = row, value
    return best, best_value


def _climb(box: Box, score: Score, row: Ints, value: float, excluded: set[tuple[int, ...]]) -> tuple[Ints, float]:
    """Change one operator at a time to its best count as long as the score rises; all single changes are one batch."""
    n, total = len(row), sum(len(each) for each in box.choices)
    owner = np.repeat(np.arange(n), [len(each) for each in box.choices])
    value_of = np.concatenate(box.choices)
    for _ in range(CLIMBS):
        rows = np.repeat(row[None, :], total, axis=0)
        rows[np.arange(total), owner] = value_of
        values = np.where(box.allowed(rows), score(rows.astype(float)), -np.inf)
        order = np.argsort(-values, kind="stable")
        top = next((k for k in order if tuple(rows[k].tolist()) not in excluded), None)
        if top is None or not values[top] > value + 1e-12:
            break
        row, value = rows[top], float(values[top])
    return row, value


def _take(box: Box, where: Ints) -> Ints:
    return np.stack([each[where[:, k]] for k, each in enumerate(box.choices)], axis=1)
