"""The fleet: many replicas of one plant, advanced together, one second at a time.

Everything random comes from generators keyed by (replica's seed, purpose, moment), so a replica's run does
not depend on which others run beside it, nor on how often it is looked at.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from rheostat.engine.simulated.flow import BackPressure
from rheostat.engine.simulated.microbatch.replicas import Batches
from rheostat.engine.simulated.plant import Plant
from rheostat.engine.simulated.realtime.replicas import Chains
from rheostat.errors import InvalidValue
from rheostat.job.allocation import Allocation

if TYPE_CHECKING:
    from rheostat.engine.simulated.engine import SimulatedEngine

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
        self.source_rows = [graph.operators.index(name) for name in graph.sources]
        self.flow = BackPressure(plant, r)

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
        self.down_until = np.zeros(r)
        self.stopped_at = np.zeros(r)
        self.resumed_at = np.zeros(r)
        self.downtime_s = np.full(r, np.nan)
        self.recovering = np.zeros(r, dtype=bool)
        self.lag_before = np.zeros(r)
        self.running = list(start) if start is not None else [plant.start()] * r
        self.wanted = list(self.running)
        slots = [allocation.slots for allocation in self.running]
        self.batches = None if plant.discipline is None else Batches(plant, slots)
        rngs = [self.rng(replica, BATCHES, 0) for replica in range(r)]
        self.chains = None if plant.realtime is None else Chains(plant, self.running, rngs)
        self._events: list[tuple[float, int, int, str]] = []
        for replica in range(r):
            for moment in failures_s:
                self.fail(replica, moment)

        self._tasks = np.ones((n, r))
        self._base, self._evenness, self._eta = np.ones((n, r)), np.ones((n, r)), np.ones(r)
        self._limit = np.array([[o.limit_per_s or np.inf] for o in self.by_index])
        self._noise_sd = np.array([[o.noise] for o in self.by_index])
        self._factor = np.ones((n, r))
        self._latency_b = np.array([[o.queueing_records] for o in self.by_index])
        self._state_in = np.array([[o.state_bytes_per_record] for o in self.by_index])
        self._state_out = np.array([[1.0 / o.state_retention_s] for o in self.by_index])
        self._stateful = bool(self._state_in.any())
        ups = [graph.operators.index(e.upstream) for e in graph.edges]
        downs = [graph.operators.index(e.downstream) for e in graph.edges]
        self._edge_up, self._edge_down = np.array(ups, dtype=int), np.array(downs, dtype=int)
        self._edge_sel = np.array([[e.selectivity] for e in graph.edges])
        self._unit = np.array([[plant.unit_per_s[name]] for name in graph.sources])
        self._arrival_rate = np.zeros((s, r))
        self._loads: Floats = np.zeros((0, s, r))
        self._noises: Floats = np.zeros((0, n, r))
        self._traced: Floats | None = np.zeros((BLOCK_S, len(TRACED), r), dtype=np.float32) if trace else None
        for replica in range(r):
            self._place(replica)
        self._refresh()

    def engine(self, replica: int) -> SimulatedEngine:
        """Return one replica behind the Engine port."""
        if self.batches is not None:
            from rheostat.engine.simulated.microbatch.engine import BatchedEngine

            return BatchedEngine(self, replica, self.batches.jobs[replica])
        if self.chains is not None:
            from rheostat.engine.simulated.realtime.engine import ChainedEngine

            return ChainedEngine(self, replica, self.chains.jobs[replica])
        from rheostat.engine.simulated.engine import SimulatedEngine

        return SimulatedEngine(self, replica)

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
            while self._events and self._events[0][0] <= self.now:
                _, _, replica, what = heapq.heappop(self._events)
                self._fail(replica) if what == "fail" else self._resume(replica)
            if self.now % self.plant.noise_period_s == 0:
                self._draw_noise()
            if self.now % BLOCK_S == 0:
                self._draw_loads()
            self._tick()
            self.now += 1

    def _tick(self) -> None:
        arrivals = self._loads[self.now % BLOCK_S]
        self.arrived += arrivals
        if self.batches is not None:
            self._batch(self.batches, arrivals)
        elif self.chains is not None:
            self._chain(self.chains, arrivals)
        else:
            self._flow(arrivals)
        self.history[self.now % len(self.history)] = self.now_rows

    def _flow(self, arrivals: Floats) -> None:
        """Play one second with back pressure."""
        waiting = self.arrived - self.taken
        flow = self.flow
        flow.tick(self.now, waiting, self._ability, self._room)
        processed = flow.processed
        taken = processed[self.source_rows]
        self.taken += taken
        if self.holds_back:
            # A rate-limited source heeds back pressure: what the job did not take was never sent.
            self.arrived[:] = self.taken
        self.processed += processed
        self.emitted += flow.emitted
        self.useful += processed * self._per_shown
        self.queue[:] = flow.queue
        # An operator holds up its upstreams while it works at its own limit and its buffer does not empty.
        held_up = flow.left > self._half_room
        held_up &= processed == self._ability
        held_up &= self._ability > 0.0
        self.blocked += held_up
        if self._stateful:
            self.state += processed * self._state_in - self.state * self._state_out
        self._measure_latency(processed, waiting, taken, arrivals)
        if self._traced is not None:
            self._trace_second(arrivals, taken, self.event_latency - self.latency, self._slots)

    def _batch(self, batches: Batches, arrivals: Floats) -> None:
        """Play one second of micro-batches: records count when their batch ends."""
        batches.tick(self.now, arrivals[0])
        taken = batches.done - self.taken
        for row in (self.taken, self.processed, self.emitted):
            row[:] = batches.done
        self.useful += batches.useful
        if self._stateful:
            self.state += taken * self._state_in - self.state * self._state_out
        self.latency[:], self.event_latency[:] = batches.latency_s, batches.event_latency_s
        for replica, job in enumerate(batches.jobs):
            # With its last executor killed, a job has no allocation that could be named: the last one stays.
            if job.slots and job.slots != self.running[replica].slots:
                self.running[replica] = Allocation({self.by_index[0].name: job.slots})
        if self._traced is not None:
            self._trace_second(arrivals, taken, batches.lag_s, batches.slots)

    def _chain(self, chains: Chains, arrivals: Floats) -> None:
        """Play one second of real time: records count when they leave the last stage."""
        chains.tick(self.now, arrivals[0])
        taken, processed = chains.done - self.taken, chains.processed - self.processed
        self.taken[:], self.processed[:], self.emitted[:] = chains.done, chains.processed, chains.processed
        self.useful[:], self.queue[:], self.up[:] = chains.useful, chains.queue, chains.up
        if self._stateful:
            self.state += processed * self._state_in - self.state * self._state_out
        self.latency[:], self.event_latency[:] = chains.latency_s, chains.event_latency_s
        self.running = [job.running for job in chains.jobs]
        if self._traced is not None:
            self._trace_second(arrivals, taken, chains.lag_s, chains.slots)

    def _measure_latency(self, processed: Floats, waiting: Floats, taken: Floats, arrivals: Floats) -> None:
        law = self.plant.latency
        busy = np.minimum(processed * self._per_effective, 0.999)
        queueing = self._queueing * busy
        queueing /= 1.0 - busy
        latency = np.minimum(queueing, law.cap_s, out=queueing)
        latency += self.flow.queue * self._per_effective
        total = latency.sum(axis=0)
        total += law.base_s
        if law.buffer_records and len(self._edge_up):
            rate = self.flow.emitted[self._edge_up] * self._edge_sel
            rate += 1e-9
            filling = np.minimum(self._buffering / rate, law.timeout_s)
            total += filling.sum(axis=0) * 0.5
        self._arrival_rate += (arrivals - self._arrival_rate) * (1.0 if self.now == 0 else 1 / 60)
        behind = (waiting - taken) / (self._arrival_rate + 1e-9)
        np.copyto(self.latency, total)
        np.add(total, behind.max(axis=0), out=self.event_latency)

    def _trace_second(self, arrivals: Floats, taken: Floats, lag_s: Floats, slots: Floats) -> None:
        assert self._traced is not None
        if self.now >= len(self._traced):
            self._traced = np.concatenate([self._traced, np.zeros_like(self._traced)])
        row = self._traced[self.now]
        row[0] = arrivals.sum(axis=0)
        row[1] = taken.sum(axis=0)
        row[2] = (self.arrived - self.taken).sum(axis=0)
        row[3] = self.event_latency
        row[4] = lag_s
        row[5] = slots
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
        self._factor = np.exp(self._noise_sd * self._noises[place])
        if self.batches is not None:
            self.batches.renew(self._factor[0])
        if self.chains is not None:
            self.chains.renew(self._factor)
        self._refresh()

    # -- abilities -------------------------------------------------------------------------------------------

    def _place(self, replica: int) -> None:
        """Take over what one replica's running allocation means for its abilities."""
        allocation = self.running[replica]
        for i, operator in enumerate(self.by_index):
            tasks = operator.pinned_tasks or allocation.tasks[operator.name]
            nominal = self.plant.nominal_per_s(operator, tasks, allocation.memory_mb)
            self._tasks[i, replica] = tasks
            self._base[i, replica] = nominal
            self._evenness[i, replica] = operator.evenness(tasks)
        self._eta[replica] = self.plant.interference.share(allocation.slots)

    def _refresh(self) -> None:
        """Compute what every second needs from tasks, noise and who is up; called only when one of them changed."""
        nominal = self._base * self._factor
        shown = np.minimum(nominal, self._limit)
        real = np.minimum(nominal * self._evenness, self._limit) * self._eta
        self._per_shown = 1.0 / shown
        self._per_effective = 1.0 / real
        self._queueing = self._latency_b * self._tasks / nominal
        self._room = self.plant.buffer_s * real
        self._half_room = 0.5 * self._room
        self._ability = real * self.up
        law = self.plant.latency
        self._buffering = law.buffer_records * self._tasks[self._edge_up] * self._tasks[self._edge_down]
        self._slots = np.array([allocation.slots for allocation in self.running], dtype=float)

    # -- changes and failures --------------------------------------------------------------------------------

    def reconfigure(self, replica: int, target: Allocation) -> None:
        """Stop a replica and let it resume with another allocation after a random downtime; or resize it live."""
        self.wanted[replica] = target
        if self.batches is not None:
            self.batches.jobs[replica].want(target.slots)
            return
        if self.chains is not None:
            self.chains.jobs[replica].want(target)
            return
        if target == self.running[replica] and self.up[replica]:
            return
        drawn = self.plant.restart.draw_s(self.rng(replica, RESTART, self.now), float(self.state[:, replica].sum()))
        self._stop(replica, drawn)

    def finish_backlog(self) -> None:
        """Let all that waits be done, in no time: a benchmark's job finishes one load before it gets the next."""
        self.taken[:] = self.arrived
        self.queue[:] = self.flow.queue[:] = 0.0
        self.history[(self.now - 1) % len(self.history)] = self.now_rows

    def fail(self, replica: int, in_s: float = 0.0) -> None:
        """Let a replica lose a worker, now or later."""
        flows = self.batches is None and self.chains is None
        unnoticed_s = self.plant.failure.detected_after_s if flows else 0.0
        self._schedule(self.now + in_s + unnoticed_s, replica, "fail")

    def _fail(self, replica: int) -> None:
        if self.batches is not None:
            self.batches.jobs[replica].kill()
            return
        if self.chains is not None:
            self.chains.jobs[replica].kill()
            return
        failure = self.plant.failure
        waiting = (self.arrived - self.taken)[:, replica]
        self.lag_before[replica] = max(float(waiting.sum()), 2.0 * float(self._arrival_rate[:, replica].sum()))
        self.recovering[replica] = True
        interval_s = self.plant.checkpoint_interval_s
        back_s = failure.replay_s if failure.replay_s is not None else self.now % interval_s
        since = self.at(self.now - back_s, replica)[self.rows["taken"]]
        self.taken[:, replica] = np.minimum(self.taken[:, replica], since)
        self.flow.lose(replica)
        self._stop(replica, failure.draw_downtime_s(self.rng(replica, FAILURE, self.now)))

    def _stop(self, replica: int, seconds: float) -> None:
        if self.up[replica]:
            self.stopped_at[replica] = self.now
        self.up[replica] = 0.0
        self.down_until[replica] = max(self.down_until[replica], self.now + round(seconds))
        self._schedule(self.down_until[replica], replica, "resume")
        self._refresh()

    def _resume(self, replica: int) -> None:
        if self.up[replica] or self.now < self.down_until[replica]:
            return
        self.up[replica] = 1.0
        self.resumed_at[replica] = self.now
        self.downtime_s[replica] = self.now - self.stopped_at[replica]
        self.running[replica] = self.wanted[replica]
        self._place(replica)
        self._refresh()

    def _schedule(self, moment: float, replica: int, what: str) -> None:
        heapq.heappush(self._events, (moment, len(self._events), replica, what))

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
