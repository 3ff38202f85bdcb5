"""One replica behind the Engine port. It shows only what a real engine would show."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque

import numpy as np

from rheostat.engine.batches.arrivals import ArrivalCount
from rheostat.engine.simulated.draws import METRICS
from rheostat.engine.simulated.fleet import Fleet
from rheostat.errors import EngineError
from rheostat.job.graph import JobSpec
from rheostat.job.observation import Observation, SourceReading
from rheostat.job.record import Intent
from rheostat.ports import Note

OVERLOADED_SHARE = 0.1
"""Share of the window with back pressure above which an operator is overloaded (Flink: "low" above 10 %)."""


class FleetClock:
    """The fleet's own time: a sleep advances all replicas."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet

    def now(self) -> float:
        """Return simulated seconds since the start."""
        return float(self.fleet.now)

    def monotonic(self) -> float:
        """Return the same: simulated time never goes back."""
        return float(self.fleet.now)

    def sleep(self, seconds: float) -> None:
        """Advance the fleet by this long."""
        self.sleep_until(self.fleet.now + seconds)

    def sleep_until(self, moment_s: float) -> None:
        """Advance the fleet to a moment."""
        self.fleet.advance(max(0, math.ceil(moment_s - self.fleet.now)))


class SimulatedEngine(ABC):
    """A replica of a fleet: the parts common to all disciplines. Source offsets have no delay."""

    def __init__(self, fleet: Fleet, replica: int) -> None:
        self.fleet, self.replica = fleet, replica
        self._applied = ""
        self._last: Observation | None = None

    def describe(self) -> JobSpec:
        """Return the plant's spec."""
        return self.fleet.spec

    def apply(self, intent: Intent, note: Note) -> None:
        """Request the target from the fleet; a repeated intent has no effect."""
        if intent.id == self._applied:
            return
        self._check(intent)
        for step in self._steps(intent):
            note(step)
        self._applied = intent.id
        self.fleet.reconfigure(self.replica, intent.target)

    @abstractmethod
    def _steps(self, intent: Intent) -> tuple[str, ...]:
        """Return the steps of a change for the journal."""

    def _check(self, intent: Intent) -> None:
        spec, target = self.fleet.spec, intent.target
        if set(target.tasks) != set(spec.tunable_names):
            raise EngineError(f"{spec.name} has the operators {spec.tunable_names}, not {sorted(target.tasks)}")
        for tunable in spec.tunable:
            if tunable.bounds.clip(target.tasks[tunable.operator]) != target.tasks[tunable.operator]:
                raise EngineError(f"{tunable.operator} cannot have {target.tasks[tunable.operator]} tasks")
        if spec.slots_available is not None and target.slots > spec.slots_available:
            raise EngineError(f"{target.slots} slots requested, the cluster has {spec.slots_available}")
        for tunable in spec.tunable:
            if target.tasks[tunable.operator] % tunable.quantum:
                raise EngineError(
                    f"{target.slots} slots is not a multiple of the slots per executor ({tunable.quantum})"
                )
        if why := self.fleet.plant.shortage(target):
            raise EngineError(why)

    def observe(self) -> Observation:
        """Return the present window, with the flaws of real metrics."""
        fleet, metrics = self.fleet, self.fleet.plant.metrics
        rng = fleet.rng(self.replica, METRICS, fleet.now)
        if self._last is not None and metrics.stale and rng.random() < metrics.stale:
            return Observation(
                float(fleet.now), self._last.start_s, self._last.end_s, self._last.running, self._last.wanted
            )
        self._last = self._read_window(rng)
        return self._last

    @abstractmethod
    def _read_window(self, rng: np.random.Generator) -> Observation:
        """Return the present window."""

    def _missing(self, rng: np.random.Generator) -> bool:
        """Draw whether an operator's metrics are missing."""
        share = self.fleet.plant.metrics.missing
        return bool(share) and rng.random() < share

    def _error(self, rng: np.random.Generator) -> float:
        """Draw the error of a useful time: a true rate is noisy, a count of records is not."""
        noise = self.fleet.plant.metrics.noise
        return math.exp(noise * float(rng.standard_normal())) if noise else 1.0

    def _count_arrivals(self, arrived: deque[ArrivalCount], end_s: float) -> None:
        """Count the arrivals by every second since the last count, as a topic is counted between two steps."""
        oldest = self.fleet.now - len(self.fleet.history) + 1
        first = max(int(arrived[-1].at_s) + 1, oldest) if arrived else math.ceil(end_s)
        for second in (*map(float, range(first, math.ceil(end_s))), end_s):
            if not arrived or second > arrived[-1].at_s:
                arrived.append(ArrivalCount(second, self._arrivals_by(second)))

    def _arrivals_by(self, moment: float) -> float:
        """Return the records that have arrived at the first source by a moment."""
        return float(self.fleet.at(moment, self.replica)[self.fleet.rows["arrived"]][0])

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
            # Lag: the time since the total of arrivals passed the records taken.
            history = histories[:, k]
            lag = float(len(history) - np.searchsorted(history, taken, side="right"))
            if len(history) and taken < history[0] and rate:
                lag += (float(history[0]) - taken) / rate
            readings.append(SourceReading(name, rate, backlog, lag if backlog > 1e-6 else 0.0))
        return tuple(readings)
