"""The figures of a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rheostat.lab.experiment.score import run_cost
from rheostat.report.chart.figure import HALF, Axis, Figure, Line, Panel, Points, Rule, Trace
from rheostat.report.chart.pens import SLO, Pen, pens
from rheostat.report.chart.time_axis import TimeAxis, limit, line, shade, stack
from rheostat.report.words import number

if TYPE_CHECKING:
    from rheostat.lab.experiment.comparison import Comparison
    from rheostat.lab.experiment.run import Run


def policy_pens(comparison: Comparison[Any]) -> dict[str, Pen]:
    """Give every policy its colour; the oracle's is always grey."""
    oracle = comparison.yardstick
    looks = pens([name for name in dict.fromkeys(run.policy for run in comparison.measured_runs) if name != oracle])
    return looks if oracle is None else {**looks, oracle: Pen("pale", symbol="x", width=3.2)}


def cost_figure(comparison: Comparison[Any]) -> Figure:
    """Return each policy's cost against its seconds over the SLO: the lower left corner is best."""
    looks = policy_pens(comparison)
    by_policy: dict[str, list[Run[Any]]] = {}
    for run in (run for run in comparison.runs if run.policy not in comparison.failures):
        by_policy.setdefault(run.policy, []).append(run)
    seeds: list[Trace] = []
    means: list[Trace] = []
    for policy, runs in by_policy.items():
        costs = [run_cost(run) for run in runs]
        x = np.array([c.total / run.bound.total for c, run in zip(costs, runs, strict=True) if run.bound is not None])
        y = np.array([cost.over_s for cost in costs])

        def text(which: str, cost: float, over_s: float, policy: str = policy) -> str:
            return f"{policy}, {which}\n{cost:.3f} times the oracle's cost\n{number(over_s)} s over the SLO"

        pen = looks[policy]
        if len(runs) > 1:
            texts = [text(f"seed {run.seed}", cost, over_s) for run, cost, over_s in zip(runs, x, y, strict=True)]
            seeds.append(Points(policy, x, y, pen, 6.0, texts=texts, opacity=0.5, key=False))
        mean = np.array([x.mean()]), np.array([y.mean()])
        means.append(Points(policy, *mean, pen, 13.0, texts=[text("mean of the seeds", x.mean(), y.mean())]))
    oracle = Rule("the oracle's cost", 1.0, Pen("grey", "dot", width=1.0), key=False)
    panel = Panel("Seconds over the SLO", 320, [oracle, *seeds, *means])
    return Figure("Cost against objective", Axis("cost over the oracle's"), [panel], width=HALF)


def timeline_figure(comparison: Comparison[Any], seed: int) -> Figure:
    """Return the load, and how every policy handled it, on one seed."""
    looks, ground = policy_pens(comparison), comparison.ground
    # The oracle lies under the others.
    runs = [run for run in comparison.measured_runs if run.seed == seed]
    runs.sort(key=lambda run: run.policy != comparison.yardstick)
    time = TimeAxis(0.0, max(1.0, *(run.end_s for run in runs)))
    panels = []
    for k, together in enumerate(zip(*map(ground.series, runs), strict=True)):
        series = together[0]
        if k == 0:
            traces = [line(time, series.at_s, series.values, "load", Pen("ink"), series.unit, step=series.step)]
        else:
            traces = [
                line(time, own.at_s, own.values, run.policy, looks[run.policy], own.unit, step=own.step, key=k == 1)
                for run, own in zip(runs, together, strict=True)
            ]
        if series.limit is not None:
            traces.append(limit(time, series.limit, "SLO"))
        axis = Axis(scale="log") if series.log else Axis(from_zero=True)
        panels.append(Panel(series.title, series.height, traces, axis))
    moments = np.array(comparison.trial.failures_s, dtype=float)
    failures = shade(time, moments, moments + 2 * time.finest_s, "limit", 0.6, "failure")
    return stack(f"The policies over time, seed {seed}", time, panels, failures)


def latency_figure(comparison: Comparison[Any]) -> Figure:
    """Return the share of all seconds, of all seeds, in which the latency was at most each value."""
    shares = np.unique(np.concatenate([np.linspace(0, 1, 401), np.linspace(0.99, 1, 51)]))
    traces: list[Trace] = []
    # The oracle lies under the others.
    shown = [(policy, pen) for policy, pen in policy_pens(comparison).items() if policy not in comparison.failures]
    looks = sorted(shown, key=lambda item: item[0] != comparison.yardstick)
    longest_s = max(float(run.trace["latency_s"].max()) for run in comparison.runs)
    for policy, pen in looks:
        latency_s = np.concatenate([run.trace["latency_s"] for run in comparison.runs if run.policy == policy])
        # Past its own longest latency a policy stays at 100 %.
        at_s, below = np.append(np.quantile(latency_s, shares), longest_s), np.append(shares, 1.0)
        traces.append(Line(policy, at_s, below, pen, format="percent"))
    objective = comparison.trial.slo.max_latency_s
    if objective is not None:
        traces.append(Rule("SLO", objective, SLO))
    x = Axis("latency since the event, seconds (log scale)", "log", unit=" s")
    panel = Panel("Share of all seconds", 320, traces, Axis(low=0.0, high=1.01, format="percent"))
    return Figure("Latency", x, [panel], width=HALF)
