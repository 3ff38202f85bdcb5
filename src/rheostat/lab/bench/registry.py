"""Benches by name, each with named parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from rheostat.errors import InvalidValue, nearest
from rheostat.lab.bench.bids2 import bids2
from rheostat.lab.bench.chaos import chaos
from rheostat.lab.bench.clusters.matrix import embedded, on_kubernetes, on_standalone, on_yarn, stock, tables
from rheostat.lab.bench.clusters.shrink import shrink
from rheostat.lab.bench.fidelity import fidelity
from rheostat.lab.bench.forecast import forecast
from rheostat.lab.bench.freeze import driver as frozen_driver
from rheostat.lab.bench.freeze import python as frozen_python
from rheostat.lab.bench.measure import Measure
from rheostat.lab.bench.models import models
from rheostat.lab.bench.overhead import overhead, resize
from rheostat.lab.bench.planner import planner
from rheostat.lab.bench.probes import accuracy, cost
from rheostat.lab.bench.probes import sight as realtime_sight
from rheostat.lab.bench.realtime_fidelity import fidelity_of_realtime
from rheostat.lab.bench.recovery import recovery
from rheostat.lab.bench.rescale import downtime, kills, storm
from rheostat.lab.bench.sight import files, spike, steps
from rheostat.lab.bench.sight import realtime as realtime_spike
from rheostat.lab.bench.soak import soak_microbatches, soak_realtime
from rheostat.lab.bench.spark_fidelity import fidelity_on_spark
from rheostat.lab.bench.spark_recovery import recovery_on_spark
from rheostat.lab.bench.speed import decision, simulator
from rheostat.lab.data import missing_data
from rheostat.lab.experiment.trial import Progress


@dataclass(frozen=True)
class Part:
    """A part of a bench; with `--quick` a bench takes at most about five minutes."""

    measure: Callable[..., list[Measure]]
    """Takes `quick`, a `Progress`, and its sizes by name."""
    quick: str = ""
    """What `--quick` measures of it, where that is much less than fewer repeats."""
    slow: bool = False
    """Whether `--quick` leaves it out unless `--only` names it."""
    sizes: tuple[str, ...] = ()
    """Options of the command that set its size."""
    data: bool = False
    """Whether it reads the papers' measured data: a bench of several parts leaves it out where they are missing."""


BENCHES: Mapping[str, Mapping[str, Part]] = {
    "chaos": {"chaos": Part(chaos, "12 seeds, 2.4 hours each", sizes=("seeds", "days", "seed"))},
    "simulator": {"simulator": Part(simulator)},
    "decision": {"decision": Part(decision)},
    "fidelity": {
        "phoebe": Part(fidelity, data=True),
        "spark": Part(fidelity_on_spark, "one of two pipelines, one of five courses, shorter ones"),
        "realtime": Part(fidelity_of_realtime, "one of six runs", slow=True),
    },
    "forecast": {"forecast": Part(forecast)},
    "freeze": {
        "python": Part(frozen_python, "one of ten rounds per mode", sizes=("rounds",)),
        "driver": Part(frozen_driver, "one of ten rounds per mode", sizes=("rounds",)),
    },
    "matrix": {
        "local-cluster": Part(embedded, "one of five versions"),
        "standalone": Part(on_standalone, "one of five versions"),
        "yarn": Part(on_yarn, "one of two versions"),
        "kubernetes": Part(on_kubernetes, "one of two versions", slow=True),
        "stock": Part(stock, "one of nine visits", slow=True),
        "tables": Part(tables),
    },
    "models": {"models": Part(models)},
    "overhead": {"overhead": Part(overhead, "3 of 12 pairs")},
    "recovery": {
        "phoebe": Part(recovery, data=True),
        "spark": Part(recovery_on_spark, "one of two loads, three of ten kills"),
    },
    "probes": {
        "accuracy": Part(accuracy, "two of five loads"),
        "sight": Part(realtime_sight, "3 of 12 pairs"),
        "cost": Part(cost, "a quarter of the records"),
    },
    "rescale": {
        "downtime": Part(downtime, "100 keys, not 100,000 and 1,000,000; two of six changes"),
        "storm": Part(storm, "4 of 20 changes, one of three kills"),
        "kills": Part(
            kills, "2 of 20 kills over the move, 2 of 20 over its roll-back; two of eight formats", slow=True
        ),
    },
    "resize": {
        "resize": Part(resize, "4 of 22 resizes"),
        "shrink": Part(shrink, "2 of 8 shrinks, both ways", slow=True),
    },
    "sight": {
        "spike": Part(spike, "one of five runs"),
        "realtime": Part(realtime_spike, "one of five runs"),
        "steps": Part(steps, "one of five runs", slow=True),
        "files": Part(files, "one of five runs", slow=True),
    },
    "soak": {
        "microbatch": Part(soak_microbatches, "3 of 60 minutes", sizes=("minutes", "seed")),
        "realtime": Part(soak_realtime, "3 of 60 minutes", sizes=("minutes", "seed")),
    },
    "bids2": {"bids2": Part(bids2)},
    "planner": {"planner": Part(planner)},
}

ALONE = frozenset({"matrix", "soak"})
"""Benches that run long, or install much: `all` leaves them out."""


def select_parts(bench: str, quick: bool, only: Sequence[str] = ()) -> dict[str, Part]:
    """Return the parts to measure: those that `only` names, else all but, with `quick`, the slow ones.

    A part whose data are missing is left out, too, unless it is the only one.
    """
    parts = BENCHES[bench]
    for name in only:
        if name not in parts:
            raise InvalidValue(
                f"bench {bench} has no part {name!r}, {nearest(name, parts)}; its parts: {', '.join(parts)}"
            )
    if only:
        return {name: part for name, part in parts.items() if name in only}
    without_data = len(parts) > 1 and bool(missing_data())
    return {
        name: part for name, part in parts.items() if not (quick and part.slow) and not (without_data and part.data)
    }


def omissions(bench: str, quick: bool, only: Sequence[str] = ()) -> list[str]:
    """Return a line per part about what is not measured of it."""
    selected, lines = select_parts(bench, quick, only), []
    for name, part in BENCHES[bench].items():
        if name in selected:
            lines += [f"{bench} {name}, quick: {part.quick}"] if quick and part.quick else []
        elif not only:
            missing = missing_data() if part.data else ""
            lines.append(f"{bench} {name}: left out" + (f": {missing}" if missing else f"; --only {name} measures it"))
    return lines


def check_sizes(bench: str, sizes: Mapping[str, float]) -> None:
    """Refuse a size that no part of the bench has."""
    for name in sizes:
        if not any(name in part.sizes for part in BENCHES[bench].values()):
            raise InvalidValue(f"bench {bench} has no --{name}")


def run_bench(
    bench: str, quick: bool, progress: Progress, only: Sequence[str] = (), sizes: Mapping[str, float] | None = None
) -> list[Measure]:
    """Measure the parts of a bench; counts that several parts have are added up."""
    measures: dict[str, Measure] = {}
    for part in select_parts(bench, quick, only).values():
        given = {name: size for name, size in (sizes or {}).items() if name in part.sizes}
        for measure in part.measure(quick, progress, **given):
            before = measures.get(measure.measure)
            measures[measure.measure] = replace(measure, value=measure.value + (before.value if before else 0))
    return list(measures.values())
