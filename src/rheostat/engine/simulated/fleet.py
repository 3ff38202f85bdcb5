"""The fleet: many replicas of one plant, advanced together, one second at a time.

Random numbers come from generators keyed by (the replica's seed, purpose, moment). So a replica's run depends neither
on the other replicas nor on how often it is observed.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from functools import singledispatch
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rheostat.engine.simulated.discipline import Discipline
from rheostat.engine.simulated.draws import (
    BLOCK_S,
    PERIODS,
    LoadShape,
    add_noise,
    draw_capacities,
    generator,
    output_factors,
    shape_rates,
)
from rheostat.engine.simulated.plant import Plant
from rheostat.errors import InvalidValue
from rheostat.job.allocation import Allocation
from rheostat.ports import Engine

Floats = NDArray[np.float64]

ROWS = ("processed", "useful", "blocked", "emitted", "queue", "state", "arrived", "taken", "latency", "event_latency")
"""Rows of the history: six per operator, two per source, two per job."""
TRACED = ("load_per_s", "throughput_per_s", "backlog", "latency_s", "lag_s", "slots", "up", "changing")


class Replicas(Protocol):
    """Simulates the plant's discipline for all replicas of a fleet, and updates the fleet's rows."""

    @property
    def detection_s(self) -> float:
        """Return the seconds from the loss of a worker until output stops."""

    @property
    def lag_s(self) -> Floats:
        """Return the age of the oldest record without a result, by replica."""

    @property
    def slots(self) -> Floats:
        """Return the slots in the last second, by replica."""

    @property
    def changing(self) -> Floats:
        """Return the share of the last second without output because of a change, by replica."""

    def tick(self, arrivals: Floats) -> tuple[Floats, Floats]:
        """Simulate a second; return the records taken in it, by source, and those processed, by operator."""

    def set_noise(self, factors: Floats) -> None:
        """Multiply all nominal capacities by these factors (operators x replicas) from now on."""

    def set_outputs(self, factors: Floats) -> None:
        """Multiply the selectivities of every operator's outputs by these factors from now on."""

    def reconfigure(self, replica: int, target: Allocation) -> None:
        """Begin to change the allocation of a replica."""

    def fail(self, replica: int) -> None:
        """Remove a worker from a replica."""

    def engine(self, replica: int) -> Engine:
        """Return one replica behind the Engine port."""


@singledispatch
def make_replicas(discipline: Discipline, fleet: Fleet) -> Replicas:
    """Return the replicas that simulate a discipline; every class of replicas registers itself here."""
    raise InvalidValue(f"plant {fleet.plant.name!r}: no replicas simulate {discipline.title}")


