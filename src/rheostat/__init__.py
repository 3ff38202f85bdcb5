"""Rheostat keeps a streaming job at the smallest size that still meets its objectives, and says why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_LAZY = {
    "autoscale": "rheostat.api.autoscale",
    "metrics": "rheostat.api.metrics",
    "operator": "rheostat.engine.spark.telemetry.probe",
    "pipeline": "rheostat.engine.spark.pipeline",
    "session": "rheostat.engine.spark.session.session",
    "Allocation": "rheostat.job.allocation",
    "SLO": "rheostat.job.slo",
    "Bounds": "rheostat.job.slo",
    "Budget": "rheostat.job.slo",
    "Guards": "rheostat.job.guards",
    "Policy": "rheostat.ports",
    "Situation": "rheostat.ports",
    "Decision": "rheostat.job.decision",
    "Reason": "rheostat.job.decision",
}
"""Names that are imported when they are first used: `import rheostat` stays cheap, and needs no Spark."""

if TYPE_CHECKING:
    from rheostat.api.autoscale import autoscale
    from rheostat.api.metrics import metrics
    from rheostat.engine.spark.pipeline import pipeline
    from rheostat.engine.spark.session.session import session
    from rheostat.engine.spark.telemetry.probe import operator
    from rheostat.job.allocation import Allocation
    from rheostat.job.decision import Decision, Reason
    from rheostat.job.guards import Guards
    from rheostat.job.slo import SLO, Bounds, Budget
    from rheostat.ports import Policy, Situation

__all__ = [
    "SLO",
    "Allocation",
    "Bounds",
    "Budget",
    "Decision",
    "Guards",
    "Policy",
    "Reason",
    "Situation",
    "__version__",
    "autoscale",
    "metrics",
    "operator",
    "pipeline",
    "session",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'rheostat' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_LAZY[name]), name)
