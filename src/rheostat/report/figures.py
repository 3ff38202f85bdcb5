"""The figures of both pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from rheostat.job.decision import Verdict
from rheostat.report.drawing import (
    COLOURS,
    GREY,
    LIMIT,
    MARGIN,
    SLO,
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
    plain,
    spread,
    stack,
)
from rheostat.report.history import History, Told
from rheostat.report.series import torn
from rheostat.report.words import NONE, change, expectation, number

if TYPE_CHECKING:
    from rheostat.bench.runs import Comparison, PolicyRun

BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, _ = COLOURS
JUDGED: Mapping[Verdict | None, tuple[str, str]] = {
    Verdict.KEPT: ("expectation kept", GREEN),
    Verdict.MISSED: ("expectation missed", LIMIT),
    Verdict.LOAD_CHANGED: ("load changed", ORANGE),
    Verdict.UNJUDGED: ("unjudged", GREY),
    None: ("not judged yet", "#333333"),
}
STOPPED = ("stopped by a guard", "#555555")
WIDTH = 88
"""Characters of a line of hover text."""
MAX_EVIDENCE = 12
MAX_MARKERS = 1000


# -- the journal's page ----------------------------------------------------------------------------------------


def job_figure(history: History, time: TimeAxis) -> Figure:
    """Return load, backlog, lag, tasks and latency over time, with decisions, changes and unusable windows."""
    at_s, seen = torn(
        history.column("at_s"), {name: history.column(name) for name in history.jobwide}, np.array(history.breaks)
    )

    def draw(column: str, name: str, pen: Pen, unit: str) -> Trace:
        return line(time, at_s, seen[column], name, pen, unit)

    def promise(column: str) -> list[Trace]:
        most = seen[column]
        return [] if np.isnan(most).all() else [line(time, at_s, most, "Slo", SLO, " s", step=True)]

    latency = np.concatenate([seen["event_p50_s"], seen["event_p99_s"]])
    tasks = operator_lines(history, time, "tasks", " tasks", step=True)
    panels = [
        Panel(
            "Load and throughput, records/s",
            140,
            [
                draw("load_per_s", "load (arriving)", Pen(VERMILION, width=2.6), "/s"),
                draw("throughput_per_s", "throughput (taken)", Pen(BLUE), "/s"),
            ],
        ),
        Panel("Backlog, records waiting at the sources", 100, [draw("backlog", "backlog", Pen(PURPLE), "")]),
        Panel(
            "Lag, seconds (age of the oldest waiting record)",
            100,
            [draw("lag_s", "lag", Pen(PURPLE), " s"), *promise("max_lag_s")],
        ),
        Panel(
            "Tasks per operator, and decisions that asked for a change (open: cut by a guard)",
            max(210, 22 * (len(tasks) + 6)),
            [*tasks, *decision_markers(history, time)],
            ticks="~g",
        ),
        Panel(
            "Latency, seconds since the event (dotted: through the job)",
            160,
            [
                draw("event_p99_s", "99 %", Pen(BLUE, width=2.2), " s"),
                draw("event_p95_s", "95 %", Pen(SKY), " s"),
                draw("event_p50_s", "median", Pen(GREEN), " s"),
                draw("p99_s", "99 %, through the job", Pen(GREY, "dot", width=1.4), " s"),
                *promise("max_latency_s"),
            ],
            scale="log" if spread(latency) > 30 else "linear",
            ticks="~g",
        ),
    ]
    return stack(time, panels, bands(history, time))


def bands(history: History, time: TimeAxis) -> list[Trace]:
    """Return the shaded periods: unusable windows, the job down, changes under way."""
    at_s, length_s = history.column("at_s"), history.column("stands_for_s")

    def flagged(column: str, rgb: str, opacity: float, name: str) -> list[Trace]:
        where = history.column(column) > 0
        return band(time, at_s[where] - length_s[where], at_s[where], rgb, opacity, name)

    changes = list(history.changes.values())
    starts = np.array([c.intent.at_s for c in changes])
    # A change without an end lasts until the next one, or until now.
    nexts = [*starts.tolist()[1:], time.end_s]
    ends = np.array([c.end.at_s if c.end else after for c, after in zip(changes, nexts, strict=False)])
    return [
        *flagged("unusable", "110,110,110", 0.20, "unusable window"),
        *flagged("down", "213,94,0", 0.25, "job down"),
        *band(time, starts, ends, "86,180,233", 0.22, "change under way"),
    ]


def operator_lines(history: History, time: TimeAxis, column: str, unit: str, step: bool = False) -> list[Trace]:
    """Return one line per operator that has such readings."""
    looks = pens(list(history.operators))
    drawn = {}
    for name in history.operators:
        values = history.operator_column(name, column)
        if not np.isnan(values).all():
            drawn[name] = values
    at_s, seen = torn(history.column("at_s"), drawn, np.array(history.breaks))
    return [line(time, at_s, y, name, looks[name], unit, step=step, legendgroup=name) for name, y in seen.items()]


def operators_figure(history: History, time: TimeAxis) -> Figure | None:
    """Return useful share and true rate per task of every operator; None when no window has any."""
    useful = operator_lines(history, time, "useful_share", "")
    rates = operator_lines(history, time, "true_rate_per_s", "/s")
    if not useful and not rates:
        return None
    for trace in useful:
        trace["hovertemplate"] = "%{y:.0%}"
    named = {trace["name"] for trace in useful}
    for trace in rates:
        trace["showlegend"] = trace["name"] not in named
    height = max(170, 20 * len(history.operators))
    every = np.array([v for trace in rates for v in trace["y"] if v is not None])
    scale: Literal["linear", "log"] = "log" if spread(every) > 8 else "linear"
    panels = [
        Panel("Useful share of a task's time", height, useful, ticks=".0%"),
        Panel("True rate of one task, records per useful second", height, rates, scale),
    ]
    return stack(time, panels)


def decision_markers(history: History, time: TimeAxis) -> list[Trace]:
    """Return a marker per decision that asked for a change, at the operator that it changes most."""
    shown = [told for told in history.told if told.wanted is not None]
    # Decisions that were applied matter more than those that a guard stopped.
    applied = _evenly([told for told in shown if told.fate != "stopped"], MAX_MARKERS)
    stopped = _evenly([told for told in shown if told.fate == "stopped"], MAX_MARKERS - len(applied))
    shown = [*applied, *stopped]
    traces: list[Trace] = []
    for (name, colour), own in _by_judgement(shown).items():
        marker = {"color": colour, "size": 10, "line": {"width": 1.4, "color": colour}}
        stops = name == STOPPED[0]
        # The markers differ in shape, so the legend has a trace of its own.
        key = {**marker, "symbol": "x-thin" if stops else "circle"}
        common: Trace = {"type": "scatter", "mode": "markers", "name": name, "legendgroup": name}
        traces.append({**common, "x": [None], "y": [None], "marker": key, "hoverinfo": "skip"})
        traces.append(
            {
                **common,
                "x": time.place(np.array([told.at_s for told in own])),
                "y": [_height(told) for told in own],
                "text": [hover(told) for told in own],
                "hovertemplate": "%{text}<extra></extra>",
                "showlegend": False,
                "marker": {**marker, "symbol": [_symbol(told) for told in own], "size": 7 if stops else 10},
            }
        )
    return traces


def _evenly(told: Sequence[Told], most: int) -> list[Told]:
    """Return at most so many, spread over all of them."""
    if len(told) <= most:
        return list(told)
    return [told[k] for k in np.linspace(0, len(told) - 1, most).astype(int)] if most else []


def _by_judgement(told: Sequence[Told]) -> dict[tuple[str, str], list[Told]]:
    """Group decisions by what judge said, or by the guard's stop, with the group's name and colour."""
    groups: dict[tuple[str, str], list[Told]] = {STOPPED: [], **{group: [] for group in JUDGED.values()}}
    for one in told:
        judged = JUDGED[one.outcome.verdict if one.outcome else None]
        groups[STOPPED if one.fate == "stopped" else judged].append(one)
    return {group: members for group, members in groups.items() if members}


def hover(told: Told) -> str:
    """Return all that a decision says, for the label under the pointer."""
    decision, outcome = told.decision, told.outcome
    lines = [f"<b>{plain(decision.reason.value)}</b> ({told.fate}, step {told.step})", plain(decision.sentence, WIDTH)]
    if told.fate != "applied":
        lines.append(f"asked: {plain(change(told.before, told.wanted), WIDTH)}")
    lines += [plain(f"guard {note.guard}: {note.why}", WIDTH) for note in decision.guards]
    if decision.evidence:
        shown = [f"{name} {number(value)}" for name, value in decision.evidence.items()][:MAX_EVIDENCE]
        more = len(decision.evidence) - len(shown)
        lines.append(plain("evidence: " + ", ".join(shown) + (f" and {more} more" if more else ""), WIDTH))
    if (expected := expectation(decision.expects)) != NONE:
        lines.append(plain(f"expects: {expected}", WIDTH))
    if outcome:
        lines.append(plain(f"judged {outcome.verdict.value}: {outcome.sentence}", WIDTH))
    return "<br>".join(lines)


def _most_changed(told: Told) -> str:
    assert told.wanted is not None
    before, wanted = told.before.tasks if told.before else {}, told.wanted.tasks
    return max(wanted, key=lambda name: abs(wanted[name] - before.get(name, 0)))


def _height(told: Told) -> int:
    stays = told.before if told.fate == "stopped" and told.before else told.decision.target or told.wanted
    assert stays is not None
    return stays.tasks.get(_most_changed(told), 0)


def _symbol(told: Told) -> str:
    if told.fate == "stopped":
        return "x-thin"
    assert told.wanted is not None
    before = told.before.tasks if told.before else {}
    differences = [count - before.get(name, 0) for name, count in told.wanted.tasks.items()]
    grows, shrinks = max(differences) > 0, min(differences) < 0
    symbol = "diamond" if grows == shrinks else "triangle-up" if grows else "triangle-down"
    return symbol + ("-open" if told.fate == "cut" else "")


# -- the comparison's page -------------------------------------------------------------------------------------


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


ABOVE = {**SMALL, "orientation": "h", "x": 0, "y": 1.02, "xanchor": "left", "yanchor": "bottom"}


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
