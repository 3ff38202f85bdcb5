"""The page of a comparison on real Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from rheostat.report import words
from rheostat.report.drawing import Figure, Panel, Pen, TimeAxis, Trace, limit, line, pens, stack
from rheostat.report.html import Cell, Plot, Table, render

if TYPE_CHECKING:
    from rheostat.lab.experiment.spark_compare import SparkComparison
    from rheostat.lab.experiment.spark_score import Floats
    from rheostat.lab.experiment.spark_trial import TrialRun

COLUMNS: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("slot_seconds", "executor-seconds", words.number),
    ("slot_seconds_over_maximum", "share of static maximum", lambda v: f"{v:.2f}"),
    ("slo_seconds_over", "seconds over the Slo", words.number),
    ("latency_p95_s", "latency, 95\u00a0%", words.seconds),
    ("latency_p99_s", "latency, 99\u00a0%", words.seconds),
    ("backlog_max", "largest backlog, records", words.number),
    ("reconfigurations", "changes of size", words.number),
    ("rows_lost", "rows lost", words.number),
    ("rows_repeated", "rows repeated", words.number),
)


LEAD = "The same load on a real Spark, once in each of these ways, one after the other, each on a cluster of its own."
NOTES = (
    "The best of each column is marked; less is better in all of them",
    "Latency is from a record's arrival at the source to the end of the batch that holds its result; what has no "
    "result at the end is as late as it then is old",
)


def spark_page(comparison: SparkComparison) -> str:
    """Return one HTML document that sets ways to size a Spark job side by side."""
    trial = comparison.runs[0].trial
    if trial.curve is not None:
        paced = f"{trial.curve}, noise {trial.noise:g}"
    else:
        paced = "as fast as the machine can" if trial.slot_per_s is None else f"{trial.slot_per_s:g} records/s"
    return render(
        "spark.html.j2",
        title=f"{comparison.job} on Spark: {', '.join(row.policy for row in comparison.rows)}",
        lead=LEAD,
        sections_={
            "Job": {
                "pipeline": trial.pipeline,
                "a slot does": paced,
                "executors": f"{trial.executors[0]} to {trial.executors[1]}, one core each",
                "partitions": f"{trial.partitions}, {trial.shuffle_partitions} after the shuffle",
                "trigger every": words.seconds(trial.trigger_s),
            },
            "Load": {
                "shape": trial.schedule.load.name,
                "level 1": f"{words.number(comparison.unit_per_s)} records/s",
                **words.settings(trial.schedule.load),
            },
            "Run": {
                "length": words.seconds(trial.seconds),
                "a decision every": words.seconds(trial.interval_s),
            },
            "Slo": words.settings(trial.slo) or {"promises": "nothing"},
        },
        rows=_rows(comparison),
        notes=(*NOTES, *comparison.notes),
        timeline=Plot("timeline", _timeline(comparison)),
    )


def _rows(comparison: SparkComparison) -> Table:
    lines = []
    for row in comparison.rows:
        cells = [Cell(row.policy, "policy", row.failed)]
        for name, _, write in COLUMNS:
            value = getattr(row, name)
            best = value <= min(getattr(other, name) for other in comparison.rows)
            cells.append(Cell(write(value), "number best" if best else "number"))
        lines.append(cells)
    return Table(("way", *(head for _, head, _ in COLUMNS)), lines)


def _timeline(comparison: SparkComparison) -> Figure:
    from rheostat.lab.experiment.spark_score import backlog, latencies, size_by_second

    runs = comparison.runs
    looks = pens([run.trial.way for run in runs])
    time = TimeAxis(0.0, max(run.end_s for run in runs))

    def draw(series: Callable[[TrialRun], Floats], unit: str, legend: bool = False, step: bool = False) -> list[Trace]:
        drawn = []
        for run in runs:
            values = series(run)
            at_s = np.arange(len(values), dtype=float)
            way = run.trial.way
            drawn.append(line(time, at_s, values, way, looks[way], unit, step=step, legendgroup=way, showlegend=legend))
        return drawn

    seconds, _, records = latencies(runs[0])
    promise = runs[0].trial.slo.max_latency_s
    slo = [] if promise is None else [limit(time, promise, "Slo")]
    panels = [
        Panel("Load, records/s", 110, [line(time, seconds, records, "load", Pen("#333333"), "/s", step=True)]),
        Panel("Executors", 210, draw(size_by_second, " executors", legend=True, step=True), ticks="~g"),
        Panel("Backlog, records without a result", 150, draw(backlog, "")),
        Panel(
            "Latency of the second's records, seconds (log scale)",
            210,
            [*draw(lambda run: latencies(run)[1], " s"), *slo],
            "log",
            "~g",
        ),
    ]
    return stack(time, panels, (), right=190)
