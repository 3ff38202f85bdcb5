"""StreamBed's own measurements as estimates: the rates of its explorer, with the true rates of its operators."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rheostat.job.allocation import Allocation
from rheostat.job.decision import Interval
from rheostat.job.graph import Edge, Graph, JobSpec, Pinned, Tunable
from rheostat.job.observation import Observation, OperatorReading, SourceReading
from rheostat.job.plan import Estimate
from rheostat.job.slo import Bounds
from rheostat.lab.data import data_folder
from rheostat.lab.papers.streambed.paper import QUERIES

SOURCE = "source"
PINNED = Pinned(SOURCE, 64, "the paper plans for everything but the sources")
Rates = Mapping[tuple[str, int], float]
"""(operator, tasks) -> median true rate of one task."""


@dataclass(frozen=True)
class Recorded:
    """One query's recorded search."""

    spec: JobSpec
    estimates: tuple[Estimate, ...]
    named: tuple[bool, ...]
    """Whether the row names its slots; rows that do not are single-task runs."""


def recorded(query: str, folder: Path | None = None) -> Recorded:
    """Read one query's rows of the search, oldest first."""
    place = (folder or data_folder()) / "streambed"
    rows = [r for r in _rows(place / "max_sustainable_rates.csv") if r["query"] == query and r["kind"] == "search"]
    names, rates, ratios = _operators(query, place)
    spec = _spec(query, names)
    estimates = tuple(_estimate(row, names, rates, ratios) for row in rows)
    return Recorded(spec, estimates, tuple(bool(row["non_source_slots"]) for row in rows))


def table_iv_points(query: str, found: Recorded) -> list[Estimate]:
    """Return the measurements of Table IV: the first ones, as many as the printed calls of the optimizer.

    q11's printed coefficients follow only from all rows that name their slots, so these are used there.
    """
    if query == "q11":
        return [e for e, named in zip(found.estimates, found.named, strict=True) if named]
    return list(found.estimates[: QUERIES[query].calls_co])


def _rows(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def _operators(query: str, place: Path) -> tuple[tuple[str, ...], Rates, Mapping[str, float]]:
    rows = [r for r in _rows(place / "operator_true_rates.csv") if r["query"] == query]
    if not rows:
        # q11 has no operator rows: the names stand for its four operators, whose rates are unknown.
        return tuple(f"operator{k + 1}" for k in range(QUERIES[query].operators)), {}, {}
    names = tuple(sorted({r["operator"] for r in rows}, key=lambda name: int(name.partition("#")[2])))
    true_rates: dict[tuple[str, int], list[float]] = {}
    outputs: dict[str, list[float]] = {name: [] for name in names}
    for r in rows:
        if r["true_rate_per_task_rec_s"]:
            true_rates.setdefault((r["operator"], int(r["parallelism"])), []).append(
                float(r["true_rate_per_task_rec_s"])
            )
        if r["cumulated_output_ratio"]:
            outputs[r["operator"]].append(float(r["cumulated_output_ratio"]))
    output_ratios = {name: float(np.median(values)) for name, values in outputs.items() if values}
    ratios = {name: sum(output_ratios[up] if up else 1.0 for up in UPSTREAM[query][name].split("+")) for name in names}
    return names, {key: float(np.median(values)) for key, values in true_rates.items()}, ratios


UPSTREAM: Mapping[str, Mapping[str, str]] = {
    "q1": {"Calc#1": "", "Sink#2": "Calc#1"},
    "q2": {"Calc#1": "", "Sink#2": "Calc#1"},
    "q5": {
        "Calc#1": "",
        "GroupWindowAggregate#2": "Calc#1",
        "Calc#3": "GroupWindowAggregate#2",
        "Calc#4": "GroupWindowAggregate#2",
        "GroupAggregate#5": "Calc#4",
        "Calc#6": "GroupAggregate#5",
        "Join#7": "Calc#3+Calc#6",
        "Calc#8": "Join#7",
        "Sink#9": "Calc#8",
    },
    "q8": {
        "Calc#1": "",
        "Calc#2": "",
        "GroupWindowAggregate#3": "Calc#1",
        "GroupWindowAggregate#4": "Calc#2",
        "Calc#5": "GroupWindowAggregate#3",
        "Calc#6": "GroupWindowAggregate#4",
        "Join#7": "Calc#5+Calc#6",
        "Calc#8": "Join#7",
        "Sink#9": "Calc#8",
    },
}
"""Figure 8: operator -> its upstream operators; sources are left out."""


def _spec(query: str, names: Sequence[str]) -> JobSpec:
    edges = tuple(Edge(SOURCE, name) for name in names)
    tunable = tuple(Tunable(name, Bounds(1, 4096)) for name in names)
    return JobSpec(f"recorded-{query}", Graph((SOURCE, *names), edges, (SOURCE,)), tunable, (PINNED,))


def _estimate(row: Mapping[str, str], names: Sequence[str], rates: Rates, ratios: Mapping[str, float]) -> Estimate:
    tasks = [int(p) for p in row["op_parallelisms"].split("|")] if row["op_parallelisms"] else [1] * len(names)
    allocation = Allocation(dict(zip(names, tasks, strict=True)), int(row["memory_mb"]))
    rate = float(row["observed_source_rate_rec_s"])
    operators = [OperatorReading(SOURCE, 1, records_in_per_s=rate)]
    for name, count in zip(names, tasks, strict=True):
        true = rates.get((name, count))
        operators.append(
            OperatorReading(name, count, records_in_per_s=rate * ratios.get(name, 1.0), true_rate_per_s=true)
        )
    window = Observation(
        0.0, 0.0, 0.0, allocation, allocation, sources=(SourceReading(SOURCE, rate),), operators=tuple(operators)
    )
    expected = float(row["ilp_objective_rec_s"] or 0.0) or None
    return Estimate(0.0, allocation, Interval(rate, rate, rate), observation=window, expected_per_s=expected)
