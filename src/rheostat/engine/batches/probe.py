"""What the probes of a query counted in one batch. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

RECORDS, SAMPLED, NANOSECONDS = "rheostat_records", "rheostat_sampled", "rheostat_ns"


@dataclass(frozen=True, slots=True)
class Probe:
    """What one batch's probe counted."""

    records: int
    useful_s: float | None
    """Seconds of all tasks together; None where the stamps did not come through."""


def read_probe(counted: Mapping[str, Any]) -> Probe | None:
    """Return what a probe counted in one batch; None for observations that are not ours."""
    if RECORDS not in counted:
        return None
    records, sampled = int(counted[RECORDS]), int(counted.get(SAMPLED) or 0)
    if not sampled:
        return Probe(records, 0.0 if records == 0 else None)
    return Probe(records, float(counted[NANOSECONDS] or 0) / 1e9 * records / sampled)


LATENCY = "rheostat_latency_ms"
"""Quantiles of the age of events when their rows leave the last stage, where its probe counts."""


QUANTILES = (0.5, 0.95, 0.99)
