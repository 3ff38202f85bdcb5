"""Benches by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rheostat.bench.bids2 import bids2
from rheostat.bench.fidelity import fidelity as fidelity_to_phoebe
from rheostat.bench.measure import Measure, Progress
from rheostat.bench.models import models
from rheostat.bench.planner import planner
from rheostat.bench.realtime_cost import rescale
from rheostat.bench.spark_cost import overhead, resize
from rheostat.bench.spark_fidelity import fidelity_on_spark
from rheostat.bench.speed import decision, simulator


def fidelity(quick: bool, progress: Progress) -> list[Measure]:
    """Hold the simulator against Phoebe's recorded runs and against Spark on this machine."""
    return fidelity_to_phoebe(quick, progress) + fidelity_on_spark(quick, progress)


BENCHES: Mapping[str, Callable[[bool, Progress], list[Measure]]] = {
    "simulator": simulator,
    "decision": decision,
    "fidelity": fidelity,
    "models": models,
    "overhead": overhead,
    "rescale": rescale,
    "resize": resize,
    "bids2": bids2,
    "planner": planner,
}
