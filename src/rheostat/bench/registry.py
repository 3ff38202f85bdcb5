"""Benches by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rheostat.bench.fidelity import fidelity
from rheostat.bench.measure import Measure, Progress
from rheostat.bench.models import models
from rheostat.bench.spark_cost import overhead, resize
from rheostat.bench.speed import decision, simulator

BENCHES: Mapping[str, Callable[[bool, Progress], list[Measure]]] = {
    "simulator": simulator,
    "decision": decision,
    "fidelity": fidelity,
    "models": models,
    "overhead": overhead,
    "resize": resize,
}
