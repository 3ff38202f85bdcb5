"""One replica behind the Engine port: it shows only what a real engine would show."""

from __future__ import annotations

import math

import numpy as np

from rheostat.engine.simulated.fleet import METRICS, Fleet, Floats
from rheostat.errors import EngineError
from rheostat.job.graph import JobSpec
from rheostat.job.observation import (
    Change,
    EdgeReading,
    Latency,
    Observation,
    OperatorReading,
    SourceReading,
    Status,
)
from rheostat.job.record import Intent
from rheostat.ports import Note

OVERLOADED_SHARE = 0.1
"""Back pressure in more than a tenth of the window is a symptom (Flink calls it low above 10 %, high above 50 %)."""
FALLING = 0.98
"""While the backlog falls faster than this per window the job catches up: it is busy, not overloaded."""


class FleetClock:
    """The fleet's own time: sleeping advances all replicas."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet

    def now(self) -> float:
        """Return simulated seconds since the start."""
        return float(self.fleet.now)

    def sleep_until(self, moment_s: float) -> None:
        """Advance the fleet."""
        self.fleet.advance(max(0, math.ceil(moment_s - self.fleet.now)))


class SimulatedEngine:
    """A replica of a fleet. Source offsets are read without delay, metrics with the plant's display lag."""

    def __init__(self, fleet: Fleet, replica: int) -> None:
        self.fleet, self.replica = fleet, replica
        self._applied = ""
        self._last: Observation | None = None

    def describe(self) -> JobSpec:
        """Return the plant's spec."""
        return self.fleet.spec

    def apply(self, intent: Intent, note: Note) -> None:
        """Stop, and resume later with the target; the same intent again changes nothing."""
        if intent.id == self._applied:
            return
        self._check(intent)
        for step in self._steps(intent):
            note(step)
        self._applied = intent.id
        self.fleet.reconfigure(self.replica, intent.target)

    def _steps(self, intent: Intent) -> tuple[str, ...]:
        return ("stop", "start")

    def _check(self, intent: Intent) -> None:
        spec, target = self.fleet.spec, intent.target
        if set(target.tasks) != set(spec.tunable_names):
            raise EngineError(f"{spec.name} has the operators {spec.tunable_names}, not {sorted(target.tasks)}")
        for tunable in spec.tunable:
            if tunable.bounds.clip(target.tasks[tunable.operator]) != target.tasks[tunable.operator]:
                raise EngineError(f"{tunable.operator} cannot have {target.tasks[tunable.operator]} tasks")
        if spec.slots_available is not None and target.slots > spec.slots_available:
            raise EngineError(f"{target.slots} slots are asked for, {spec.slots_available} are there")

    def observe(self) -> Observation:
        """Return the last window, with everything that is wrong with real metrics."""
        fleet, metrics = self.fleet, self.fleet.plant.metrics
        rng = fleet.rng(self.replica, METRICS, fleet.now)
        if self._last is not None and metrics.stale and rng.random() < metrics.stale:
            return Observation(
                float(fleet.now), self._last.start_s, self._last.end_s, self._last.running, self._last.wanted
            )
        self._last = self._look(rng)
        return self._last

    def _look(self, rng: np.random.Generator) -> Observation:
        fleet, i, metrics = self.fleet, self.replica, self.fleet.plant.metrics
        end = float(fleet.now) - metrics.display_lag_s
        clean = float(fleet.resumed_at[i]) + metrics.settle_s if fleet.resumed_at[i] else 0.0
        start = max(end - metrics.window_s, clean, 0.0)
        problem = None
        if not fleet.up[i]:
            problem = "the job is down"
        elif end - start < metrics.min_window_s:
            problem = "the window overlaps a change" if fleet.resumed_at[i] else "the job has only just started"
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
                EdgeReading(e.upstream, e.downstream, float(emitted[e.upstream] * e.selectivity))
                for e in fleet.plant.graph.edges
            ),
            overloaded=self._overloaded(start, end, operators),
            latency=self._latency(start, end),
            uptime_s=float(fleet.now - fleet.resumed_at[i]) if fleet.up[i] else 0.0,
            downtime_s=None if math.isnan(fleet.downtime_s[i]) else float(fleet.downtime_s[i]),
            problem=problem,
        )

    def _overloaded(self, start: float, end: float, operators: tuple[OperatorReading, ...]) -> tuple[str, ...]:
        """Back pressure, seen at its root, while the backlog does not fall."""
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
        metrics, operator = fleet.plant.metrics, fleet.by_index[k]
        tasks = operator.pinned_tasks or fleet.running[i].tasks[operator.name]
        if metrics.missing and rng.random() < metrics.missing:
            return OperatorReading(operator.name, tasks)
        records, useful = float(rows["processed"][k]), float(rows["useful"][k])
        # The counters' error is in the useful time: a true rate is noisy, a count of records is not.
        error = math.exp(metrics.noise * float(rng.standard_normal())) if metrics.noise else 1.0
        seen = min(useful / error, 1.0)
        return OperatorReading(
            operator.name,
            tasks,
            records_in_per_s=records,
            useful_share=seen,
            true_rate_per_s=records / seen / tasks if seen > 1e-6 and records > 0 else None,
            cpu_share=fleet.plant.cpu_gain * seen,
            blocking_share=min(float(rows["blocked"][k]), 1.0),
            pending=float(levels["queue"][k]),
            state_bytes=float(levels["state"][k]),
        )

    def _sources(self) -> tuple[SourceReading, ...]:
        fleet, i = self.fleet, self.replica
        seconds = min(fleet.plant.metrics.window_s, float(fleet.now))
        past = fleet.at(fleet.now - seconds, i)[fleet.rows["arrived"]]
        histories = fleet.span(0, fleet.now, i)[:, fleet.rows["arrived"]]
        readings = []
        for k, name in enumerate(fleet.plant.graph.sources):
            arrived, taken = float(fleet.arrived[k, i]), float(fleet.taken[k, i])
            rate = (arrived - float(past[k])) / seconds if seconds else None
            backlog = max(arrived - taken, 0.0)
            # Age of the oldest waiting record: when did the arrivals pass what has been taken?
            history = histories[:, k]
            lag = float(len(history) - np.searchsorted(history, taken, side="right"))
            if len(history) and taken < history[0] and rate:
                lag += (float(history[0]) - taken) / rate
            readings.append(SourceReading(name, rate, backlog, lag if backlog > 1e-6 else 0.0))
        return tuple(readings)

    def _status(self) -> Status:
        fleet, i = self.fleet, self.replica
        if not fleet.up[i]:
            return Status.DOWN
        if fleet.recovering[i] and float((fleet.arrived - fleet.taken)[:, i].sum()) <= fleet.lag_before[i]:
            fleet.recovering[i] = False
        return Status.RECOVERING if fleet.recovering[i] else Status.RUNNING

    def _latency(self, start: float, end: float) -> Latency | None:
        rows = self.fleet.span(start, end, self.replica)
        if not len(rows):
            return None
        ranked = np.sort(rows[:, -2:], axis=0)
        p50, p95, p99 = (ranked[math.ceil(share * len(ranked)) - 1].tolist() for share in (0.5, 0.95, 0.99))
        return Latency(p50[0], p95[0], p99[0], p50[1], p95[1], p99[1])
