"""A replica that works in micro-batches behind the Engine port.

It shows what `engine.spark.microbatch` shows of a real application, and by the same function: finished batches and
their stages become a window in `engine.batches.window`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from rheostat.engine.batches import progress
from rheostat.engine.batches.observation import job_reading
from rheostat.engine.batches.stage import Stage
from rheostat.engine.batches.window import QueryWindow, idle_window, query_window
from rheostat.engine.simulated.engine import SimulatedEngine
from rheostat.engine.simulated.fleet import Fleet
from rheostat.engine.simulated.microbatch.job import Batch, MicroBatchJob
from rheostat.job.allocation import Allocation
from rheostat.job.observation import Change, Observation, OperatorReading, SourceReading
from rheostat.job.record import Intent


class SimulatedMicroBatch(SimulatedEngine):
    """A replica whose executors come and go while it runs; its windows are made of finished batches."""

    def __init__(self, fleet: Fleet, replica: int, job: MicroBatchJob) -> None:
        super().__init__(fleet, replica)
        self.job = job
        self.name = fleet.by_index[0].name

    def _steps(self, intent: Intent) -> tuple[str, ...]:
        return (f"ask for {intent.target.slots // self.job.discipline.quantum} executors",)

    def _look(self, rng: np.random.Generator) -> Observation:
        fleet, job, metrics = self.fleet, self.job, self.fleet.plant.metrics
        now_s, running, wanted = float(fleet.now), self._running(), fleet.wanted[self.replica]
        end_s = max(0.0, now_s - metrics.display_lag_s)
        change = Change.NONE if running == wanted else Change.UNDER_WAY
        clean_s = 0.0 if job.changed_s is None else job.changed_s + metrics.settle_s
        found = self._found(end_s, clean_s)
        if isinstance(found, str):
            return Observation(now_s, end_s, end_s, running, wanted, change, uptime_s=now_s, problem=found)
        problem = None
        if end_s - max(end_s - metrics.window_s, clean_s) < metrics.min_window_s:
            problem = "the job has only just started" if job.changed_s is None else "the window overlaps a change"
        return Observation(
            at_s=now_s,
            start_s=found.start_s,
            end_s=end_s,
            running=running,
            wanted=wanted,
            change=change,
            sources=self._sources(),
            operators=(self._reading(found, rng),),
            overloaded=(self.name,) if found.overloaded else (),
            overdue_s=found.overdue_s,
            latency=found.latency,
            hindrances=found.hindrances,
            uptime_s=now_s,
            problem=problem,
        )

    def _sources(self) -> tuple[SourceReading, ...]:
        # To the second is not enough where batches follow each other every second.
        return tuple(replace(reading, lag_s=self.job.lag_s) for reading in super()._sources())

    def _running(self) -> Allocation | None:
        return Allocation({self.name: self.job.slots}) if self.job.slots else None

    def _found(self, end_s: float, clean_s: float) -> QueryWindow | str:
        """Return what the batches since the last change, or of the last window, show; chosen as on Spark."""
        job, window_s = self.job, self.fleet.plant.metrics.window_s
        batches = [batch for batch in job.finished if batch.end_s <= end_s]
        clean = [batch for batch in batches if batch.start_s >= clean_s]
        if not clean and end_s - clean_s > window_s:
            # A batch that outlasts the window is itself the signal.
            clean = batches[-1:]
        newest_s = clean[-1].start_s if clean else clean_s
        since_s = min(max(end_s - window_s, clean_s), newest_s)
        inside = sum(batch.start_s >= since_s for batch in batches)
        if not inside:
            resting = not job.active and job.backlog == 0 and end_s - clean_s >= window_s
            return idle_window(end_s, window_s) if resting else "no batch has finished in this window"
        # One more than is inside: between its trigger and the next one the first batch's records came.
        shown = batches[-inside - 1 :]
        counter = _Counter(self.fleet, self.replica, shown[-1].start_s)
        reports = [self._report(number, batch) for number, batch in enumerate(shown)]
        stages = [self._stage(number, batch) for number, batch in enumerate(shown)]
        return query_window(
            reports, stages, lambda *_: counter, end_s, since_s, job.active, job.slots, window_s=window_s
        )

    def _report(self, number: int, batch: Batch) -> progress.Batch:
        """Write a batch as Spark's progress would; its offsets are records since the beginning."""
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

    def _reading(self, found: QueryWindow, rng: np.random.Generator) -> OperatorReading:
        slots = self.job.slots
        if self._missing(rng):
            return OperatorReading(self.name, slots)
        seen = replace(found, busy_s=found.busy_s / self._error(rng))
        return job_reading(self.name, [seen], slots, found.end_s - found.start_s)


class _Counter:
    """Offsets are counts of records, and what has come since a trigger is known by the clock."""

    def __init__(self, fleet: Fleet, replica: int, trigger_s: float) -> None:
        self._fleet, self._replica, self._trigger_s = fleet, replica, trigger_s

    def records(self, offset: Any) -> float | None:
        return float(offset)

    def ahead(self, offset: Any, seconds: float) -> float | None:
        # Only whole seconds are ever asked for: now, and a window before now.
        moment = round(self._trigger_s + seconds)
        return float(self._fleet.at(moment, self._replica)[self._fleet.rows["arrived"]][0])
