"""From the queries' parts of a window to the readings of an observation. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from rheostat.engine.batches.window import QueryWindow
from rheostat.job.observation import Latency, OperatorReading

CALM = Latency(0, 0, 0, 0, 0, 0)


def idle(now_s: float, window_s: float) -> QueryWindow:
    """Return the window of a query that has had nothing to do for all of it."""
    return QueryWindow(now_s - window_s, now_s, 0, 0.0, 0.0, 0.0, 0.0, 0.0, False, CALM, 0.0, 0.0, 0.0, 0, 0, 0, {}, ())


def job_reading(name: str, parts: Sequence[QueryWindow], slots: int, seconds: float) -> OperatorReading:
    """Return the reading of the one operator that all queries together are."""
    records, busy_s = sum(part.records for part in parts), sum(part.busy_s for part in parts)
    slot_s = max(slots, 1) * max(seconds, 1e-3)
    # Where Spark has forgotten the stages, the fitted line tells how busy slots were; the rest is not known then.
    seen = all(part.seen for part in parts)
    told = all(part.seen or part.batch_time is not None for part in parts)
    shares = [part.gc_share for part in parts if part.gc_share is not None]
    return OperatorReading(
        name,
        slots,
        records_in_per_s=records / max(seconds, 1e-3),
        useful_share=min(1.0, busy_s / slot_s) if told else None,
        true_rate_per_s=records / busy_s if told and busy_s > 0 and records > 0 else None,
        cpu_share=min(1.0, sum(part.cpu_s for part in parts) / slot_s) if seen else None,
        state_bytes=float(sum(part.state_bytes for part in parts)),
        spilled_bytes=float(sum(part.spilled_bytes for part in parts)) if seen else None,
        gc_share=max(shares, default=None),
    )


def named_readings(parts: Sequence[QueryWindow], slots: int, seconds: float) -> list[OperatorReading]:
    """Return the readings of operators with probes: evidence, since only the job as a whole can be tuned."""
    slot_s = slots * max(seconds, 1e-3)
    return [
        OperatorReading(
            name,
            slots,
            records_in_per_s=probe.records / max(seconds, 1e-3),
            useful_share=None if probe.useful_s is None else min(1.0, probe.useful_s / slot_s),
            true_rate_per_s=probe.records / probe.useful_s if probe.useful_s and probe.records else None,
        )
        for part in parts
        for name, probe in part.probes.items()
        if slots
    ]


def worst_latency(parts: Sequence[QueryWindow]) -> Latency | None:
    """Return, quantile by quantile, that of the slowest query; None when one of them has ended no batch."""
    known = [part.latency for part in parts if part.latency is not None]
    names = ("p50_s", "p95_s", "p99_s", "event_p50_s", "event_p95_s", "event_p99_s")
    if not known or len(known) < len(parts):
        return None
    return Latency(*(max(getattr(latency, name) for latency in known) for name in names))
