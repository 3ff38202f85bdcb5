"""Fewer slots than suggested for: which operator gives how many. Two projections onto {sum of tasks <= slots}.

Dragster (Eq 18) writes Π for the Euclidean one: the nearest point, which takes the same from every operator, whatever
it can do with its tasks. Ours gives every operator what the scarcest one lets through: with the capacities that were
learned it serves the largest share of the load that the slots allow, and uses no more of them than that takes.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rheostat.errors import InvalidValue
from rheostat.model.capacity import Floats


@dataclass(frozen=True)
class Choice:
    """What one operator may have: sizes that rise, what each can do, and what is asked of it."""

    sizes: Sequence[int]
    capacity_per_s: Floats
    demand_per_s: float

    def needed(self, share: float) -> int:
        """Return the place of the smallest size that serves a share of the demand; the strongest when none does."""
        enough = self.capacity_per_s >= share * self.demand_per_s * (1 - 1e-12)
        return int(np.argmax(enough if enough.any() else self.capacity_per_s))

    def share(self, place: int) -> float:
        """Return the share of the demand that a size serves, at most 1."""
        return min(1.0, float(self.capacity_per_s[place]) / self.demand_per_s) if self.demand_per_s > 0 else 1.0


def euclidean(suggestions: Mapping[str, int], sizes: Mapping[str, Sequence[int]], slots: int) -> dict[str, int]:
    """Return the sizes nearest to the suggestions, in the Euclidean sense, that fit into the slots.

    One size at a time is given back where that adds least to the squared distance per slot: for steps of one task this
    is the exact projection, because the distance is a sum of convex terms.
    """
    _check({name: options[0] for name, options in sizes.items()}, slots)
    at = {name: max(k for k, size in enumerate(sizes[name]) if size <= max(suggestion, sizes[name][0]))
          for name, suggestion in suggestions.items()}  # fmt: skip

    def cost(name: str) -> float:
        suggestion, now, less = suggestions[name], sizes[name][at[name]], sizes[name][at[name] - 1]
        return float(((suggestion - less) ** 2 - (suggestion - now) ** 2) / (now - less))

    total = sum(sizes[name][k] for name, k in at.items())
    waiting = [(cost(name), order, name) for order, name in enumerate(at) if at[name]]
    heapq.heapify(waiting)
    while total > slots:
        _, order, name = heapq.heappop(waiting)
        total -= sizes[name][at[name]] - sizes[name][at[name] - 1]
        at[name] -= 1
        if at[name]:
            heapq.heappush(waiting, (cost(name), order, name))
    return {name: sizes[name][k] for name, k in at.items()}


def balanced(choices: Mapping[str, Choice], slots: int) -> tuple[dict[str, int], float]:
    """Return the sizes that serve the largest share of the demand within the slots, and that share.

    A job with back pressure is as fast as its scarcest operator, so the best split maximises the least share; the
    shares that are worth trying are those that some size just serves.
    """
    _check({name: choice.sizes[0] for name, choice in choices.items()}, slots)
    worth = sorted({0.0, 1.0, *(c.share(k) for c in choices.values() for k in range(len(c.sizes)))})
    reach = min(max(c.share(k) for k in range(len(c.sizes))) for c in choices.values())

    def sizes_at(share: float) -> dict[str, int]:
        return {name: choice.sizes[choice.needed(share)] for name, choice in choices.items()}

    low, high = 0, sum(share <= reach for share in worth) - 1
    while low < high:  # the largest share whose sizes fit
        middle = (low + high + 1) // 2
        if sum(sizes_at(worth[middle]).values()) <= slots:
            low = middle
        else:
            high = middle - 1
    return sizes_at(worth[low]), worth[low]


def _check(least: Mapping[str, int], slots: int) -> None:
    if sum(least.values()) > slots:
        told = " ".join(f"{name}={size}" for name, size in least.items())
        raise InvalidValue(f"a budget of {slots} slots does not pay for the fewest tasks: {told}")
