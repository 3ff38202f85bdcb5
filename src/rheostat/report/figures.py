"""The figures of both pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from rheostat.job.decision import Verdict
from rheostat.report.drawing import (
    COLOURS,
    GREY,
    LIMIT,
    SLO,
    Figure,
    Panel,
    Pen,
    TimeAxis,
    Trace,
    band,
    line,
    pens,
    plain,
    spread,
    stack,
)
from rheostat.report.history import History, Told
from rheostat.report.series import torn
from rheostat.report.words import NONE, change, expectation, number

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

    def objective(column: str) -> list[Trace]:
        most = seen[column]
        return [] if np.isnan(most).all() else [line(time, at_s, most, "SLO", SLO, " s", step=True)]

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
            [draw("lag_s", "lag", Pen(PURPLE), " s"), *objective("max_lag_s")],
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
                *objective("max_latency_s"),
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
