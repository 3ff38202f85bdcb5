"""Rheostat keeps a streaming job at the smallest size that still meets its objectives, and says why."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# A library is silent unless its user listens: logging.getLogger("rheostat").setLevel(...) and a handler.
logging.getLogger("rheostat").addHandler(logging.NullHandler())

_LAZY = {
    "autoscale": "rheostat.api.autoscale",
    "start": "rheostat.api.start",
    "serve_metrics": "rheostat.api.metrics",
    "Options": "rheostat.api.options",
    "Scaler": "rheostat.api.scaler",
    "operator": "rheostat.engine.spark.telemetry.probe",
    "pipeline": "rheostat.engine.spark.pipeline",
    "session": "rheostat.engine.spark.session.session",
    "OffsetCounter": "rheostat.engine.batches.offsets",
    "Allocation": "rheostat.job.allocation",
    "Decision": "rheostat.job.decision",
    "Reason": "rheostat.job.decision",
    "Guards": "rheostat.job.guards",
    "SLO": "rheostat.job.slo",
    "Bounds": "rheostat.job.slo",
    "Budget": "rheostat.job.slo",
    "Policy": "rheostat.ports",
    "Situation": "rheostat.ports",
}
"""Names that are imported when they are first used: `import rheostat` stays cheap, and needs no Spark."""

if TYPE_CHECKING:
    from rheostat.api.autoscale import autoscale
    from rheostat.api.metrics import serve_metrics
    from rheostat.api.options import Options
    from rheostat.api.scaler import Scaler
    from rheostat.api.start import start
    from rheostat.engine.batches.offsets import OffsetCounter
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
    "OffsetCounter",
    "Options",
    "Policy",
    "Reason",
    "Scaler",
    "Situation",
    "__version__",
    "autoscale",
    "operator",
    "pipeline",
    "serve_metrics",
    "session",
    "start",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'rheostat' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return __all__