class Fleet:
    """Replicas of one plant, each with its own load, seed, allocation and failures."""

    def __init__(
        self,
        plant: Plant,
        loads: Sequence[LoadShape],
        seeds: Sequence[int],
        *,
        start: Sequence[Allocation] | None = None,
        failures_s: Sequence[float] = (),
        trace: bool = False,
        holds_back: bool = False,
    ) -> None:
        if len(loads) != len(seeds) or not seeds:
            raise InvalidValue(
                f"a fleet needs one load per seed, and at least one: {len(loads)} loads, {len(seeds)} seeds"
            )
        self.plant, self.loads, self.seeds = plant, tuple(loads), tuple(seeds)
        self.holds_back = holds_back
        self.spec = plant.spec()
        self.now = 0
        graph = plant.graph
        n, s, r = len(graph.operators), len(graph.sources), len(seeds)
        self.size = r
        self.by_index = [plant.operator(name) for name in graph.operators]

        # One array holds all values that metrics are computed from; the engine reads its history.
        self.now_rows = np.zeros((6 * n + 2 * s + 2, r))
        ends = np.cumsum([n] * 6 + [s] * 2 + [1, 1])
        self.rows = {
            name: slice(end - size, end) for name, end, size in zip(ROWS, ends, np.diff(ends, prepend=0), strict=True)
        }
        parts = [self.now_rows[where] for where in self.rows.values()]
        self.processed, self.useful, self.blocked, self.emitted, self.queue, self.state = parts[:6]
        self.arrived, self.taken, self.latency, self.event_latency = parts[6:]
        metrics, failure = plant.metrics, plant.failure
        reach = max(metrics.window_s + metrics.display_lag_s, failure.replay_s or plant.checkpoint_interval_s)
        self.history = np.zeros((int(reach) + 64, *self.now_rows.shape))

        self.up = np.ones(r)
        self.running = list(start) if start is not None else [plant.start()] * r
        self.wanted = list(self.running)
        self.arrival_rate = np.zeros((s, r))
        """Records/s at every source, smoothed over a minute."""
        self.replicas = make_replicas(plant.discipline, self)
        self._failures: list[tuple[float, int]] = []
        for replica in range(r):
            for moment in failures_s:
                self.fail(replica, moment)

        self._varies = any(o.noise or o.drift for o in self.by_index)
        self._outputs_drift = any(o.output_drift for o in self.by_index)
        self._state_in = np.array([[o.state_bytes_per_record] for o in self.by_index])
        self._state_out = np.array([[1.0 / o.state_retention_s] for o in self.by_index])
        self._stateful = bool(self._state_in.any())
        self._loads: Floats = np.zeros((0, s, r))
        self._noises: Floats = np.zeros((0, n, r))
        self._traced: Floats | None = np.zeros((BLOCK_S, len(TRACED), r), dtype=np.float32) if trace else None

    def engine(self, replica: int) -> Engine:
        """Return one replica behind the Engine port."""
        return self.replicas.engine(replica)

    def rng(self, replica: int, purpose: int, moment: int) -> np.random.Generator:
        """Return the generator for one purpose at one moment of one replica."""
        return generator(self.seeds[replica], purpose, moment)

    def trace(self) -> dict[str, Floats]:
        """Return the true course of the run: name -> seconds x replicas."""
        if self._traced is None:
            raise InvalidValue("this fleet has no trace: create it with trace=True")
        return {name: self._traced[: self.now, k].astype(float) for k, name in enumerate(TRACED)}

    # -- time ------------------------------------------------------------------------------------------------

    def advance(self, seconds: int) -> None:
        """Simulate the next seconds of all replicas."""
        for _ in range(seconds):
            while self._failures and self._failures[0][0] <= self.now:
                self.replicas.fail(heapq.heappop(self._failures)[1])
            if self.now % self.plant.noise_period_s == 0:
                self._draw_noise()
            if self.now % BLOCK_S == 0:
                self._draw_loads()
            self._tick()
            self.now += 1

    def _tick(self) -> None:
        arrivals = self._loads[self.now % BLOCK_S]
        self.arrived += arrivals
        self.arrival_rate += (arrivals - self.arrival_rate) * (1.0 if self.now == 0 else 1 / 60)
        taken, processed = self.replicas.tick(arrivals)
        if self._stateful:
            self.state += processed * self._state_in - self.state * self._state_out
        self.history[self.now % len(self.history)] = self.now_rows
        if self._traced is not None:
            self._trace_second(self._traced, arrivals, taken)

    def _trace_second(self, traced: Floats, arrivals: Floats, taken: Floats) -> None:
        if self.now >= len(traced):
            self._traced = traced = np.concatenate([traced, np.zeros_like(traced)])
        row = traced[self.now]
        row[0] = arrivals.sum(axis=0)
        row[1] = taken.sum(axis=0)
        row[2] = (self.arrived - self.taken).sum(axis=0)
        row[3] = self.event_latency
        row[4] = self.replicas.lag_s
        row[5] = self.replicas.slots
        row[6] = self.up
        row[7] = self.replicas.changing

    # -- random numbers --------------------------------------------------------------------------------------

    def feed(self, loads: Sequence[LoadShape]) -> None:
        """Replace the loads from now on."""
        self.loads = tuple(loads)
        self._draw_loads()

    def _draw_loads(self) -> None:
        block = self.now // BLOCK_S
        loads = np.empty((BLOCK_S, len(self.plant.graph.sources), self.size))
        shapes: dict[int, Floats] = {}
        for replica, load in enumerate(self.loads):
            if id(load) not in shapes:
                shapes[id(load)] = shape_rates(self.plant, load, block)
            loads[:, :, replica] = add_noise(shapes[id(load)], load.noise, self.seeds[replica], block)
        self._loads = loads

    def _draw_noise(self) -> None:
        if self._outputs_drift:
            self.replicas.set_outputs(output_factors(self.plant, np.array([float(self.now)]))[0])
        if not self._varies:
            return
        block, place = divmod(self.now // self.plant.noise_period_s, PERIODS)
        if place == 0:
            drawn = [draw_capacities(self.plant, seed, block) for seed in self.seeds]
            self._noises = np.stack(drawn, axis=2)
        self.replicas.set_noise(self._noises[place])

    # -- changes and failures --------------------------------------------------------------------------------

    def reconfigure(self, replica: int, target: Allocation) -> None:
        """Request another allocation for a replica."""
        self.wanted[replica] = target
        self.replicas.reconfigure(replica, target)

    def finish_backlog(self) -> None:
        """Finish the backlog in no time: a benchmark's job finishes one load before the next one starts."""
        self.taken[:] = self.arrived
        self.queue[:] = 0.0
        self.history[(self.now - 1) % len(self.history)] = self.now_rows

    def fail(self, replica: int, in_s: float = 0.0) -> None:
        """Remove a worker from a replica, now or later."""
        heapq.heappush(self._failures, (self.now + in_s + self.replicas.detection_s, replica))

    # -- history ---------------------------------------------------------------------------------------------

    def at(self, second: float, replica: int) -> Floats:
        """Return all rows of one replica at a second, or at the oldest second of the history."""
        moment = int(max(second, self.now - len(self.history) + 1))
        if moment <= 0:
            return np.zeros(len(self.now_rows))
        row: Floats = self.history[(moment - 1) % len(self.history), :, replica]
        return row

    def span(self, start: float, end: float, replica: int) -> Floats:
        """Return the rows of every second of a span: seconds x rows."""
        first = max(int(start), self.now - len(self.history) + 1, 0)
        index = np.arange(first, int(end)) % len(self.history)
        rows: Floats = self.history[index, :, replica]
        return rows
