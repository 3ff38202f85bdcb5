"""The data-backlog model: how fast a job must be for its event-time latency to be right in time.

AuTraScale+ (TPDS 2024), Eq 9 to 12. In a steady state a record waits l_w = l_e - l_p at the source, so by Little's law
λ l_w records wait there; what is beyond that must be worked off within the limit, beside what arrives.
"""

from __future__ import annotations


def steady_backlog(load_per_s: float, event_s: float, processing_s: float) -> float:
    """Return R_lag^(s), the records that wait while event-time latency is as promised (Eq 9 and 10)."""
    return load_per_s * max(event_s - processing_s, 0.0)


def excess(backlog: float, load_per_s: float, event_s: float, processing_s: float) -> float:
    """Return R_lag^(t), the records to be worked off (Eq 11); zero when there is nothing to do."""
    return max(backlog - steady_backlog(load_per_s, event_s, processing_s), 0.0)


def catch_up_per_s(load_per_s: float, excess_records: float, limit_s: float) -> float:
    """Return V_t, the throughput that works off the excess within the limit (Eq 12)."""
    return load_per_s + excess_records / limit_s
