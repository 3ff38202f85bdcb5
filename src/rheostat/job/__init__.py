"""The vocabulary: frozen, plain data that every layer speaks. Nothing here does I/O or knows another layer."""

from rheostat.job.allocation import Allocation
from rheostat.job.decision import (
    Decision,
    Expectation,
    GuardNote,
    Interval,
    Measurement,
    Outcome,
    Phase,
    Reason,
    Trial,
    Verdict,
)
from rheostat.job.graph import Edge, Graph, JobSpec, Pinned, Tunable
from rheostat.job.observation import (
    Change,
    EdgeReading,
    Latency,
    Observation,
    OperatorReading,
    SourceReading,
    Status,
)
from rheostat.job.slo import Bounds, Budget, Limits, Slo

__all__ = [
    "Allocation",
    "Bounds",
    "Budget",
    "Change",
    "Decision",
    "Edge",
    "EdgeReading",
    "Expectation",
    "Graph",
    "GuardNote",
    "Interval",
    "JobSpec",
    "Latency",
    "Limits",
    "Measurement",
    "Observation",
    "OperatorReading",
    "Outcome",
    "Phase",
    "Pinned",
    "Reason",
    "Slo",
    "SourceReading",
    "Status",
    "Trial",
    "Tunable",
    "Verdict",
]
