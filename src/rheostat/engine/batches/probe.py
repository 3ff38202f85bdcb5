"""Reads the counts of a query's probes in one batch. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

RECORDS, SAMPLED, NANOSECONDS = "rheostat_records", "rheostat_sampled", "rheostat_ns"
EVENT_LATENCY, LATENCY = "rheostat_event_latency_ms", "rheostat_latency_ms"
"""Names of quantiles in ms when rows leave the last stage: since their event, and since they entered the job."""
QUANTILES = (0.5, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class Probe:
    """The counts of one probe in one batch."""

    records: int
    useful_s: float | None
    """Useful seconds of all tasks; None when the rows lost their time stamps on the way."""


def read_probe(counted: Mapping[str, Any]) -> Probe | None:
    """Return the counts of a probe in one batch; None for an `observe()` that is not Rheostat's."""
    if RECORDS not in counted:
        return None
    records, sampled = int(counted[RECORDS]), int(counted.get(SAMPLED) or 0)
    if not sampled:
        return Probe(records, 0.0 if records == 0 else None)
    return Probe(records, float(counted[NANOSECONDS] or 0) / 1e9 * records / sampled)
