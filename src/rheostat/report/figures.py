"""The figures of a journal's page."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from rheostat.job.decision import Verdict
from rheostat.report.chart.figure import Axis, Figure, Line, Panel, Points, Shade, Trace
from rheostat.report.chart.pens import SLO, Colour, Pen, pens
from rheostat.report.chart.scale import spread
from rheostat.report.chart.time_axis import TimeAxis, line, shade, stack
from rheostat.report.history import History, Proposal
from rheostat.report.series import insert_gaps
from rheostat.report.words import NONE, change, expectation, number

JUDGED: Mapping[Verdict | None, tuple[str, Colour]] = {
    Verdict.KEPT: ("expectation kept", "green"),
    Verdict.MISSED: ("expectation missed", "limit"),
    Verdict.LOAD_CHANGED: ("load changed", "orange"),
    Verdict.UNJUDGED: ("unjudged", "grey"),
    None: ("not judged yet", "ink"),
}
STOPPED: tuple[str, Colour] = ("stopped by a guard", "grey")
LINE_LENGTH = 88
"""Characters of a line in the hover box."""
MAX_EVIDENCE = 12
"""Numbers of a decision's evidence in the hover box."""
MAX_MARKERS = 1000
"""Markers of a figure: more would hide each other."""
LOG_LATENCY, LOG_RATE = 30, 8
"""Ratio of the greatest to the least value from which on a log axis shows more."""


def job_figure(history: History, time: TimeAxis) -> Figure:
    """Return load, backlog, lag, tasks and latency over time, with decisions, changes and unusable windows."""
    at_s, columns = insert_gaps(
        history.column("at_s"), {name: history.column(name) for name in history.jobwide}, np.array(history.breaks)
    )

    def draw(column: str, name: str, pen: Pen, unit: str) -> Line:
        return line(time, at_s, columns[column], name, pen, unit)

    def objective(column: str) -> list[Line]:
        most = columns[column]
        return [] if np.isnan(most).all() else [line(time, at_s, most, "SLO", SLO, " s", step=True)]

    latency = np.concatenate([columns["event_p50_s"], columns["event_p99_s"]])
    tasks = operator_lines(history, time, "tasks", " tasks", step=True)
    waiting = [
        Panel(title, 80, [draw(f"{name}_waiting", f"{name} that wait", Pen("orange"), unit)])
        for name, title, unit in (
            ("files", "Files that no batch has taken", ""),
            ("bytes", "Bytes of these files", " B"),
            ("versions", "Versions of the table that the source has not come to", ""),
        )
        if not np.isnan(columns[f"{name}_waiting"]).all()
    ]
    panels = [
        Panel(
            "Load and throughput, records/s",
            140,
            [
                draw("load_per_s", "load (arriving)", Pen("vermilion", width=2.6), "/s"),
                draw("throughput_per_s", "throughput (processed)", Pen("blue"), "/s"),
            ],
        ),
        Panel("Backlog, records waiting at the sources", 100, [draw("backlog", "backlog", Pen("purple"), "")]),
        *waiting,
        Panel(
            "Lag, seconds (age of the oldest waiting record)",
            100,
            [draw("lag_s", "lag", Pen("purple"), " s"), *objective("max_lag_s")],
        ),
        Panel(
            "Tasks per operator, and decisions to change them (open symbol: reduced by a guard)",
            210,
            [*tasks, *decision_markers(history, time)],
        ),
        Panel(
            "Latency, seconds since the event (dotted: through the job)",
            160,
            [
                draw("event_p99_s", "99 %", Pen("blue", width=2.2), " s"),
                draw("event_p95_s", "95 %", Pen("sky"), " s"),
                draw("event_p50_s", "median", Pen("green"), " s"),
                draw("p99_s", "99 %, through the job", Pen("grey", "dot", width=1.4), " s"),
                *objective("max_latency_s"),
            ],
            _axis("log" if spread(latency) > LOG_LATENCY else "linear"),
        ),
    ]
    return stack(f"{history.job} over time", time, panels, shades(history, time))


def _axis(scale: Literal["linear", "log"]) -> Axis:
    return Axis(scale=scale, from_zero=scale == "linear")


def shades(history: History, time: TimeAxis) -> list[Shade]:
    """Return the shaded periods: unusable windows, the job down, changes under way."""
    at_s, length_s = history.column("at_s"), history.column("stands_for_s")

    def flagged(column: str, colour: Colour, opacity: float, name: str) -> list[Shade]:
        where = history.column(column) > 0
        return shade(time, at_s[where] - length_s[where], at_s[where], colour, opacity, name)

    changes = list(history.changes.values())
    starts = np.array([c.intent.at_s for c in changes])
    # A change without an end lasts until the next one, or until now.
    nexts = [*starts.tolist()[1:], time.end_s]
    ends = np.array([c.end.at_s if c.end else after for c, after in zip(changes, nexts, strict=False)])
    return [
        *flagged("unusable", "grey", 0.20, "unusable window"),
        *flagged("down", "vermilion", 0.25, "job down"),
        *shade(time, starts, ends, "sky", 0.22, "change under way"),
    ]


