"""What ContTune's paper does not have.

With `bracket`:
- the linear suggestion stays between the trusted sizes for a smaller and a larger demand, so that more demand never
  gets fewer tasks; with Eq 4, which is not monotone, a suggestion is also the largest of those for smaller demands;
- a size range in which more tasks clearly reduce capacity is avoided;
- if the slots do not suffice, operators are cut by what they need, not by whole tasks.

With `model=loglog`:
- a size that failed at a load is not suggested again until that load has fallen (`failed`);
- a size has to serve the load with `DEVIATIONS` standard deviations of one window to spare, by the noise that the model
  has learned. The headroom counts towards that;
- a capacity that has risen is noticed: when the model needs far fewer tasks than run for some looks in a row, a tuning
  begins.

Always: if an operator cannot have the tasks that it needs, the others are sized for the share that it serves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rheostat.model.capacity import CapacityCurve, Sample
from rheostat.model.history import History
from rheostat.policy.conttune.view import Suggestion, View
from rheostat.ports import Situation

FALLEN = 0.8
"""Share of a smaller size's capacity below which the largest size, sampled twice, counts as clearly slower."""
DEVIATIONS = 2.0
"""Standard deviations of one window by which a capacity has to exceed the load."""
RUNG, MOST_RUNGS = 0.05, 200
"""Distance of two demands in logarithms, and the most that are tried (a factor of 20,000 together)."""
LEAST_PART = 1e-3
"""Least part of a last task: rounding up must not lose it."""
FAILED = "failed"
"""Name of the failed sizes in the memo."""
SPARE = "spare"
"""Name of the looks with spare capacity in the memo."""
WORTHWHILE = 0.1
"""Least share of the job's tasks whose saving is worth a tuning."""
PATIENCE = 3
"""Looks in a row at which they must be spare."""
LOWER = 0.05
"""Share by which a load must be lower than the one at which a size failed, for that size to be possible again."""


def cut_where_it_falls(view: View, samples: Sequence[Sample]) -> View:
    """End the curve at the best size if the largest one is clearly slower."""
    curve, means = view.curve, view.means
    assert curve is not None
    largest, best = max(means), max(means, key=lambda size: means[size])
    twice = sum(sample.tasks == largest for sample in samples) > 1
    if not twice or means[largest] >= FALLEN * means[best]:
        return view
    cut = CapacityCurve(curve.capacity_per_s[:best], curve.sd_per_s[:best], curve.distance[:best], curve.noise)
    return replace(view, curve=cut, falls=True)


def bracketed(view: View, tasks: float, trusted: bool, demand_per_s: float, alpha: float) -> float:
    """Return a suggestion with the part of its last task that is needed, or kept between trusted sizes."""
    assert view.curve is not None
    if trusted:
        return part_of_last(view.curve, int(tasks), demand_per_s)
    return between(view, tasks, demand_per_s, alpha)


def between(view: View, linear: float, demand_per_s: float, alpha: float) -> float:
    """Keep a linear suggestion between the trusted sizes for a smaller and a larger demand."""
    assert view.curve is not None
    capacity, trusted = view.curve.capacity_per_s, view.curve.distance <= alpha
    before = np.concatenate(([-math.inf], np.maximum.accumulate(capacity)[:-1]))
    smaller = np.flatnonzero(trusted & (capacity > before) & (before < demand_per_s))
    larger = np.flatnonzero(trusted & (capacity >= demand_per_s))
    least = int(smaller[-1]) + 1 if len(smaller) else 0
    if len(larger):
        return min(max(linear, least), int(larger[0]) + 1)
    return len(capacity) if view.falls else max(linear, least)


def part_of_last(curve: CapacityCurve, tasks: int, demand_per_s: float) -> float:
    """Return the tasks with the part of the last one that is needed, for a budget that cuts operators in proportion."""
    before, at_it = (0.0, *curve.capacity_per_s)[tasks - 1], curve.capacity_per_s[tasks - 1]
    part = (demand_per_s - before) / (at_it - before) if before < demand_per_s < at_it else 1.0
    return tasks - 1 + max(float(part), LEAST_PART)


