"""The page of a comparison in real-time mode: what was predicted, what was measured, and tasks per stage over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from rheostat.report import words
from rheostat.report.drawing import Figure, Panel, Pen, TimeAxis, Trace, line, pens, stack
from rheostat.report.html import Cell, Plot, Table, render

if TYPE_CHECKING:
    from rheostat.job.observation import Observation
    from rheostat.lab.experiment.realtime_compare import RealTimeComparison, RealTimeScore
    from rheostat.lab.experiment.realtime_trial import RealTimeRun

COLUMNS: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("reconfigurations", "changes", words.number),
    ("reconfigurations_per_tuning", "changes per level of the load", lambda v: f"{v:.2f}"),
    ("slot_seconds", "slot-seconds", words.number),
    ("downtime_s", "downtime of a change", words.seconds),
    ("latency_p50_s", "latency, 50\u00a0%", words.seconds),
    ("latency_p99_s", "latency, 99\u00a0%", words.seconds),
    ("backlog_max", "largest backlog, records", words.number),
    ("keys_wrong", "keys wrong", words.number),
    ("repeated", "results twice", words.number),
)
LEAD = (
    "The same load on a real Spark in real-time mode, once under each policy, each with a broker of its own; in grey "
    "what the simulator predicted before the run."
)
NOTE = (
    "Latency is from a record's time to the moment at which the broker had its result; downtime is the longest silence "
    "of the output topic after a change. Kafka as a sink gets the results of an unfinished batch twice"
)


def realtime_page(comparison: RealTimeComparison) -> str:
    """Return one HTML document that sets policies side by side."""
    trial = comparison.runs[0].trial
    return render(
        "spark.html.j2",
        title=f"{comparison.job} in real-time mode: {', '.join(run.trial.way for run in comparison.runs)}",
        lead=LEAD,
        sections_={
            "Job": {
                "pipeline": trial.pipeline,
                **{f"a task of {name} does": f"{pace.curve}" for name, pace in trial.paces.items()},
                "slots": f"{trial.slots}, {trial.partitions} of them for the source",
            },
            "Load": {"shape": trial.schedule.load.name, **words.settings(trial.schedule.load)},
            "Run": {
                "length": words.seconds(trial.schedule.seconds),
                "a decision every": words.seconds(trial.interval_s),
            },
            "Slo": words.settings(trial.slo) or {"promises": "nothing"},
        },
        rows=_rows(comparison.rows),
        notes=(NOTE,),
        timeline=Plot("timeline", _timeline(comparison.runs)),
    )


def _rows(rows: Sequence[RealTimeScore]) -> Table:
    from rheostat.lab.experiment.realtime_compare import side_by_side

    lines = []
    for row in side_by_side(rows):
        foretold = row.engine == "simulated"
        kind = "number muted" if foretold else "number"
        cells = [Cell(write(getattr(row, name)), kind) for name, _, write in COLUMNS]
        lines.append([Cell("predicted" if foretold else row.policy, "muted" if foretold else "policy"), *cells])
    return Table(("policy", *(head for _, head, _ in COLUMNS)), lines)


def _timeline(runs: Sequence[RealTimeRun]) -> Figure:
    looks = pens([run.trial.way for run in runs])
    time = TimeAxis(0.0, max(run.end_s for run in runs))

    def draw(value: Callable[[Observation], float | None], unit: str, *, legend: bool, step: bool) -> list[Trace]:
        drawn = []
        for run in runs:
            seen = [step.observation for step in run.steps]
            at_s = np.array([window.at_s - run.start_s for window in seen])
            known = [value(window) for window in seen]
            values = np.array([np.nan if one is None else one for one in known], dtype=float)
            way = run.trial.way
            drawn.append(line(time, at_s, values, way, looks[way], unit, step=step, legendgroup=way, showlegend=legend))
        return drawn

    def tasks(stage: str) -> Callable[[Observation], float | None]:
        return lambda window: None if window.running is None else window.running.tasks.get(stage)

    schedule = runs[0].trial.schedule
    seconds = np.arange(schedule.seconds, dtype=float)
    load = np.diff([schedule.due(int(second)) for second in range(schedule.seconds + 1)]).astype(float)
    stages = list(runs[0].trial.paces)
    return stack(
        time,
        [
            Panel("Load, records/s", 110, [line(time, seconds, load, "load", Pen("#333333"), "/s", step=True)]),
            *(
                Panel(f"Tasks of {stage}", 130, draw(tasks(stage), " tasks", legend=not k, step=True), ticks="~g")
                for k, stage in enumerate(stages)
            ),
            Panel("Backlog, records", 150, draw(lambda window: window.backlog, "", legend=False, step=False)),
            Panel(
                "Latency as the job reports it, 99 %, seconds (log scale)",
                180,
                draw(lambda w: None if w.latency is None else w.latency.event_p99_s, " s", legend=False, step=False),
                "log",
                "~g",
            ),
        ],
        (),
        right=190,
    )
