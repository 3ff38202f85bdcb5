"""The fleet: many replicas of one plant, advanced together, one second at a time.

Everything random comes from generators keyed by (replica's seed, purpose, moment), so a replica's run does
not depend on which others run beside it, nor on how often it is looked at.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from functools import singledispatch
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rheostat.engine.simulated.discipline import Discipline
from rheostat.engine.simulated.plant import Plant
from rheostat.errors import InvalidValue
from rheostat.job.allocation import Allocation
from rheostat.ports import Engine

Floats = NDArray[np.float64]

BLOCK_S = 512
"""Loads and noise are drawn in blocks of this many seconds."""
LOAD, ABILITY, RESTART, FAILURE, METRICS, BATCHES = range(1, 7)
"""Purposes of random numbers."""
ROWS = ("processed", "useful", "blocked", "emitted", "queue", "state", "arrived", "taken", "latency", "event_latency")
"""What the history keeps: six rows per operator, two per source, two per job."""
TRACED = ("load_per_s", "throughput_per_s", "backlog", "latency_s", "lag_s", "slots", "up")


class LoadShape(Protocol):
    """What the fleet needs of a load: see `engine/testbed/loads.py`."""

    @property
    def noise(self) -> float:
        """Return the share by which rates scatter evenly, every second anew."""

    def level(self, t_s: Floats) -> Floats:
        """Return one level per second (times the unit rates), or sources x seconds of records/s."""


class Replicas(Protocol):
    """What plays the plant's discipline, for all replicas of a fleet, and keeps the fleet's rows up to date."""

    @property
    def unnoticed_s(self) -> float:
        """Return the seconds from the loss of a worker until anything stops."""

    @property
    def lag_s(self) -> Floats:
        """Return the age of the oldest record without a result, by replica."""

    @property
    def slots(self) -> Floats:
        """Return the slots that were there in the last second, by replica."""

    def tick(self, arrivals: Floats) -> tuple[Floats, Floats]:
        """Play a second; return the records taken in it, by source, and those processed, by operator."""

    def renew(self, factors: Floats) -> None:
        """Multiply all capacities by these factors (operators x replicas), until there are others."""

    def reconfigure(self, replica: int, target: Allocation) -> None:
        """Begin to give a replica another allocation."""

    def fail(self, replica: int) -> None:
        """Let a replica lose a worker."""

    def engine(self, replica: int) -> Engine:
        """Return one replica behind the Engine port."""


@singledispatch
def make_replicas(discipline: Discipline, fleet: Fleet) -> Replicas:
    """Return what plays a discipline; each discipline's replicas are registered where their class is."""
    raise InvalidValue(f"plant {fleet.plant.name!r}: there are no replicas that play {discipline.title}")


class Fleet:
    """Replicas of one plant, each with its own load, seed, allocation and fate."""

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

        # One array holds all that metrics are made of; its history is what the engine looks at.
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

        self._noise_sd = np.array([[o.noise] for o in self.by_index])
        self._state_in = np.array([[o.state_bytes_per_record] for o in self.by_index])
        self._state_out = np.array([[1.0 / o.state_retention_s] for o in self.by_index])
        self._stateful = bool(self._state_in.any())
        self._unit = np.array([[plant.unit_per_s[name]] for name in graph.sources])
        self._loads: Floats = np.zeros((0, s, r))
        self._noises: Floats = np.zeros((0, n, r))
        self._traced: Floats | None = np.zeros((BLOCK_S, len(TRACED), r), dtype=np.float32) if trace else None

    def engine(self, replica: int) -> Engine:
        """Return one replica behind the Engine port."""
        return self.replicas.engine(replica)

    def rng(self, replica: int, purpose: int, moment: int) -> np.random.Generator:
        """Return the generator for one purpose at one moment of one replica."""
        return np.random.default_rng([self.seeds[replica], purpose, moment])

    def trace(self) -> dict[str, Floats]:
        """Return what really happened, second by second: name -> seconds x replicas."""
        if self._traced is None:
            raise InvalidValue("this fleet was made with trace=False")
        return {name: self._traced[: self.now, k].astype(float) for k, name in enumerate(TRACED)}

    # -- time ------------------------------------------------------------------------------------------------

    def advance(self, seconds: int) -> None:
        """Let time pass for all replicas."""
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

    # -- what is random --------------------------------------------------------------------------------------

    def feed(self, loads: Sequence[LoadShape]) -> None:
        """Replace the loads from now on."""
        self.loads = tuple(loads)
        self._draw_loads()

    def _draw_loads(self) -> None:
        block = self.now // BLOCK_S
        seconds = np.arange(block * BLOCK_S, (block + 1) * BLOCK_S, dtype=float)
        loads = np.empty((BLOCK_S, len(self._unit), self.size))
        shapes: dict[int, Floats] = {}
        for replica, load in enumerate(self.loads):
            if id(load) not in shapes:
                level = load.level(seconds)
                shapes[id(load)] = (level * self._unit).T if level.ndim == 1 else level.T
            rates = shapes[id(load)]
            if load.noise:
                even = self.rng(replica, LOAD, block).random((BLOCK_S, 1))
                rates = rates * (1.0 + load.noise * (2.0 * even - 1.0))
            loads[:, :, replica] = rates
        self._loads = loads

    def _draw_noise(self) -> None:
        if not self._noise_sd.any():
            return
        period = self.now // self.plant.noise_period_s
        block, place = divmod(period, 64)
        if place == 0:
            shape = (64, len(self.by_index))
            drawn = [self.rng(k, ABILITY, block).standard_normal(shape) for k in range(self.size)]
            self._noises = np.stack(drawn, axis=2)
        self.replicas.renew(np.exp(self._noise_sd * self._noises[place]))

    # -- changes and failures --------------------------------------------------------------------------------

    def reconfigure(self, replica: int, target: Allocation) -> None:
        """Ask for another allocation of a replica."""
        self.wanted[replica] = target
        self.replicas.reconfigure(replica, target)

    def finish_backlog(self) -> None:
        """Let all that waits be done, in no time: a benchmark's job finishes one load before it gets the next."""
        self.taken[:] = self.arrived
        self.queue[:] = 0.0
        self.history[(self.now - 1) % len(self.history)] = self.now_rows

    def fail(self, replica: int, in_s: float = 0.0) -> None:
        """Let a replica lose a worker, now or later."""
        heapq.heappush(self._failures, (self.now + in_s + self.replicas.unnoticed_s, replica))

    # -- history ---------------------------------------------------------------------------------------------

    def at(self, second: float, replica: int) -> Floats:
        """Return all rows of one replica as they were at a second; as far back as the history reaches."""
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