def up_to(curve: CapacityCurve, demand_per_s: float) -> list[float]:
    """Return the demands of a fixed ladder from one task's capacity up to this one, rounded up to its next rung."""
    least, most = curve.capacity_per_s[0], (curve.capacity_per_s + 6.0 * curve.sd_per_s).max()
    low, beyond, high = (math.ceil(math.log(max(per_s, 1e-3)) / RUNG) for per_s in (least, most, demand_per_s))
    # Beyond the curve the linear suggestion is used, which grows with the demand by itself.
    rungs = [*range(max(low, beyond - MOST_RUNGS), min(beyond, high)), high]
    return [math.exp(RUNG * rung) for rung in rungs]


def failed(situation: Situation[History]) -> dict[str, tuple[int, float]]:
    """Return the largest size of each operator that has failed, and its load, from the memo and this window.

    A job that works off a backlog is overloaded, too, but processes as much as arrives.
    """
    window, tasks = situation.window, situation.running.tasks
    load, done = window.load_per_s or 0.0, window.throughput_per_s
    memo: Mapping[str, tuple[int, float]] = situation.memo.get(FAILED, {})
    known = {name: (size, at) for name, (size, at) in memo.items() if load >= (1 - LOWER) * at and name in tasks}
    if done is not None and done < load:
        for name in set(window.overloaded) & set(tasks):
            known[name] = max(known.get(name, (0, 0.0)), (tasks[name], load), key=lambda one: (one[0], -one[1]))
    return known


def looks_with_spare(situation: Situation[History], suggestions: Mapping[str, Suggestion]) -> int:
    """Return the looks in a row, with this one, at which the measured sizes say that a worthwhile part is spare."""
    running = situation.running
    target = situation.fit({name: suggestion.tasks for name, suggestion in suggestions.items()})
    measured = all(suggestion.trusted for suggestion in suggestions.values())
    fewer = sum(target.tasks.values()) <= (1 - WORTHWHILE) * sum(running.tasks.values())
    return situation.memo.get(SPARE, 0) + 1 if measured and fewer and not situation.window.overloaded else 0


def room_for_noise(view: View) -> float:
    """Return the factor by which a capacity must exceed the load to serve it in nearly every window."""
    return 1.0 if view.curve is None else math.exp(DEVIATIONS * view.curve.noise)


# -- scarcity ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scarce:
    """The operator that serves the least share of its demand with all the tasks that it may have."""

    name: str
    most: int
    share: float

    def __str__(self) -> str:
        return f"with its maximum of {self.most} tasks {self.name} serves {self.share:.0%} of the demand"


def find_scarce(
    views: Mapping[str, View], demand_per_s: Mapping[str, float], bounds: Mapping[str, int], alpha: float
) -> Scarce | None:
    """Return the scarcest operator; None if all can serve their demand."""
    shares = {
        name: min(1.0, most_per_s(views[name], most, alpha) / demand_per_s[name])
        for name, most in bounds.items()
        if demand_per_s[name] > 0
    }
    scarce = min(shares, key=lambda name: shares[name], default=None)
    return None if scarce is None or shares[scarce] >= 1.0 else Scarce(scarce, bounds[scarce], shares[scarce])


def most_per_s(view: View, tasks: int, alpha: float) -> float:
    """Return the capacity with at most these tasks, by trusted sizes if they reach that far, else linearly."""
    linear = tasks * view.rate_per_s if view.rate_per_s else math.inf
    if view.curve is None:
        return linear
    trusted = view.curve.distance[:tasks] <= alpha
    measured = float(view.curve.capacity_per_s[:tasks][trusted].max(initial=0.0))
    return measured if view.falls or (len(trusted) == tasks and trusted[-1]) else max(measured, linear)


def serve_scarce(
    scarce: Scarce, names: Iterable[str], suggest: Callable[[str, float], Suggestion]
) -> dict[str, Suggestion]:
    """Return suggestions for the share of the demand that the scarce operator serves; itself gets what it needs."""
    sized = {name: suggest(name, 1.0 if name == scarce.name else scarce.share) for name in names}
    return {name: replace(suggestion, share=scarce.share) for name, suggestion in sized.items()}
