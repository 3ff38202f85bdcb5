"""A fluid-flow replica behind the Engine port. Its windows come from the fleet's history."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rheostat.engine.simulated.engine import OVERLOADED_SHARE, SimulatedEngine
from rheostat.engine.simulated.fleet import Fleet, Floats
from rheostat.job.observation import Change, EdgeReading, Latency, Observation, OperatorReading, Status
from rheostat.job.record import Intent

FALLING = 0.98
"""Ratio of the backlogs at the end and at the start of a window below which the job catches up, not overloaded."""


@dataclass(slots=True)
class Uptime:
    """The stops and restarts of one replica."""

    stopped_s: float = 0.0
    resumed_s: float = 0.0
    downtime_s: float | None = None
    """Seconds without output in the last restart."""
    recovering: bool = False
    """Whether the replica still works off the backlog of a failure."""
    normal_backlog: float = 0.0
    """Backlog in records at which the recovery is over."""


class SimulatedFlow(SimulatedEngine):
    """A replica that changes by a restart. Its metrics have the plant's display lag."""

    def __init__(
        self, fleet: Fleet, replica: int, uptime: Uptime, selectivities: Callable[[], Sequence[float]]
    ) -> None:
        super().__init__(fleet, replica)
        self.uptime, self._selectivities = uptime, selectivities

    def _steps(self, intent: Intent) -> tuple[str, ...]:
        return ("stop", "start")

    def _read_window(self, rng: np.random.Generator) -> Observation:
        fleet, i, metrics = self.fleet, self.replica, self.fleet.plant.metrics
        end = float(fleet.now) - metrics.display_lag_s
        resumed_s = self.uptime.resumed_s
        clean = resumed_s + metrics.settle_s if resumed_s else 0.0
        start = max(end - metrics.window_s, clean, 0.0)
        problem = None
        if not fleet.up[i]:
            problem = "the job is down"
        elif end - start < metrics.min_window_s:
            problem = "the window overlaps a change" if resumed_s else "the job has just started"
        if end <= start:
            start = end = max(end, 0.0)
        return self._window(start, end, rng, problem)

    def _window(self, start: float, end: float, rng: np.random.Generator, problem: str | None) -> Observation:
        fleet, i = self.fleet, self.replica
        rows = self._rows(fleet.at(end, i) - fleet.at(start, i), max(end - start, 1.0))
        levels = self._rows(fleet.at(end, i), 1.0)
        names = fleet.plant.graph.operators
        operators = tuple(self._operator(k, rows, levels, rng) for k in range(len(names)))
        emitted = dict(zip(names, rows["emitted"], strict=True))
        return Observation(
            at_s=float(fleet.now),
            start_s=start,
            end_s=end,
            running=fleet.running[i],
            wanted=fleet.wanted[i],
            change=Change.NONE if fleet.running[i] == fleet.wanted[i] else Change.UNDER_WAY,
            status=self._status(),
            sources=self._sources(),
            operators=operators,
            edges=tuple(
                EdgeReading(e.upstream, e.downstream, float(emitted[e.upstream] * selectivity))
                for e, selectivity in zip(fleet.plant.graph.edges, self._selectivities(), strict=True)
            ),
            overloaded=self._overloaded(start, end, operators),
            latency=self._latency(start, end),
            uptime_s=fleet.now - self.uptime.resumed_s if fleet.up[i] else 0.0,
            downtime_s=self.uptime.downtime_s,
            problem=problem,
        )

    def _overloaded(self, start: float, end: float, operators: tuple[OperatorReading, ...]) -> tuple[str, ...]:
        """Return the operators that cause back pressure while the backlog does not fall."""
        before, after = (
            float((row[self.fleet.rows["arrived"]] - row[self.fleet.rows["taken"]]).sum())
            for row in (self.fleet.at(start, self.replica), self.fleet.at(end, self.replica))
        )
        if after < before * FALLING:
            return ()
        return tuple(o.name for o in operators if (o.blocking_share or 0.0) > OVERLOADED_SHARE)

    def _rows(self, row: Floats, seconds: float) -> dict[str, Floats]:
        return {name: row[where] / seconds for name, where in self.fleet.rows.items()}

    def _operator(
        self, k: int, rows: dict[str, Floats], levels: dict[str, Floats], rng: np.random.Generator
    ) -> OperatorReading:
        fleet, i = self.fleet, self.replica
        operator = fleet.by_index[k]
        tasks = operator.pinned_tasks or fleet.running[i].tasks[operator.name]
        if self._missing(rng):
            return OperatorReading(operator.name, tasks)
        records, useful = float(rows["processed"][k]), float(rows["useful"][k])
        measured = min(useful / self._error(rng), 1.0)
        return OperatorReading(
            operator.name,
            tasks,
            records_in_per_s=records,
            useful_share=measured,
            true_rate_per_s=records / measured / tasks if measured > 1e-6 and records > 0 else None,
            cpu_share=fleet.plant.cpu_gain * measured,
            blocking_share=min(float(rows["blocked"][k]), 1.0),
            pending=float(levels["queue"][k]),
            state_bytes=float(levels["state"][k]),
        )

    def _status(self) -> Status:
        fleet, i = self.fleet, self.replica
        if not fleet.up[i]:
            return Status.DOWN
        uptime = self.uptime
        if uptime.recovering and float((fleet.arrived - fleet.taken)[:, i].sum()) <= uptime.normal_backlog:
            uptime.recovering = False
        return Status.RECOVERING if uptime.recovering else Status.RUNNING

    def _latency(self, start: float, end: float) -> Latency | None:
        rows = self.fleet.span(start, end, self.replica)
        if not len(rows):
            return None
        ranked = np.sort(rows[:, -2:], axis=0)
        p50, p95, p99 = (ranked[math.ceil(share * len(ranked)) - 1].tolist() for share in (0.5, 0.95, 0.99))
        return Latency(p50[0], p95[0], p99[0], p50[1], p95[1], p99[1])
