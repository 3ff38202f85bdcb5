"""One second of fluid flow with bounded buffers and back pressure, as in the papers' Flink.

A backward pass through the graph computes how many records each operator could take in this second, given its capacity
and the free buffers of its downstreams. A forward pass moves the records. Records pass through several operators
within one second, so buffers need not hold a second's worth of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rheostat.engine.simulated.plant import Plant

Floats = NDArray[np.float64]


class BackPressure:
    """Queues and windows of all replicas; arrays are operators x replicas."""

    def __init__(self, plant: Plant, queue: Floats) -> None:
        graph, shape, self.queue = plant.graph, queue.shape, queue
        self._queue = list(queue)
        index = {name: i for i, name in enumerate(graph.operators)}
        self.processed, self.emitted, self.left = (np.zeros(shape) for _ in range(3))
        self.pane, self.held, self._inflows = (np.zeros(shape) for _ in range(3))
        # Rows as views: to index the arrays in every second takes a sixth longer.
        self._processed, self._emitted, self._left = map(list, (self.processed, self.emitted, self.left))
        self._pane, self._held, self._inflow = map(list, (self.pane, self.held, self._inflows))
        self._could, self._accepts, self._gate = (list(np.zeros(shape)) for _ in range(3))
        self._spare = np.zeros(shape[1])
        self._order = [index[name] for name in graph.order]
        self._source = {index[name]: s for s, name in enumerate(graph.sources)}
        self._downs = self._graph_downs = [
            [(index[e.downstream], e.selectivity) for e in graph.outputs[name] if e.selectivity > 0]
            for name in graph.operators
        ]
        self._shares = [1.0 / max(1, len(graph.inputs[name])) for name in graph.operators]
        by_name = {o.name: o for o in plant.operators}
        self._window = [
            int(by_name[name].emits_every_s or 0) if self._downs[index[name]] else 0 for name in graph.operators
        ]

    def set_outputs(self, factors: Floats) -> None:
        """Multiply the selectivities of every operator's outputs by these factors from now on."""
        self._downs = [
            [(j, selectivity * float(factors[i])) for j, selectivity in downs]
            for i, downs in enumerate(self._graph_downs)
        ]

    def tick(self, second: int, waiting: Floats, capacity: Floats, room: Floats) -> None:
        """Move records for one second: `waiting` at the sources, given capacities and buffer sizes."""
        spare = self._spare
        for i in reversed(self._order):
            limit = could = self._could[i]
            if self._window[i]:
                # A window that fires blocks its task: it takes no input while results wait to leave.
                limit = self._gate[i]
                limit.fill(np.inf)
                np.multiply(capacity[i], self._held[i] == 0.0, out=could)
            else:
                limit[:] = capacity[i]
            for j, selectivity in self._downs[i]:
                if selectivity == 1.0:
                    np.minimum(limit, self._accepts[j], out=limit)
                else:
                    np.divide(self._accepts[j], selectivity, out=spare)
                    np.minimum(limit, spare, out=limit)
            if i not in self._source:
                # Each upstream gets its share of the free buffer, so that several of them settle without oscillation.
                np.subtract(room[i], self._queue[i], out=spare)
                if self._shares[i] != 1.0:
                    spare *= self._shares[i]
                spare += could
                np.maximum(spare, 0.0, out=self._accepts[i])

        inflow = self._inflow
        self._inflows.fill(0.0)
        for i in self._order:
            source = self._source.get(i)
            taken, left = self._processed[i], self._left[i]
            if source is not None:
                present = waiting[source]
            else:
                present = inflow[i]
                present += self._queue[i]
            np.minimum(present, self._could[i], out=taken)
            np.subtract(present, taken, out=left)
            out = self._fire(i, second) if self._window[i] else taken
            self._emitted[i][:] = out
            for j, selectivity in self._downs[i]:
                if selectivity == 1.0:
                    inflow[j] += out
                else:
                    np.multiply(out, selectivity, out=spare)
                    inflow[j] += spare
            if source is None:
                self._queue[i][:] = left

    def _fire(self, i: int, second: int) -> Floats:
        """Collect results in the window's pane; at its end they leave at the pace of the downstreams."""
        pane, held = self._pane[i], self._held[i]
        pane += self._processed[i]
        if (second + 1) % self._window[i] == 0:
            held += pane
            pane.fill(0.0)
        out: Floats = np.minimum(held, self._gate[i])
        held -= out
        return out

    def lose(self, replica: int) -> None:
        """Drop all records in flight: after a failure they are read again."""
        for records in (self.queue, self.pane, self.held):
            records[:, replica] = 0.0
