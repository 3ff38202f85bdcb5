"""A soak on real Spark in both modes: random sizes, random kills and stops, exact counts at the end, memory over time.

Everything is random from a seed, but Spark's own timing is not: the same seed gives the same faults in the same order,
at about the same moments.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rheostat.lab.bench.measure import Measure
from rheostat.lab.experiment.trial import Progress
from rheostat.lab.soak.memory import Trend
from rheostat.lab.soak.microbatch import MicroBatchCount
from rheostat.lab.soak.realtime import RealTimeCount
from rheostat.lab.soak.run import Soak, SoakedJob, run_soak

BENCH = "soak"
MINUTES, QUICK_MINUTES = 60.0, 3.0


def soak_microbatches(
    quick: bool, progress: Progress, minutes: float | None = None, seed: int | None = None
) -> list[Measure]:
    """Soak a stateful micro-batch query on an embedded cluster."""
    return _soak(MicroBatchCount, "microbatch", quick, progress, minutes, seed)


def soak_realtime(
    quick: bool, progress: Progress, minutes: float | None = None, seed: int | None = None
) -> list[Measure]:
    """Soak a real-time pipeline on Kafka."""
    return _soak(RealTimeCount, "realtime", quick, progress, minutes, seed)


def _soak(
    open_job: Callable[[Path, int], SoakedJob],
    mode: str,
    quick: bool,
    progress: Progress,
    minutes: float | None,
    seed: int | None,
) -> list[Measure]:
    minutes = minutes or (QUICK_MINUTES if quick else MINUTES)
    progress(f"{mode}: {minutes:g} minutes, seed {seed or 0}")
    return measures(run_soak(open_job, minutes, seed or 0, progress), mode)


def measures(soak: Soak, mode: str) -> list[Measure]:
    """Return what a soak came to."""
    faults = sum(soak.faults.values())
    kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(soak.faults.items()))
    changes, alone = soak.changes, f", {soak.ended_alone} of them ended by themselves" if soak.ended_alone else ""
    restarts = f"of the query by a change, {changes.repartitions} repartitions of state; {soak.drivers} drivers{alone}"
    return [
        Measure(BENCH, f"minutes_{mode}", soak.minutes, "min", "", "higher"),
        Measure(BENCH, f"faults_{mode}", faults, "", "", "higher", kinds),
        Measure(
            BENCH,
            f"came_back_{mode}",
            soak.came_back,
            "",
            f">= {faults}",
            "higher",
            f"a finished batch after the fault, the slowest after {soak.slowest_s:.1f} s",
        ),
        Measure(BENCH, f"keys_wrong_{mode}", soak.keys_wrong, "", "<= 0", "lower", f"after {soak.records:,} records"),
        Measure(BENCH, f"changes_{mode}", changes.done, "", "", "higher", "of size, at random"),
        Measure(BENCH, f"restarts_{mode}", changes.restarts, "", "", "higher", restarts),
        _memory(f"python_mb_per_hour_{mode}", soak.python, "the driver's Python with the scaler in it"),
        _memory(f"jvm_mb_per_hour_{mode}", soak.jvm, f"the driver's JVM ({soak.heap_text})"),
        _memory(f"live_mb_per_hour_{mode}", soak.heap, "live objects in the JVM's heap, all garbage collected"),
        Measure(BENCH, f"journal_mb_{mode}", soak.journal_mb, "MB", "", "lower"),
    ]


def _memory(name: str, trend: Trend | None, what: str) -> Measure:
    slope = float("nan") if trend is None else trend.mb_per_hour
    return Measure(BENCH, name, slope, "MB/h", "", "lower", f"{what}: {trend or 'too short to say'}")
