"""What a person sees while a real query is scaled: a table that moves along on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from rheostat.control.controller import Step

Show = Callable[[Sequence["Step"], float], None]
"""Told all steps so far, and the seconds since the start."""
Line = Callable[["Step"], str]
"""What is printed about a step, "" for nothing."""

SHOWN = 8
"""Steps that the table shows."""


@contextmanager
def live_view(out: Console, title: str, line: Line, lasting: bool = False) -> Iterator[Show]:
    """Show the latest steps; lines about them are printed where there is no terminal, or everywhere (`lasting`).

    A line that only repeats the one before is left out.
    """
    from rich.live import Live

    with Live(console=out, refresh_per_second=2, transient=True) as live:
        printed, before = 0, ""

        def show(steps: Sequence[Step], gone_s: float) -> None:
            nonlocal printed, before
            if lasting or not out.is_terminal:
                for step in steps[printed:]:
                    if (text := line(step)) and text != before:
                        out.print(f"{gone_s:4.0f} s  {text}", markup=False, soft_wrap=True)
                        before = text
            if out.is_terminal:
                live.update(_table(title, steps[-SHOWN:], gone_s))
            printed = len(steps)

        yield show


def status_line(step: Step) -> str:
    """Return all cells of a step in one line."""
    return "  ".join(_cells(step))


def change_line(step: Step) -> str:
    """Return what a step changes, or in shadow mode would change, and why; "" where it changes nothing."""
    was, decision = step.observation.running, step.decision
    shadowed = decision.asked if any(note.guard == "shadow" for note in decision.guards) else None
    wish = step.intent.target if step.intent else shadowed
    if wish is None:
        return ""
    text = f"{was.slots if was else '?'} -> {wish.slots} slots  {decision.reason}: {decision.sentence}"
    return text if step.intent else f"{text} (not applied)"


def _cells(step: Step) -> tuple[str, ...]:
    seen, decision = step.observation, step.decision
    latency = None if seen.latency is None else seen.latency.event_p99_s

    def text(value: float | None, unit: str = "") -> str:
        return "-" if value is None else f"{value:,.0f}{unit}"

    slots = "-" if seen.running is None else str(seen.running.slots)
    why = f"{decision.reason}: {decision.sentence}"
    return text(seen.load_per_s, "/s"), text(seen.backlog), text(latency, " s"), slots, why


def _table(title: str, steps: Sequence[Step], gone_s: float) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=f"{title}, newest first", header_style="bold", title_justify="left")
    for heading in ("time", "load", "backlog", "latency p99", "slots"):
        table.add_column(heading, justify="right")
    table.add_column("decision", no_wrap=True)
    for place, step in enumerate(reversed(steps)):
        table.add_row("" if place else f"{gone_s:.0f} s", *map(escape, _cells(step)))
    return table
