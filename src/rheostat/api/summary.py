"""A scaler as a terminal and a notebook show it: plain text, and a table with a small picture (pure)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from html import escape

from rheostat.control.controller import Step
from rheostat.job.observation import Observation
from rheostat.policy.explanation import rate

SHOWN_STEPS = 360
"""Steps in the picture: half an hour at an interval of 5 s."""
OLD_S = 10.0
"""Seconds after which the age of a measurement is shown."""
WIDTH, HEIGHT = 480, 60
"""Size of a picture's panel, in pixels."""


def rows(status: str, policy: str, steps: Sequence[Step], needs: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    """Yield what is known, as pairs of a name and a value."""
    yield "status", status
    yield "policy", policy
    for need in needs:
        yield "would need", need
    if not steps:
        return
    window, last = steps[-1].observation, steps[-1].decision
    if window.running is not None:
        slots = window.running.slots
        yield "size", f"{slots} slot{'s' if slots != 1 else ''} ({window.running})"
    if window.load_per_s is not None:
        yield "load", f"{rate(window.load_per_s)} arrive{_age(window)}"
    if window.backlog is not None:
        lag = "" if window.lag_s is None else f", the oldest for {window.lag_s:.3g} s"
        yield "backlog", f"{window.backlog:,.0f} records wait{lag}{_age(window)}"
    if waiting := window.waiting:
        yield "waiting", ", ".join(f"{count:,.0f} {name}" for name, count in waiting.items())
    yield "last decision", f"{_clock(window.at_s)} {last.reason}: {last.sentence}"
    changes = [step for step in steps if step.intent is not None]
    if changes:
        intent = changes[-1].intent
        assert intent is not None
        yield "last change", f"{_clock(intent.at_s)} {intent.previous} -> {intent.target}"
    yield "changes", f"{len(changes)} in {len(steps)} steps"
    if shadow := next((step.decision.shadow for step in reversed(steps) if step.decision.shadow), None):
        yield "dry run", f"{shadow.slots} slots would run ({shadow})"


def _age(window: Observation) -> str:
    """Return how old load and backlog are, if they are not of now."""
    moments_s = [source.measured_s for source in window.sources if source.measured_s is not None]
    age_s = window.at_s - min(moments_s, default=window.at_s)
    return f" (measured {age_s:.0f} s ago)" if age_s > OLD_S else ""


def text(job: str, status: str, policy: str, steps: Sequence[Step], needs: Sequence[str] = ()) -> str:
    """Return the summary for a terminal."""
    lines = [f"<Scaler of {job}>"]
    lines += [f"  {name:<13} {value}" for name, value in rows(status, policy, steps, needs)]
    return "\n".join(lines)


def html(job: str, status: str, policy: str, steps: Sequence[Step], needs: Sequence[str] = ()) -> str:
    """Return the summary for a notebook: a table, and load, backlog and slots over the last steps."""
    cells = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th><td style='text-align:left'>{escape(value)}</td></tr>"
        for name, value in rows(status, policy, steps, needs)
    )
    shown = steps[-SHOWN_STEPS:]
    panels = "".join(
        _panel(name, [read(step) for step in shown])
        for name, read in (
            ("load per second", _load),
            ("backlog, records", _backlog),
            ("slots", _slots),
        )
    )
    return f"<div><b>Rheostat: {escape(job)}</b><table>{cells}</table>{panels}</div>"


def _load(step: Step) -> float | None:
    return step.observation.load_per_s


def _backlog(step: Step) -> float | None:
    return step.observation.backlog


def _slots(step: Step) -> float | None:
    return None if step.observation.running is None else float(step.observation.running.slots)


def _panel(name: str, values: Sequence[float | None]) -> str:
    """Draw one series from zero; gaps stay gaps."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return ""
    top = max(*known, 1e-9)
    x: Callable[[int], float] = lambda place: place * WIDTH / max(1, len(values) - 1)  # noqa: E731
    points, pen = [], "M"
    for place, value in enumerate(values):
        if value is None:
            pen = "M"
            continue
        points.append(f"{pen}{x(place):.1f},{HEIGHT - value / top * (HEIGHT - 2):.1f}")
        pen = "L"
    return (
        f"<div style='font-size:small'>{escape(name)} (top: {top:,.3g})</div>"
        f"<svg role='img' aria-label='{escape(name)}' width='{WIDTH}' height='{HEIGHT}' "
        f"style='border-bottom:1px solid #999'><path d='{' '.join(points)}' fill='none' stroke='#1f77b4' "
        "stroke-width='1.5'/></svg>"
    )


def _clock(at_s: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at_s))