def operator_lines(history: History, time: TimeAxis, column: str, unit: str, step: bool = False) -> list[Line]:
    """Return one line per operator that has such readings."""
    looks = pens(list(history.operators))
    readings = {}
    for name in history.operators:
        values = history.operator_column(name, column)
        if not np.isnan(values).all():
            readings[name] = values
    at_s, drawn = insert_gaps(history.column("at_s"), readings, np.array(history.breaks))
    return [line(time, at_s, y, name, looks[name], unit, step=step) for name, y in drawn.items()]


def operators_figure(history: History, time: TimeAxis) -> Figure | None:
    """Return useful share and true rate per task of every operator; None when no window has any."""
    useful = [replace(one, format="percent") for one in operator_lines(history, time, "useful_share", "")]
    rates = operator_lines(history, time, "true_rate_per_s", "/s")
    if not useful and not rates:
        return None
    named = {one.name for one in useful}
    rates = [replace(one, key=one.name not in named) for one in rates]
    every = np.concatenate([one.y for one in rates]) if rates else np.empty(0)
    panels = [
        Panel("Useful share of a task's time", 170, useful, Axis(format="percent", from_zero=True)),
        Panel(
            "True rate of one task, records per useful second",
            170,
            rates,
            _axis("log" if spread(every) > LOG_RATE else "linear"),
        ),
    ]
    return stack(f"Operators of {history.job} over time", time, [panel for panel in panels if panel.traces])


def decision_markers(history: History, time: TimeAxis) -> list[Trace]:
    """Return a marker per decision that asked for a change, at the operator that it changes most."""
    proposals = [one for one in history.proposals if one.wanted is not None]
    # Decisions that were applied matter more than those that a guard stopped.
    applied = _spread_evenly([one for one in proposals if one.fate != "stopped"], MAX_MARKERS)
    stopped = _spread_evenly([one for one in proposals if one.fate == "stopped"], MAX_MARKERS - len(applied))
    traces: list[Trace] = []
    for (name, colour), own in _by_judgement([*applied, *stopped]).items():
        stops = name == STOPPED[0]
        traces.append(
            Points(
                name,
                time.place(np.array([one.at_s for one in own])),
                np.array([_height(one) for one in own], dtype=float),
                Pen(colour, symbol="x" if stops else "circle"),
                7.0 if stops else 9.0,
                [_symbol(one) for one in own],
                [describe(one) for one in own],
            )
        )
    return traces


def _spread_evenly(proposals: Sequence[Proposal], most: int) -> list[Proposal]:
    """Return at most this many, spread over all of them."""
    if len(proposals) <= most:
        return list(proposals)
    return [proposals[k] for k in np.linspace(0, len(proposals) - 1, most).astype(int)] if most else []


def _by_judgement(proposals: Sequence[Proposal]) -> dict[tuple[str, Colour], list[Proposal]]:
    """Group decisions by their verdict, or by the guard's stop, with the group's name and colour."""
    groups: dict[tuple[str, Colour], list[Proposal]] = {STOPPED: [], **{group: [] for group in JUDGED.values()}}
    for one in proposals:
        judged = JUDGED[one.outcome.verdict if one.outcome else None]
        groups[STOPPED if one.fate == "stopped" else judged].append(one)
    return {group: members for group, members in groups.items() if members}


def describe(proposal: Proposal) -> str:
    """Return all that a decision says, in lines, for the box under the pointer."""
    decision, outcome = proposal.decision, proposal.outcome
    lines = [f"{decision.reason.value} ({proposal.fate}, step {proposal.step})", decision.sentence]
    if proposal.fate != "applied":
        lines.append(f"asked: {change(proposal.before, proposal.wanted)}")
    lines += [f"guard {note.guard}: {note.why}" for note in decision.guards]
    if decision.evidence:
        shown = [f"{name} {number(value)}" for name, value in decision.evidence.items()][:MAX_EVIDENCE]
        more = len(decision.evidence) - len(shown)
        lines.append("evidence: " + ", ".join(shown) + (f" and {more} more" if more else ""))
    if (expected := expectation(decision.expects)) != NONE:
        lines.append(f"expects: {expected}")
    if outcome:
        lines.append(f"judged {outcome.verdict.value}: {outcome.sentence}")
    return "\n".join(part for one in lines for part in textwrap.wrap(one, LINE_LENGTH))


def _most_changed(proposal: Proposal) -> str:
    assert proposal.wanted is not None
    before, wanted = proposal.before.tasks if proposal.before else {}, proposal.wanted.tasks
    return max(wanted, key=lambda name: abs(wanted[name] - before.get(name, 0)))


def _height(proposal: Proposal) -> int:
    decision, before = proposal.decision, proposal.before
    stays = before if proposal.fate == "stopped" and before else decision.target or proposal.wanted
    assert stays is not None
    return stays.tasks.get(_most_changed(proposal), 0)


def _symbol(proposal: Proposal) -> str:
    if proposal.fate == "stopped":
        return "x"
    assert proposal.wanted is not None
    before = proposal.before.tasks if proposal.before else {}
    differences = [count - before.get(name, 0) for name, count in proposal.wanted.tasks.items()]
    grows, shrinks = max(differences) > 0, min(differences) < 0
    symbol = "diamond" if grows == shrinks else "triangle-up" if grows else "triangle-down"
    return symbol + ("-open" if proposal.fate == "cut" else "")
