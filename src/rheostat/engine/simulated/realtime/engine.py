"""A real-time replica behind the Engine port.

It shows what `engine.spark.realtime` shows of a real query, by the same function: `engine.batches.realtime_window`
reads a window from finished batches, their stages and probes, the topic, and the rows of the running batch.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rheostat.engine.batches import progress
from rheostat.engine.batches.arrivals import HISTORY, ArrivalCount
from rheostat.engine.batches.flow import Flow
from rheostat.engine.batches.lateness import Chain, Span, late_stages
from rheostat.engine.batches.observation import JobView, observe_stages
from rheostat.engine.batches.probe import EVENT_LATENCY, LATENCY, NANOSECONDS, QUANTILES, RECORDS, SAMPLED
from rheostat.engine.batches.realtime_window import RealTimeBatch, RealTimeWindow, realtime_window
from rheostat.engine.batches.selection import window_start_s
from rheostat.engine.batches.stage import Stage
from rheostat.engine.simulated.engine import SimulatedEngine
from rheostat.engine.simulated.fleet import Fleet
from rheostat.engine.simulated.realtime.job import Batch, RealTimeJob
from rheostat.job.allocation import Allocation
from rheostat.job.observation import Change, Observation, OperatorReading, Status
from rheostat.job.record import Intent


class SimulatedRealTime(SimulatedEngine):
    """A replica that changes by a restart; its windows come from finished batches."""

    def __init__(self, fleet: Fleet, replica: int, job: RealTimeJob) -> None:
        super().__init__(fleet, replica)
        self.job = job
        self.stages = [fleet.plant.operator(name) for name in fleet.plant.graph.order]
        self.names = fleet.plant.graph.order
        self._arrived: deque[ArrivalCount] = deque(maxlen=HISTORY)

    def _steps(self, intent: Intent) -> tuple[str, ...]:
        changed = {name for name, tasks in intent.target.tasks.items() if tasks != self.job.running.tasks[name]}
        keyed = [s.name for s in self.stages if s.state_bytes_per_record and s.name in changed]
        return ("stop after a batch", *([f"repartition the state of {', '.join(keyed)}"] if keyed else []), "start")

    def _read_window(self, rng: np.random.Generator) -> Observation:
        fleet, job, metrics = self.fleet, self.job, self.fleet.plant.metrics
        now_s, running, wanted = float(fleet.now), job.running, fleet.wanted[self.replica]
        end_s = max(0.0, now_s - metrics.display_lag_s)
        self._count_arrivals(self._arrived, end_s)
        change = Change.NONE if running == wanted and job.up else Change.UNDER_WAY
        status = Status.DOWN if not job.up else Status.RECOVERING if job.recovering else Status.RUNNING
        uptime_s = now_s - job.started_s if job.up else 0.0
        state = JobView(now_s, running, wanted, change, status, uptime_s, job.downtime_s, end_s=end_s)
        window, former = self._read_batches(end_s, rng) if job.up else ("the job is down", None)
        if isinstance(window, str):
            return state.observation(sources=self._sources(), problem=window)
        window = replace(window, operators=tuple(self._drop_missing(reading, rng) for reading in window.operators))
        short = window.end_s - window.start_s < metrics.min_window_s
        problem = "the window is too short" if short else None
        return observe_stages(state, self.names[0], window, problem, former=former)

    def _read_batches(self, end_s: float, rng: np.random.Generator) -> tuple[RealTimeWindow | str, Allocation | None]:
        """Return the window of the batches since the last change, or the reason why there is none.

        Until the first of them has ended, the window is that of the last batch before the change, with its size.
        """
        job, metrics = self.job, self.fleet.plant.metrics
        batches = [batch for batch in job.finished if batch.end_s <= end_s]
        clean_s = job.started_s + metrics.settle_s if job.started_s else 0.0
        now = self._span(job.batch, end_s) if job.batch is not None and job.batch.start_s <= end_s else None
        late = late_stages(self._chain(job.running), now) if now is not None else ()
        # A late batch shows overload, even the first one after a change. The true rates then come from the batch before
        # it, with its tasks.
        recent = bool(batches) and batches[-1].end_s > end_s - metrics.window_s
        since_s = window_start_s(batches, end_s, metrics.window_s, clean_s, overdue=bool(late) or recent)
        shown = [batch for batch in batches if batch.start_s >= since_s]
        if not shown:
            return "no batch has finished since the change" if job.started_s else "no batch has finished yet", None
        former = shown[-1].running if shown[-1].start_s < clean_s and not late else None
        chain = self._chain(shown[-1].running)
        errors = [self._error(rng) for _ in self.names]
        window = realtime_window(
            chain,
            [self._report(number, batch, errors) for number, batch in enumerate(shown)],
            [stage for number, batch in enumerate(shown) for stage in self._stages(number, batch, errors)],
            shown[0].start_s,
            end_s,
            self._recent(end_s - metrics.window_s),
            batches[-1].before + batches[-1].stages[0].records,
            None
            if now is None
            else RealTimeBatch(
                now.start_s, self._active_stages(end_s), self._chain(job.running).tasks, self._flow(end_s)
            ),
            shown[0].last_read_s,
        )
        return window, former

    def _recent(self, since_s: float) -> list[ArrivalCount]:
        """Return the counts of the window, with one at its start."""
        start_s = max(0.0, since_s)
        first = ArrivalCount(start_s, self._arrivals_by(start_s))
        return [first, *(count for count in self._arrived if count.at_s > start_s)]

    def _flow(self, end_s: float) -> Flow | None:
        """Return the rows of the running batch; metrics that arrive late show none."""
        return self.job.flow() if end_s >= self.fleet.now else None

    def _span(self, batch: Batch, now_s: float) -> Span:
        return Span(batch.start_s, tuple(min(work.end_s, now_s) for work in batch.stages), batch.last_read_s)

    def _active_stages(self, now_s: float) -> tuple[str, ...]:
        assert self.job.batch is not None
        pairs = zip(self.names, self.job.batch.stages, strict=True)
        return tuple(name for name, work in pairs if work.end_s > now_s)

    def _chain(self, running: Allocation) -> Chain:
        tasks = {stage.name: stage.pinned_tasks or running.tasks[stage.name] for stage in self.stages}
        return Chain(self.names, tasks, self.job.discipline.batch_s)

    def _report(self, number: int, batch: Batch, errors: Sequence[float]) -> progress.Batch:
        """Return a batch as a progress event would show it, with the counts of all probes."""
        rows_in = [round(work.records) for work in batch.stages]
        observed: dict[str, dict[str, object]] = {
            name: {RECORDS: rows, SAMPLED: rows, NANOSECONDS: work.useful_s / error * 1e9}
            for name, rows, work, error in list(zip(self.names, rows_in, batch.stages, errors, strict=True))[1:]
        }
        seconds = self.fleet.span(batch.start_s, max(batch.end_s, batch.start_s + 1.0), self.replica)
        for kind, row in ((LATENCY, "latency"), (EVENT_LATENCY, "event_latency")):
            late_s = np.sort(seconds[:, self.fleet.rows[row]][:, 0])
            if len(late_s):
                ranks = [math.ceil(share * len(late_s)) - 1 for share in QUANTILES]
                observed[self.names[-1]][kind] = [1e3 * float(late_s[rank]) for rank in ranks]
        flow = Flow(tuple(map(float, rows_in)), float(rows_in[-1]))
        work_s, rows = batch.end_s - batch.start_s, round(batch.stages[0].records)
        name, state_bytes = self.fleet.plant.name, int(self.fleet.state[:, self.replica].sum())
        # The gap consists of planning and commits, which belong to the trigger on Spark.
        trigger_s = work_s + batch.gap_s
        return progress.Batch(
            name, name, number, batch.start_s, trigger_s, work_s, rows, (), observed, 0, state_bytes, flow
        )

    def _stages(self, number: int, batch: Batch, errors: Sequence[float]) -> list[Stage]:
        """Return a batch's stages as Spark's status store would show them."""
        name, gain = self.fleet.plant.name, self.fleet.plant.cpu_gain
        stages = []
        for place, (work, error) in enumerate(zip(batch.stages, errors, strict=True)):
            tasks, wall_s = self._chain(batch.running).tasks[self.names[place]], work.end_s - batch.start_s
            cpu_s, rows = gain * work.useful_s / error, round(work.records)
            stage = Stage(
                place, name, number, tasks, wall_s, tasks * wall_s, cpu_s, 0.0, rows, 0, start_s=batch.start_s
            )
            stages.append(stage)
        return stages

    def _drop_missing(self, reading: OperatorReading, rng: np.random.Generator) -> OperatorReading:
        return OperatorReading(reading.name, reading.tasks) if self._missing(rng) else reading
