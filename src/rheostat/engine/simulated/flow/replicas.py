"""The replicas of a fluid-flow plant: capacities, latency, restarts and failures."""

from __future__ import annotations

import numpy as np

from rheostat.engine.simulated.discipline import Flow
from rheostat.engine.simulated.draws import FAILURE, RESTART
from rheostat.engine.simulated.fleet import Fleet, Floats, make_replicas
from rheostat.engine.simulated.flow.back_pressure import BackPressure
from rheostat.engine.simulated.flow.engine import SimulatedFlow, Uptime
from rheostat.job.allocation import Allocation


@make_replicas.register(Flow)
class FlowReplicas:
    """All replicas in the same arrays: operators x replicas, or by replica."""

    def __init__(self, discipline: Flow, fleet: Fleet) -> None:
        plant, graph, n, r = fleet.plant, fleet.plant.graph, len(fleet.by_index), fleet.size
        self.fleet = fleet
        self.flow = BackPressure(plant, fleet.queue)
        self.detection_s = plant.failure.detected_after_s
        self.uptimes = [Uptime() for _ in range(r)]
        self.changing = np.zeros(r)
        self._down_until: dict[int, float] = {}
        """Replica that is down -> when it resumes."""
        self._source_rows = np.array([graph.operators.index(name) for name in graph.sources])
        self._edge_up = np.array([graph.operators.index(e.upstream) for e in graph.edges], dtype=int)
        self._edge_down = np.array([graph.operators.index(e.downstream) for e in graph.edges], dtype=int)
        self._edge_sel = self._graph_sel = np.array([[e.selectivity] for e in graph.edges])
        self._limit = np.array([[o.limit_per_s or np.inf] for o in fleet.by_index])
        self._latency_b = np.array([[o.queueing_records] for o in fleet.by_index])
        self._tasks, self._base, self._evenness, self._factor = (np.ones((n, r)) for _ in range(4))
        self._eta, self.slots = np.ones(r), np.zeros(r)
        for replica in range(r):
            self._place(replica)
        self._refresh()

    def engine(self, replica: int) -> SimulatedFlow:
        """Return one replica behind the Engine port."""
        return SimulatedFlow(self.fleet, replica, self.uptimes[replica], lambda: self.selectivities)

    @property
    def lag_s(self) -> Floats:
        """Age of the oldest record that waits at a source."""
        return self.fleet.event_latency - self.fleet.latency

    def tick(self, arrivals: Floats) -> tuple[Floats, Floats]:
        """Simulate one second with back pressure."""
        fleet, flow = self.fleet, self.flow
        if self._down_until:
            self._resume()
        waiting = fleet.arrived - fleet.taken
        flow.tick(fleet.now, waiting, self._capacity, self._room)
        processed = flow.processed
        taken = processed[self._source_rows]
        fleet.taken += taken
        if fleet.holds_back:
            # Back pressure reaches a rate-limited source: it never sends the records that the job does not take.
            fleet.arrived[:] = fleet.taken
        fleet.processed += processed
        fleet.emitted += flow.emitted
        fleet.useful += processed * self._per_shown
        # An operator blocks its upstreams while it works at its capacity and its buffer does not empty.
        blocking = flow.left > self._half_room
        blocking &= processed == self._capacity
        blocking &= self._capacity > 0.0
        fleet.blocked += blocking
        self._measure_latency(processed, waiting - taken)
        return taken, processed

    def _measure_latency(self, processed: Floats, left: Floats) -> None:
        law, fleet = self.fleet.plant.latency, self.fleet
        busy = np.minimum(processed * self._per_effective, 0.999)
        if law.exponent == 1.0:
            queueing = self._queueing * busy
            queueing /= 1.0 - busy
        else:
            queueing = self._queueing * (busy / (1.0 - busy)) ** law.exponent
        latency = np.minimum(queueing, law.cap_s, out=queueing)
        latency += fleet.queue * self._per_effective
        total = latency.sum(axis=0)
        total += law.base_s
        if law.buffer_records and len(self._edge_up):
            rate = self.flow.emitted[self._edge_up] * self._edge_sel
            rate += 1e-9
            filling = np.minimum(self._buffering / rate, law.timeout_s)
            total += filling.sum(axis=0) * 0.5
        behind = left / (fleet.arrival_rate + 1e-9)
        np.copyto(fleet.latency, total)
        np.add(total, behind.max(axis=0), out=fleet.event_latency)

    # -- capacities -------------------------------------------------------------------------------------------

    def set_noise(self, factors: Floats) -> None:
        """Multiply all nominal capacities by these factors from now on."""
        self._factor = factors
        self._refresh()

    def set_outputs(self, factors: Floats) -> None:
        """Multiply the selectivities of every operator's outputs by these factors from now on."""
        self.flow.set_outputs(factors)
        if len(self._edge_up):
            self._edge_sel = self._graph_sel * factors[self._edge_up][:, None]

    @property
    def selectivities(self) -> list[float]:
        """The selectivities of the graph's edges at present."""
        return [float(value) for value in self._edge_sel.ravel()]

    def _place(self, replica: int) -> None:
        """Set the nominal capacities of one replica after its running allocation."""
        plant, allocation = self.fleet.plant, self.fleet.running[replica]
        for i, operator in enumerate(self.fleet.by_index):
            tasks = operator.pinned_tasks or allocation.tasks[operator.name]
            self._tasks[i, replica] = tasks
            self._base[i, replica] = plant.nominal_per_s(operator, tasks, allocation.memory_mb)
            self._evenness[i, replica] = operator.evenness(tasks)
        self.slots[replica] = allocation.slots
        self._eta[replica] = plant.interference.share(allocation.slots)

    def _refresh(self) -> None:
        """Compute the constants of a second from tasks, noise and the running replicas, after one of them changed."""
        plant = self.fleet.plant
        nominal = self._base * self._factor
        shown = np.minimum(nominal, self._limit)
        real = np.minimum(nominal * self._evenness, self._limit) * self._eta
        self._per_shown = 1.0 / shown
        self._per_effective = 1.0 / real
        self._queueing = self._latency_b * self._tasks / nominal
        self._room = plant.buffer_s * real
        self._half_room = 0.5 * self._room
        self._capacity = real * self.fleet.up
        self._buffering = plant.latency.buffer_records * self._tasks[self._edge_up] * self._tasks[self._edge_down]

    # -- changes and failures --------------------------------------------------------------------------------

    def reconfigure(self, replica: int, target: Allocation) -> None:
        """Stop a replica; it resumes with another allocation after a random downtime."""
        fleet = self.fleet
        if target == fleet.running[replica] and fleet.up[replica]:
            return
        self.changing[replica] = 1.0
        rng = fleet.rng(replica, RESTART, fleet.now)
        self._stop(replica, fleet.plant.restart.draw_s(rng, float(fleet.state[:, replica].sum())))

    def fail(self, replica: int) -> None:
        """Stop a replica, drop its records in flight, and read those since the last checkpoint again."""
        fleet, failure, uptime = self.fleet, self.fleet.plant.failure, self.uptimes[replica]
        waiting = (fleet.arrived - fleet.taken)[:, replica]
        uptime.normal_backlog = max(float(waiting.sum()), 2.0 * float(fleet.arrival_rate[:, replica].sum()))
        uptime.recovering = True
        interval_s = fleet.plant.checkpoint_interval_s
        back_s = failure.replay_s if failure.replay_s is not None else fleet.now % interval_s
        since = fleet.at(fleet.now - back_s, replica)[fleet.rows["taken"]]
        fleet.taken[:, replica] = np.minimum(fleet.taken[:, replica], since)
        self.flow.lose(replica)
        self._stop(replica, failure.draw_downtime_s(fleet.rng(replica, FAILURE, fleet.now)))

    def _stop(self, replica: int, seconds: float) -> None:
        now = self.fleet.now
        if self.fleet.up[replica]:
            self.uptimes[replica].stopped_s = float(now)
        self.fleet.up[replica] = 0.0
        self._down_until[replica] = max(self._down_until.get(replica, 0.0), now + round(seconds))
        self._refresh()

    def _resume(self) -> None:
        """Start the replicas whose downtime is over, with the allocation last requested."""
        fleet = self.fleet
        for replica in [replica for replica, moment in self._down_until.items() if moment <= fleet.now]:
            del self._down_until[replica]
            fleet.up[replica], self.changing[replica] = 1.0, 0.0
            uptime = self.uptimes[replica]
            uptime.resumed_s, uptime.downtime_s = float(fleet.now), fleet.now - uptime.stopped_s
            fleet.running[replica] = fleet.wanted[replica]
            self._place(replica)
            self._refresh()
