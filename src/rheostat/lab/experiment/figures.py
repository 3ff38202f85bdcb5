"""The pictures of a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rheostat.report.drawing import (
    GREY,
    LIMIT,
    MARGIN,
    SMALL,
    Figure,
    Panel,
    Pen,
    TimeAxis,
    Trace,
    band,
    base,
    grid,
    label,
    limit,
    line,
    pens,
    stack,
)
from rheostat.report.words import number

if TYPE_CHECKING:
    from rheostat.lab.experiment.simulated import Comparison, PolicyRun


def yardstick(comparison: Comparison) -> str:
    """Return the label under which the clairvoyant ran."""
    return next(run.policy for run in comparison.runs if run.policy.partition(":")[0] == "clairvoyant")


def policy_pens(comparison: Comparison) -> dict[str, Pen]:
    """Give every policy its colour; the clairvoyant's is always grey."""
    known = yardstick(comparison)
    labels = list(dict.fromkeys(run.policy for run in comparison.runs))
    looks = pens([name for name in labels if name != known])
    return {**looks, known: Pen("#A8A8A8", symbol="x", width=3.2)}


def cost_figure(comparison: Comparison) -> Figure:
    """Return what each policy costs against how badly it breaks the promise: the lower left corner is best."""
    known, slo = yardstick(comparison), comparison.scenario.slo
    best = {run.seed: run.slot_seconds for run in comparison.runs if run.policy == known}
    data: list[Trace] = []
    looks = policy_pens(comparison)
    by_policy: dict[str, list[PolicyRun]] = {}
    for run in comparison.runs:
        by_policy.setdefault(run.policy, []).append(run)
    for policy, runs in by_policy.items():
        pen = looks[policy]
        x = [run.slot_seconds / best[run.seed] for run in runs]
        y = [float(run.seconds_over(slo)) for run in runs]
        small = {"symbol": pen.symbol, "color": pen.colour, "size": 6, "opacity": 0.5}
        big = {"symbol": pen.symbol, "color": pen.colour, "size": 14, "line": {"width": 1, "color": "#FFFFFF"}}
        told = "%{x:.3f} times the clairvoyant's slot-seconds<br>%{y:.3~s} s over the Slo<extra>"
        common: Trace = {"type": "scatter", "legendgroup": policy}
        if len(runs) > 1:
            seeds = [f"seed {run.seed}" for run in runs]
            data.append(
                {**common, "x": x, "y": y, "mode": "markers", "marker": small, "showlegend": False}
                | {"name": label(policy), "text": seeds, "hovertemplate": told + "%{text}</extra>"}
            )
        data.append(
            {**common, "x": [float(np.mean(x))], "y": [float(np.mean(y))], "mode": "markers", "marker": big}
            | {"name": label(policy), "hovertemplate": told + "mean of the seeds</extra>"}
        )
    layout = base(430)
    layout["xaxis"] = {**grid(), "title": {"text": "cost: slot-seconds over the clairvoyant's"}, "tickformat": "~g"}
    layout["yaxis"] = {**grid(), "title": {"text": "broken promise: seconds over the Slo"}, "tickformat": "~s"}
    layout["yaxis"]["rangemode"] = "tozero"
    layout["hovermode"] = "closest"
    layout["shapes"] = [
        {"type": "line", "x0": 1, "x1": 1, "y0": 0, "y1": 1, "yref": "paper", "layer": "below"}
        | {"line": {"color": GREY, "width": 1, "dash": "dot"}}
    ]
    layout["legend"] = ABOVE
    layout["margin"] = {**MARGIN, "t": 64}
    return {"data": data, "layout": layout}


def timeline_figure(comparison: Comparison, seed: int) -> Figure:
    """Return load, slots, backlog and latency of every policy on one seed."""
    scenario = comparison.scenario
    looks = policy_pens(comparison)
    runs = [run for run in comparison.runs if run.seed == seed]
    # The yardstick lies under the others.
    runs.sort(key=lambda run: run.policy != yardstick(comparison))
    at_s = np.arange(len(runs[0].trace["load_per_s"]), dtype=float)
    time = TimeAxis(0.0, float(max(len(at_s), 1)))
    unit_per_s = sum(scenario.plant.unit_per_s.values())

    def draw(column: str, unit: str, legend: bool = False, step: bool = False) -> list[Trace]:
        return [
            line(
                time,
                at_s,
                run.trace[column],
                run.policy,
                looks[run.policy],
                unit,
                step=step,
                legendgroup=run.policy,
                showlegend=legend,
            )
            for run in runs
        ]

    level = runs[0].trace["load_per_s"] / unit_per_s
    promise = scenario.slo.max_latency_s
    slo = [] if promise is None else [limit(time, promise, "Slo")]
    panels = [
        Panel(
            f"Load, units of {number(unit_per_s)} records/s",
            110,
            [line(time, at_s, level, "load", Pen("#333333"), " units", step=True)],
            ticks="~g",
        ),
        Panel("Slots held", 210, draw("slots", " slots", legend=True, step=True), ticks="~g"),
        Panel("Backlog, records waiting at the sources", 150, draw("backlog", "")),
        Panel("Latency, seconds since the event (log scale)", 210, [*draw("latency_s", " s"), *slo], "log", "~g"),
    ]
    moments = np.array(scenario.failures_s, dtype=float)
    failures = band(time, moments, moments + 2 * time.finest_s, "176,0,32", 0.6, "failure")
    return stack(time, panels, failures, right=160)


def latency_figure(comparison: Comparison) -> Figure:
    """Return the share of all seconds, of all seeds, in which the latency was at most so much."""
    shares = np.unique(np.concatenate([np.linspace(0, 1, 401), np.linspace(0.99, 1, 51)]))
    data: list[Trace] = []
    lowest, highest = np.inf, 0.0
    for policy, pen in policy_pens(comparison).items():
        seen = np.concatenate([run.trace["latency_s"] for run in comparison.runs if run.policy == policy])
        at = np.quantile(seen, shares)
        lowest, highest = min(lowest, float(at[0])), max(highest, float(at[-1]))
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": label(policy),
                "x": [float(f"{v:.4g}") for v in at],
                "y": [round(float(v), 5) for v in shares],
                "line": {"color": pen.colour, "dash": pen.dash, "width": pen.width},
                "hovertemplate": "%{y:.2%} of the time at most %{x:.3~g} s",
            }
        )
    layout = base(430)
    promise = comparison.scenario.slo.max_latency_s
    if promise is not None:
        highest = max(highest, promise)
        data.append(
            {"type": "scatter", "mode": "lines", "name": "Slo", "x": [promise, promise], "y": [0, 1]}
            | {"line": {"color": LIMIT, "dash": "dash", "width": 1.4}, "hovertemplate": "%{x:~g} s"}
        )
    layout["xaxis"] = {**grid(), "type": "log", "tickformat": "~g"}
    if 0 < lowest < highest:
        layout["xaxis"]["range"] = [float(np.log10(lowest / 1.5)), float(np.log10(highest * 1.3))]
    layout["xaxis"]["title"] = {"text": "latency since the event, seconds (log scale)"}
    layout["yaxis"] = {**grid(), "title": {"text": "share of all seconds"}, "tickformat": ".0%", "range": [0, 1.01]}
    layout["hovermode"] = "closest"
    layout["legend"] = ABOVE
    layout["margin"] = {**MARGIN, "t": 64}
    return {"data": data, "layout": layout}


ABOVE = {**SMALL, "orientation": "h", "x": 0, "y": 1.02, "xanchor": "left", "yanchor": "bottom"}
