"""A micro-batch replica behind the Engine port.

It shows what `engine.spark.microbatch` shows of a real application, by the same functions: `engine.batches.window`
reads a window from finished batches and their stages, `engine.batches.observation` builds the observation.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from rheostat.engine.batches import progress
from rheostat.engine.batches.arrivals import HISTORY, ArrivalCount
from rheostat.engine.batches.batch_time import SlotHistory
from rheostat.engine.batches.live import Live, read_live
from rheostat.engine.batches.observation import JobView, observe_queries
from rheostat.engine.batches.stage import Stage
from rheostat.engine.batches.window import QueryView
from rheostat.engine.batches.work import WorkReader
from rheostat.engine.simulated.engine import SimulatedEngine
from rheostat.engine.simulated.fleet import Fleet
from rheostat.engine.simulated.microbatch.job import BATCH_HISTORY, Batch, MicroBatchJob
from rheostat.job.allocation import Allocation
from rheostat.job.observation import Change, Observation, OperatorReading
from rheostat.job.record import Intent


class SimulatedMicroBatch(SimulatedEngine):
    """A replica that is resized while it runs; its windows come from finished batches."""

    def __init__(self, fleet: Fleet, replica: int, job: MicroBatchJob) -> None:
        super().__init__(fleet, replica)
        self.job = job
        self.name = fleet.by_index[0].name
        self._batches: deque[progress.Batch] = deque(maxlen=BATCH_HISTORY)
        self._work: deque[Stage] = deque(maxlen=BATCH_HISTORY)
        self._slot_history = SlotHistory()
        self._last_idle_s = -math.inf
        self._next_number = 0
        self._arrived: deque[ArrivalCount] = deque(maxlen=HISTORY)
        self._works = WorkReader()

    def _steps(self, intent: Intent) -> tuple[str, ...]:
        return (f"request {intent.target.slots // self.job.discipline.quantum} executors",)

    def _read_window(self, rng: np.random.Generator) -> Observation:
        fleet, job, metrics = self.fleet, self.job, self.fleet.plant.metrics
        now_s, wanted = float(fleet.now), fleet.wanted[self.replica]
        running = Allocation({self.name: job.slots}) if job.slots else None
        end_s = max(0.0, now_s - metrics.display_lag_s)
        change = Change.NONE if running == wanted else Change.UNDER_WAY
        clean_s = 0.0 if job.changed_s is None else job.changed_s + metrics.settle_s
        self._collect(end_s)
        self._slot_history.record(end_s, job.slots)
        if not job.active and job.backlog == 0:
            self._last_idle_s = end_s
        view = self._view(end_s, clean_s)
        part, problem = read_live(view, self._live(view))
        missing = self._missing(rng)
        error = 1.0 if missing else self._error(rng)
        # Steps of a simulated job come at fixed times: a jump cannot be looked at again sooner.
        parts = [replace(part, busy_s=part.busy_s / error, settles_in_s=0.0)]
        state = JobView(now_s, running, wanted, change, uptime_s=now_s, end_s=end_s)
        observation = observe_queries(state, self.name, job.slots, parts, problem)
        if missing and observation.operators:
            observation = replace(observation, operators=(OperatorReading(self.name, job.slots),))
        if observation.problem is None and end_s - max(end_s - metrics.window_s, clean_s) < metrics.min_window_s:
            short = "the job has just started" if job.changed_s is None else "the window overlaps a change"
            observation = replace(observation, problem=short)
        return observation

    def _collect(self, end_s: float) -> None:
        """Collect the batches that have finished since the last window."""
        last_s = self._batches[-1].end_s if self._batches else -math.inf
        for batch in self.job.finished:
            if last_s < batch.end_s <= end_s:
                self._batches.append(self._report(self._next_number, batch))
                self._work.append(self._stage(self._next_number, batch))
                self._next_number += 1

    def _view(self, end_s: float, clean_s: float) -> QueryView:
        trigger_s = self._batches[-1].start_s if self._batches else 0.0
        counter = _Counter(self._arrivals_by, float(self.fleet.now), trigger_s)
        return QueryView(
            list(self._batches),
            self._work,
            lambda *_: counter,
            end_s,
            self.fleet.plant.metrics.window_s,
            clean_s,
            self._last_idle_s,
            self.job.active,
            self.job.slots,
            self._slot_history.during,
        )

    def _live(self, view: QueryView) -> Live:
        """Return what the source and the running batch show now; metrics that arrive late show no running batch."""
        self._count_arrivals(self._arrived, view.now_s)
        running = self.job.running_batch() if view.now_s >= self.fleet.now else None
        if running is None:
            done = self.job.done if view.now_s >= self.fleet.now else None
            return Live(self._arrived, done, settled=self._works.settled)
        work = self._works.read(running, running.planned[0] - running.begun[0], (), view.changed_s)
        return Live(self._arrived, self.job.done, running.start_s, work, self._works.settled)

    def _report(self, number: int, batch: Batch) -> progress.Batch:
        """Return a batch as a progress event would show it; offsets count records from the start."""
        after, rows = batch.before + batch.records, round(batch.records)
        source = progress.SourceProgress(self.name, batch.before, after, max(batch.latest, after), rows, {})
        seconds, state_bytes = batch.end_s - batch.start_s, int(self.fleet.state[0, self.replica])
        return progress.Batch(
            self.name, self.name, number, batch.start_s, seconds, batch.work_s, rows, (source,), {}, 0, state_bytes
        )

    def _stage(self, number: int, batch: Batch) -> Stage:
        tasks = self.job.discipline.partitions or self.job.slots
        cpu_s = self.fleet.plant.cpu_gain * batch.busy_s
        rows = round(batch.records)
        return Stage(number, self.name, number, tasks, batch.work_s, batch.busy_s, cpu_s, 0.0, rows, 0)


class _Counter:
    """A counter for offsets that are record counts; arrivals since a trigger are known by the clock."""

    def __init__(self, arrivals_by: Callable[[float], float], now_s: float, trigger_s: float) -> None:
        self._arrivals_by, self._now_s, self._trigger_s = arrivals_by, now_s, trigger_s

    def records(self, offset: Any) -> float | None:
        return float(offset)

    def ahead(self, offset: Any, seconds: float) -> float | None:
        # Callers ask only for whole seconds: now, and a window before now.
        moment = round(self._trigger_s + seconds)
        if moment < 0:
            # Extrapolate the source's rate to before the first second.
            return self._arrivals_by(self._now_s) / max(self._now_s, 1) * moment
        return self._arrivals_by(moment)
