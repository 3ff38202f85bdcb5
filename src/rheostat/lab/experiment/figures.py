"""The pictures of a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rheostat.lab.experiment.score import seconds_over, slot_seconds
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

if TYPE_CHECKING:
    from rheostat.lab.experiment.comparison import Comparison
    from rheostat.lab.experiment.run import Run


def policy_pens(comparison: Comparison[Any]) -> dict[str, Pen]:
    """Give every policy its colour; the oracle's is always grey."""
    known = comparison.yardstick
    looks = pens([name for name in dict.fromkeys(run.policy for run in comparison.measured) if name != known])
    return looks if known is None else {**looks, known: Pen("#A8A8A8", symbol="x", width=3.2)}


def cost_figure(comparison: Comparison[Any]) -> Figure:
    """Return what each policy costs against how badly it breaks the objective: the lower left corner is best."""
    slo = comparison.trial.slo
    best = {run.seed: slot_seconds(run) for run in comparison.runs if run.policy == comparison.yardstick}
    data: list[Trace] = []
    looks = policy_pens(comparison)
    by_policy: dict[str, list[Run[Any]]] = {}
    for run in (run for run in comparison.runs if run.policy not in comparison.failures):
        by_policy.setdefault(run.policy, []).append(run)
    for policy, runs in by_policy.items():
        pen = looks[policy]
        x = [slot_seconds(run) / best[run.seed] for run in runs]
        y = [float(seconds_over(run, slo)) for run in runs]
        small = {"symbol": pen.symbol, "color": pen.colour, "size": 6, "opacity": 0.5}
        big = {"symbol": pen.symbol, "color": pen.colour, "size": 14, "line": {"width": 1, "color": "#FFFFFF"}}
        told = "%{x:.3f} times the oracle's slot-seconds<br>%{y:.3~s} s over the SLO<extra>"
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
    layout["xaxis"] = {**grid(), "title": {"text": "cost: slot-seconds over the oracle's"}, "tickformat": "~g"}
    layout["yaxis"] = {**grid(), "title": {"text": "broken objective: seconds over the SLO"}, "tickformat": "~s"}
    layout["yaxis"]["rangemode"] = "tozero"
    layout["hovermode"] = "closest"
    layout["shapes"] = [
        {"type": "line", "x0": 1, "x1": 1, "y0": 0, "y1": 1, "yref": "paper", "layer": "below"}
        | {"line": {"color": GREY, "width": 1, "dash": "dot"}}
    ]
    layout["legend"] = ABOVE
    layout["margin"] = {**MARGIN, "t": 64}
    return {"data": data, "layout": layout}


def timeline_figure(comparison: Comparison[Any], seed: int) -> Figure:
    """Return the load, and what every policy made of it, on one seed."""
    looks, ground = policy_pens(comparison), comparison.ground
    # The yardstick lies under the others.
    runs = [run for run in comparison.measured if run.seed == seed]
    runs.sort(key=lambda run: run.policy != comparison.yardstick)
    time = TimeAxis(0.0, max(1.0, *(run.end_s for run in runs)))
    panels = []
    for number, together in enumerate(zip(*map(ground.series, runs), strict=True)):
        series = together[0]
        if number == 0:
            load = Pen("#333333")
            traces = [line(time, series.at_s, series.values, "load", load, series.unit, step=series.step)]
        else:
            traces = [
                line(
                    time,
                    own.at_s,
                    own.values,
                    run.policy,
                    looks[run.policy],
                    own.unit,
                    step=own.step,
                    legendgroup=run.policy,
                    showlegend=number == 1,
                )
                for run, own in zip(runs, together, strict=True)
            ]
        if series.limit is not None:
            traces.append(limit(time, series.limit, "SLO"))
        panels.append(Panel(series.title, series.height, traces, "log" if series.log else "linear", series.ticks))
    moments = np.array(comparison.trial.failures_s, dtype=float)
    return stack(time, panels, band(time, moments, moments + 2 * time.finest_s, "176,0,32", 0.6, "failure"))


def latency_figure(comparison: Comparison[Any]) -> Figure:
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
    objective = comparison.trial.slo.max_latency_s
    if objective is not None:
        highest = max(highest, objective)
        data.append(
            {"type": "scatter", "mode": "lines", "name": "SLO", "x": [objective, objective], "y": [0, 1]}
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
