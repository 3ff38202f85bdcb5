"""Builds the observation that the controller gets from the windows of the batches. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rheostat.engine.batches.present import add_waiting
from rheostat.engine.batches.realtime_window import RealTimeWindow, SourceNow
from rheostat.engine.batches.window import QueryWindow
from rheostat.job.allocation import Allocation
from rheostat.job.observation import (
    Change,
    Latency,
    Observation,
    OperatorReading,
    SourceReading,
    Status,
    total,
)


@dataclass(frozen=True, slots=True)
class JobView:
    """The job around its batches, as an engine sees it at one moment."""

    at_s: float
    running: Allocation | None
    wanted: Allocation | None
    change: Change = Change.NONE
    status: Status = Status.RUNNING
    uptime_s: float = 0.0
    downtime_s: float | None = None
    bottlenecks: tuple[str, ...] = ()
    change_costs_s: Mapping[str, float] = field(default_factory=dict)
    end_s: float | None = None
    """End of the window if metrics arrive late; None for now."""

    def observation(self, **readings: Any) -> Observation:
        """Return the observation with these readings; a window without a start is empty."""
        end_s = self.at_s if self.end_s is None else self.end_s
        return Observation(
            at_s=self.at_s,
            end_s=end_s,
            running=self.running,
            wanted=self.wanted,
            change=self.change,
            status=self.status,
            uptime_s=self.uptime_s,
            downtime_s=self.downtime_s,
            change_costs_s=self.change_costs_s,
            **{"start_s": end_s, "bottlenecks": self.bottlenecks, **readings},
        )


def observe_queries(
    job: JobView, name: str, slots: int, parts: Sequence[QueryWindow], problem: str | None
) -> Observation:
    """Return the observation of micro-batch queries that share the slots. The job is one operator."""
    if not parts:
        return job.observation(problem=problem)
    former_slots, unlike = _former_slots(parts)
    problem = problem or unlike
    measured_slots = former_slots or slots
    start_s = min(part.start_s for part in parts)
    seconds = max(part.end_s for part in parts) - start_s
    # The rate of a slot is known only if the whole window ran at one size.
    operators = (
        []
        if problem
        else [job_reading(name, parts, measured_slots, seconds), *named_readings(parts, measured_slots, seconds)]
    )
    return job.observation(
        start_s=start_s,
        sources=(
            SourceReading(
                name,
                total(part.rate_per_s for part in parts),
                total(part.backlog for part in parts),
                max(part.lag_s for part in parts),
                min((part.measured_s for part in parts if part.measured_s is not None), default=None),
                **_waiting(parts),
            ),
        ),
        operators=tuple(operators),
        overloaded=(name,) if not problem and any(part.overloaded for part in parts) else (),
        overdue_s=max(part.overdue_s for part in parts),
        latency=worst_latency(parts),
        bottlenecks=tuple(dict.fromkeys((*(text for part in parts for text in part.bottlenecks), *job.bottlenecks))),
        batch_time=parts[0].batch_time if len(parts) == 1 else None,
        former=Allocation({name: former_slots}) if former_slots and not problem else None,
        settles_in_s=max(part.settles_in_s for part in parts),
        problem=problem,
    )


def _waiting(parts: Sequence[QueryWindow]) -> dict[str, float | None]:
    """Return the files, bytes and versions that no batch has taken, by their names in a reading."""
    known = [part.waiting for part in parts if part.waiting is not None]
    if not known:
        return {}
    waiting = add_waiting(known)
    return {
        "files_waiting": waiting.files,
        "bytes_waiting": waiting.bytes,
        "versions_waiting": waiting.versions,
    }


def _former_slots(parts: Sequence[QueryWindow]) -> tuple[int | None, str | None]:
    """Return the former size that all queries were measured at, if it is not the present one; why, if they differ."""
    sizes = {part.former_slots for part in parts}
    return (sizes.pop(), None) if len(sizes) == 1 else (None, "some queries have finished no batch since the change")


def observe_stages(
    job: JobView,
    source: str,
    window: RealTimeWindow,
    problem: str | None,
    since_s: float = 0.0,
    former: Allocation | None = None,
) -> Observation:
    """Return the observation of a real-time query, whose stages are its operators; it starts at `since_s` or later.

    `former` is the size that was measured, if it is not the present one.
    """
    return job.observation(
        start_s=max(window.start_s, since_s),
        sources=(source_reading(source, window.source),),
        operators=window.operators,
        edges=window.edges,
        overloaded=window.overloaded if former is None else (),
        overdue_s=window.overdue_s,
        catching_up=window.catching_up,
        latency=window.latency,
        former=former,
        problem=problem,
    )


def source_reading(name: str, now: SourceNow) -> SourceReading:
    """Return the reading of a source at this moment."""
    return SourceReading(name, now.rate_per_s, now.backlog, now.lag_s, now.measured_s)


def job_reading(name: str, parts: Sequence[QueryWindow], slots: int, seconds: float) -> OperatorReading:
    """Return the reading of the job as one operator: the sum of its queries."""
    records, busy_s = sum(part.records for part in parts), sum(part.busy_s for part in parts)
    slot_s = max(slots, 1) * max(seconds, 1e-3)
    # Where Spark has evicted the stages, the fitted line gives the busy time. CPU, spill and GC stay unknown.
    has_stages = all(part.has_stages for part in parts)
    busy_known = all(part.has_stages or part.batch_time is not None or part.busy_s > 0 for part in parts)
    shares = [part.gc_share for part in parts if part.gc_share is not None]
    return OperatorReading(
        name,
        slots,
        records_in_per_s=records / max(seconds, 1e-3),
        useful_share=min(1.0, busy_s / slot_s) if busy_known else None,
        true_rate_per_s=records / busy_s if busy_known and busy_s > 0 and records > 0 else None,
        cpu_share=min(1.0, sum(part.cpu_s for part in parts) / slot_s) if has_stages else None,
        state_bytes=float(sum(part.state_bytes for part in parts)),
        spilled_bytes=float(sum(part.spilled_bytes for part in parts)) if has_stages else None,
        gc_share=max(shares, default=None),
    )


def named_readings(parts: Sequence[QueryWindow], slots: int, seconds: float) -> list[OperatorReading]:
    """Return the readings of stages, and of operators with probes. They only inform: a job is resized as a whole."""
    named: list[tuple[str, float, float | None]] = []
    for part in parts:
        named += [(name, probe.records, probe.useful_s) for name, probe in part.probes.items()]
        for place, stage in enumerate(part.stages, start=1):
            name = f"stage {place}" if len(parts) == 1 else f"{stage.query} stage {place}"
            named.append((name, stage.records, stage.busy_s))
    return [
        OperatorReading(
            name,
            slots,
            records_in_per_s=records / max(seconds, 1e-3),
            useful_share=None if useful_s is None else min(1.0, useful_s / (slots * max(seconds, 1e-3))),
            true_rate_per_s=records / useful_s if useful_s and records else None,
        )
        for name, records, useful_s in named
        if slots
    ]


def worst_latency(parts: Sequence[QueryWindow]) -> Latency | None:
    """Return the latency of the slowest query, per quantile; None if a query has finished no batch."""
    latencies = [part.latency for part in parts if part.latency is not None]
    names = ("p50_s", "p95_s", "p99_s", "event_p50_s", "event_p95_s", "event_p99_s")
    if not latencies or len(latencies) < len(parts):
        return None
    return Latency(*(max(getattr(latency, name) for latency in latencies) for name in names))
