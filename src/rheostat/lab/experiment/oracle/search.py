"""The cheapest course of sizes for one server whose changes stop the output: dynamic programming over time.

A state is (size, backlog). Between two decisions nothing changes, so a step of the search is an interval. In it the
backlog follows Lindley's recursion B = max(0, B + work - capacity), whose solution from a backlog b is

    B(s) = max(b + N(s), N(s) - min N),    N(s) = sum of work - capacity,

so that the seconds over the SLO are a count of thresholds below b. A change from p to q costs 2 d slots(p) for its
downtime d, whatever q is, and continues from q, whatever p was: the search joins all states before a change in one
front of (cost, backlog), and starts all sizes from it.

States of a size whose backlogs are in the same bin become one with the least cost and the least backlog of both. Cost
and dynamics never fall with the backlog, so for every real course there is a state that is at most as expensive and at
most as far behind: the result is a lower bound.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rheostat.engine.simulated.draws import Floats
from rheostat.lab.experiment.oracle.cost import OVER_WEIGHT, Cost
from rheostat.lab.experiment.oracle.course import LATE_S
from rheostat.lab.experiment.oracle.server import Served, Thresholds

Ints = NDArray[np.int64]

FINEST_S = 0.05
"""Width of the first bin of backlogs, in seconds of the mean load."""
BIN_RATIO = 1.15
"""Ratio of the upper ends of two bins."""
BINS = 80
"""Bins of the backlog; the last one has no end."""


@dataclass(frozen=True)
class Found:
    """The cheapest course."""

    cost: Cost
    sizes: tuple[tuple[int, int], ...] = ()
    """(second, index of the size) of the start and of every change, of a search that is traced."""


@dataclass
class _States:
    """States of the search at one moment."""

    size: Ints
    backlog: Floats
    held: Floats
    over: Floats
    lost: Floats
    node: Ints
    """Number of the change that began this size, for the way back."""

    def total(self, weight: float) -> Floats:
        result: Floats = self.held + weight * self.over + self.lost
        return result

    def take(self, which: NDArray[np.int64] | NDArray[np.bool_]) -> _States:
        return _States(*(getattr(self, name)[which] for name in self.__dataclass_fields__))

    @staticmethod
    def join(parts: list[_States]) -> _States:
        return _States(*(np.concatenate([getattr(p, n) for p in parts]) for n in _States.__dataclass_fields__))


@dataclass
class Search:
    """A search over the sizes of one server; `peak_slots` price its seconds over the SLO."""

    server: Served
    peak_slots: float
    traced: bool = False
    """Whether to remember the changes, which a bound does not need."""
    _first: list[int] = field(default_factory=list)
    _noted: list[tuple[int, Ints, Ints]] = field(default_factory=list)
    """(second, sizes, nodes before) of the changes that were tried together; `_first` has the first node of each."""

    def __post_init__(self) -> None:
        self._weight = OVER_WEIGHT * self.peak_slots
        self._finest = max(FINEST_S * float(self.server.work.mean()), 1e-9)
        self._bins: Floats = self._finest * np.power(BIN_RATIO, np.arange(BINS - 1, dtype=np.float64))
        self._last: tuple[int, int, Floats, Thresholds] | None = None

    def run(self, start: int) -> Found:
        """Return the cheapest course from a size without a backlog."""
        course = self.server.course
        edges = [0, *course.moments.tolist(), course.seconds]
        zero, first = np.zeros(1), np.array([start])
        states = _States(first, zero, zero, zero, zero, self._note(0, first, np.array([-1])))
        landing: dict[int, list[_States]] = {}
        stopped: _States | None = None
        for k in range(len(edges) - 1):
            begin, end = edges[k], edges[k + 1]
            if k:
                present = states if stopped is None else _States.join([states, stopped])
                waiting = []
                for chosen, downtime in self._by_downtime(present, k - 1):
                    last = k + 1
                    while edges[last] - begin < downtime and last + 1 < len(edges):
                        last += 1
                    landing.setdefault(last, []).append(self._change(chosen, begin, edges[last], downtime))
                    if last > k + 1:
                        waiting.append(self._wait(chosen, begin, end))
                stopped = self._merge(_States.join(waiting)) if waiting else None
            parts = [self._stay(states, begin, end), *landing.pop(k + 1, [])]
            states = self._merge(_States.join(parts))
        best = int(np.argmin(states.total(self._weight)))
        cost = Cost(float(states.held[best]), float(states.over[best]), float(states.lost[best]), self.peak_slots)
        return Found(cost, self._way(int(states.node[best])))

    def _by_downtime(self, states: _States, decision: int) -> list[tuple[_States, int]]:
        """Return the states by the downtime of a change: state that is far behind may be small."""
        course = self.server.course
        bare, usual = int(course.bare_downtimes[decision]), int(course.downtimes[decision])
        if bare == usual:
            return [(states, usual)]
        rate = self.server.rate[course.moments[decision]]
        behind = states.backlog > LATE_S / 2 * rate
        groups = [(states.take(~behind), usual), (states.take(behind), bare)]
        return [(group, downtime) for group, downtime in groups if len(group.size)]

    # -- one step -----------------------------------------------------------------------------------------------

    def _seconds(self, begin: int, end: int) -> tuple[Floats, Thresholds]:
        """Return capacities and thresholds of these seconds; staying and changing ask for the same ones."""
        if self._last is None or self._last[:2] != (begin, end):
            self._last = (begin, end, self.server.capacity(begin, end), self.server.thresholds(begin, end))
        return self._last[2], self._last[3]

    def _stay(self, states: _States, begin: int, end: int) -> _States:
        """Run every state with its size until the next decision."""
        work = self.server.work[begin:end]
        capacity, thresholds = self._seconds(begin, end)
        net = np.cumsum(work - capacity, axis=1)
        after, over = _follow(net, thresholds.running, states.size, states.backlog)
        held = states.held + self.server.slots[states.size] * (end - begin)
        return _States(states.size, after, held, states.over + over, states.lost, states.node)

    def _change(self, states: _States, begin: int, end: int, downtime: int) -> _States:
        """Stop the states of the front, and run every size from there until the next decision after the downtime."""
        slots, count = self.server.slots, len(self.server.slots)
        stop = min(downtime, end - begin)
        front = self._front(states, stop)
        work = self.server.work[begin:end]
        capacity, thresholds = self._seconds(begin, end)
        net = np.cumsum(work - np.where(np.arange(end - begin) < stop, 0.0, capacity), axis=1)
        allowed = thresholds.running.copy()
        # All that arrives during the downtime waits at the source.
        fresh = np.cumsum(work[:stop])
        allowed[:, :stop] = np.where(fresh > thresholds.arrived[:stop], -np.inf, thresholds.stopped[:stop])
        size = np.tile(np.arange(count), len(front.size))
        of_front = np.repeat(np.arange(len(front.size)), count)
        backlog = front.backlog[of_front]
        after, over = _follow(net, allowed, size, backlog, self._excess(begin, end, backlog, size))
        old = slots[front.size][of_front]
        nodes = self._note(begin, size, front.node[of_front])
        return _States(
            size,
            after,
            front.held[of_front] + stop * old + (end - begin - stop) * slots[size],
            front.over[of_front] + over,
            front.lost[of_front] + stop * old,
            nodes,
        )

    def _excess(self, begin: int, end: int, backlog: Floats, size: Ints) -> Floats:
        """Return what a full buffer of a larger size adds to the backlog that the SLO allows with the new size.

        A record in the buffer waits 1 / capacity, at the source 1 / rate.
        """
        capacity = self._seconds(begin, end)[0].max(axis=1)
        room = self.server.buffer_s * capacity
        gain = np.maximum(1 - self.server.rate[begin:end].min() / np.maximum(capacity, 1e-9), 0.0)
        excess: Floats = np.maximum(np.minimum(backlog, room.max()) - room[size], 0.0) * gain[size]
        return excess

    def _wait(self, states: _States, begin: int, end: int) -> _States:
        """Stay down until the next decision, which asks for another size before the first one runs."""
        work = self.server.work[begin:end]
        thresholds = self._seconds(begin, end)[1]
        fresh = np.cumsum(work)
        allowed = np.where(fresh > thresholds.arrived, -np.inf, thresholds.stopped)[None, :]
        after, over = _follow(fresh[None, :], allowed, np.zeros(len(states.size), dtype=np.int64), states.backlog)
        paid = self.server.slots[states.size] * (end - begin)
        return _States(states.size, after, states.held + paid, states.over + over, states.lost + paid, states.node)

    # -- fewer states -------------------------------------------------------------------------------------------

    def _front(self, states: _States, stop: int) -> _States:
        """Return the states from which a change may pay: less backlog must cost more."""
        total = states.total(self._weight) + 2 * stop * self.server.slots[states.size]
        order = np.lexsort((total, states.backlog))
        total = total[order]
        better = np.concatenate([[True], total[1:] < np.minimum.accumulate(total)[:-1]])
        front = states.take(order[better])
        return self._cheapest(front, np.searchsorted(self._bins, front.backlog), total[better])

    def _merge(self, states: _States) -> _States:
        """Join the states of a size whose backlogs are in one bin, and drop those that another one beats in both."""
        bins = np.searchsorted(self._bins, states.backlog)
        merged = self._cheapest(states, states.size * BINS + bins, states.total(self._weight))
        bins = np.searchsorted(self._bins, merged.backlog)
        table = np.full((len(self.server.slots), BINS), np.inf)
        total = merged.total(self._weight)
        table[merged.size, bins] = total
        least = np.minimum.accumulate(table, axis=1)
        before = np.where(bins > 0, least[merged.size, bins - 1], np.inf)
        return merged.take(total < before)

    @staticmethod
    def _cheapest(states: _States, cells: Ints, total: Floats) -> _States:
        """Return the cheapest state of every cell, with the least backlog in it."""
        order = np.lexsort((total, cells))
        first = np.flatnonzero(np.concatenate([[True], np.diff(cells[order]) > 0]))
        least = np.minimum.reduceat(states.backlog[order], first)
        best = states.take(order[first])
        best.backlog = least
        return best

    # -- the way back -------------------------------------------------------------------------------------------

    def _note(self, second: int, size: Ints, parent: Ints) -> Ints:
        if not self.traced:
            return np.full(len(size), -1)
        first = self._first[-1] + len(self._noted[-1][1]) if self._noted else 0
        self._first.append(first)
        self._noted.append((second, size.astype(np.int16), parent.astype(np.int32)))
        return np.arange(first, first + len(size))

    def _way(self, node: int) -> tuple[tuple[int, int], ...]:
        way = []
        while node >= 0:
            place = bisect_right(self._first, node) - 1
            second, size, parent = self._noted[place]
            way.append((second, int(size[node - self._first[place]])))
            node = int(parent[node - self._first[place]])
        return tuple(reversed(way))


def _follow(
    net: Floats, allowed: Floats, size: Ints, backlog: Floats, excess: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return the backlogs at the end and the seconds over their thresholds, for states of these sizes and backlogs."""
    lowest = np.minimum.accumulate(net, axis=1)
    emptied = net - lowest
    # Over from any backlog where even an empty start is over; else from those above the threshold less the net work.
    least = np.where(emptied > allowed, -np.inf, allowed - net)
    shown = backlog if excess is None else np.where(excess > 0, backlog - excess, backlog)
    over = (least[size] < shown[:, None]).sum(axis=1).astype(float)
    after = np.maximum(backlog + net[size, -1], emptied[size, -1])
    return np.maximum(after, 0.0), over
