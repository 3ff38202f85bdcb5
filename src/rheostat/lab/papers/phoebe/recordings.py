"""Phoebe's recorded runs, and the same runs simulated."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rheostat.engine.simulated import Fleet
from rheostat.engine.testbed.loads import Trace
from rheostat.job.allocation import Allocation
from rheostat.lab.jobs.phoebe import FAILURES_S, top_speed

Floats = NDArray[np.float64]

DURATION_S = 21_600
"""Seconds of a run."""
RECORDED_EVERY_S = 5
"""Seconds between two rows of a recording."""
GOOD_LATENCY_S = 2.0
"""Largest latency of a recovered job, in seconds."""
BEFORE_S, AFTER_S = 60, 360
"""Seconds before and after a failure that count as around it."""


def shown(series: Floats, mean_s: int, late_s: int) -> Floats:
    """Return the trailing mean over `mean_s` seconds, `late_s` seconds late (seconds x replicas)."""
    added = np.vstack([np.zeros(series.shape[1]), np.cumsum(series, axis=0)])
    end = np.clip(np.arange(len(series)) - late_s, 0, None)
    start = np.clip(end - mean_s, 0, None)
    mean: Floats = (added[end] - added[start]) / np.maximum(end - start, 1)[:, None]
    return mean


def displayed(trace: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return throughput and latency of every second as the paper's metrics display them."""
    rates = shown(trace["throughput_per_s"], 30, 0)
    return {"throughput": shown(rates, 60, 5), "latency": shown(trace["latency_s"], 60, 5)}


def recorded(folder: Path, workers: int) -> dict[str, Floats]:
    """Read one recorded run; empty cells are NaN."""
    with (folder / "phoebe" / "runs" / f"topspeed_baseline{workers}.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    names = ("second", "produced_rec_s", "consumed_rec_s", "latency_ms")
    first = rows[: DURATION_S // RECORDED_EVERY_S]
    return {name: np.array([float(row[name]) if row[name] else np.nan for row in first]) for name in names}


def vehicles(folder: Path) -> Trace:
    """Return the load of the recorded runs: 5 x the vehicles trace, 10 s later."""
    return Trace(file=str(folder / "traces" / "vehicles_6h.csv"), scale=5.0, delay_s=10.0)


def simulated(folder: Path, workers: int, kappa: float, seeds: int) -> dict[str, Floats]:
    """Simulate the same run, with the recorded failures."""
    plant = top_speed(kappa)
    start = [Allocation({"job": workers})] * seeds
    fleet = Fleet(plant, [vehicles(folder)] * seeds, range(seeds), start=start, failures_s=FAILURES_S, trace=True)
    fleet.advance(DURATION_S)
    trace = fleet.trace()
    return {name: rows[::RECORDED_EVERY_S] for name, rows in displayed(trace).items()} | {"lag": trace["lag_s"]}


def throughput_errors(run: dict[str, Floats], simulation: dict[str, Floats], before_s: float, after_s: float) -> float:
    """Return the median of the absolute relative errors around the failures, over all seeds.

    The time of a restart is random in the plant and in the recording, so part of it is noise.
    """
    second, consumed = run["second"], run["consumed_rec_s"]
    near = np.zeros(len(second), dtype=bool)
    for failure in FAILURES_S:
        near |= (second >= failure - before_s) & (second < failure + after_s)
    near &= np.isfinite(consumed) & (consumed > 0)
    return float(np.median(np.abs(simulation["throughput"][near] / consumed[near][:, None] - 1.0)))


def recovery_s(latency_s: Floats, every_s: float, failure_s: float, limit_s: float = 2700.0) -> float:
    """Return the seconds from a failure until the latency is good again for a minute."""
    first = int(failure_s // every_s)
    part = np.nan_to_num(latency_s[first : first + int(limit_s / every_s)], nan=np.inf)
    bad = np.flatnonzero(part > GOOD_LATENCY_S)
    if not len(bad):
        return 0.0
    gaps = np.flatnonzero(np.diff(bad) * every_s > 60.0)
    last = bad[gaps[0]] if len(gaps) else bad[-1]
    return float((last + 1) * every_s - (failure_s - first * every_s))


def recovery_errors(run: dict[str, Floats], simulation: dict[str, Floats]) -> tuple[float, float]:
    """Return the median absolute relative error of recovery times, and their median without the display's delay."""
    errors, free = [], []
    for failure in FAILURES_S:
        real = recovery_s(run["latency_ms"] / 1e3, RECORDED_EVERY_S, failure)
        seeds = range(simulation["latency"].shape[1])
        ours = [recovery_s(simulation["latency"][:, k], RECORDED_EVERY_S, failure) for k in seeds]
        errors += [abs(each - real) / real for each in ours]
        free.append(np.median([recovery_s(simulation["lag"][:, k], 1.0, failure) for k in seeds]))
    return float(np.median(errors)), float(np.median(free))
