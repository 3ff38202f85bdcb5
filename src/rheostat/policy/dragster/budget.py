"""The split of too few slots over the operators: two projections onto {sum of tasks <= slots}.

Dragster (Eq 18) writes Π for the Euclidean projection: the nearest point, which takes the same from every operator
regardless of its capacity. Ours sizes every operator for the share of the scarcest one: by the learned capacities it
serves the largest share of the load that the slots allow, and uses no more slots than that share needs.
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
    """The options of one operator: rising sizes, the input capacity of each, and the demand."""

    sizes: Sequence[int]
    capacity_per_s: Floats
    demand_per_s: float

    def needed(self, share: float) -> int:
        """Return the index of the smallest size that serves a share of the demand; the strongest if none does."""
        enough = self.capacity_per_s >= share * self.demand_per_s * (1 - 1e-12)
        return int(np.argmax(enough if enough.any() else self.capacity_per_s))

    def share(self, place: int) -> float:
        """Return the share of the demand that a size serves, at most 1."""
        return min(1.0, float(self.capacity_per_s[place]) / self.demand_per_s) if self.demand_per_s > 0 else 1.0


def euclidean(suggestions: Mapping[str, int], sizes: Mapping[str, Sequence[int]], slots: int) -> dict[str, int]:
    """Return the sizes nearest to the suggestions, in the Euclidean sense, that fit into the slots.

    One size at a time is reduced where that adds least to the squared distance per slot. With steps of one task this is
    the exact projection, because the distance is a sum of convex terms.
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

    A job with back pressure is as fast as its scarcest operator, so the best split maximises the least share. Only the
    shares that some size serves exactly need to be tried.
    """
    _check({name: choice.sizes[0] for name, choice in choices.items()}, slots)
    shares = sorted({0.0, 1.0, *(c.share(k) for c in choices.values() for k in range(len(c.sizes)))})
    reach = min(max(c.share(k) for k in range(len(c.sizes))) for c in choices.values())

    def sizes_at(share: float) -> dict[str, int]:
        return {name: choice.sizes[choice.needed(share)] for name, choice in choices.items()}

    low, high = 0, sum(share <= reach for share in shares) - 1
    while low < high:  # the largest share whose sizes fit
        middle = (low + high + 1) // 2
        if sum(sizes_at(shares[middle]).values()) <= slots:
            low = middle
        else:
            high = middle - 1
    return sizes_at(shares[low]), shares[low]


def _check(least: Mapping[str, int], slots: int) -> None:
    if sum(least.values()) > slots:
        tasks = " ".join(f"{name}={size}" for name, size in least.items())
        raise InvalidValue(f"a budget of {slots} slots is below the fewest tasks: {tasks}")
