"""Benches by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rheostat.lab.bench.bids2 import bids2
from rheostat.lab.bench.fidelity import fidelity as fidelity_to_phoebe
from rheostat.lab.bench.forecast import forecast
from rheostat.lab.bench.measure import Measure, Progress
from rheostat.lab.bench.models import models
from rheostat.lab.bench.overhead import overhead, resize
from rheostat.lab.bench.planner import planner
from rheostat.lab.bench.probes import probes
from rheostat.lab.bench.realtime_fidelity import fidelity_of_realtime
from rheostat.lab.bench.recovery import recovery as recovery_simulated
from rheostat.lab.bench.rescale import rescale
from rheostat.lab.bench.spark_fidelity import fidelity_on_spark
from rheostat.lab.bench.spark_recovery import recovery_on_spark
from rheostat.lab.bench.speed import decision, simulator


def fidelity(quick: bool, progress: Progress) -> list[Measure]:
    """Hold the simulator against Phoebe's recorded runs and against Spark on this machine."""
    parts = (fidelity_to_phoebe, fidelity_on_spark, fidelity_of_realtime)
    return [measure for part in parts for measure in part(quick, progress)]


def recovery(quick: bool, progress: Progress) -> list[Measure]:
    """Hold predicted recovery times against Phoebe's experiments and against kills on Spark."""
    return [*recovery_simulated(quick, progress), *recovery_on_spark(quick, progress)]


BENCHES: Mapping[str, Callable[[bool, Progress], list[Measure]]] = {
    "simulator": simulator,
    "decision": decision,
    "fidelity": fidelity,
    "forecast": forecast,
    "models": models,
    "overhead": overhead,
    "recovery": recovery,
    "probes": probes,
    "rescale": rescale,
    "resize": resize,
    "bids2": bids2,
    "planner": planner,
}
