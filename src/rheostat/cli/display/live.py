"""What a person sees while something runs: a table, a bar or a line that changes; plain lines without a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from rheostat.control.controller import Step
    from rheostat.lab.experiment.simulated import Watch
    from rheostat.lab.experiment.trial import Progress

Show = Callable[[Sequence["Step"], float], None]
"""Takes all steps so far, and the seconds since the start."""
Line = Callable[["Step"], str]
"""What is printed about a step, "" for nothing."""

SHOWN = 10
"""Steps that the table shows."""


@contextmanager
def live_view(out: Console, title: str, line: Line, lasting: bool = False) -> Iterator[Show]:
    """Show the latest steps; lines about them are printed where there is no terminal, or everywhere (`lasting`).

    A line that only repeats the one before is left out.
    """
    from rich.live import Live

    with Live(console=out, refresh_per_second=4, transient=True) as live:
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


@contextmanager
def live_simulation(out: Console) -> Iterator[Watch]:
    """Show the first policy's latest steps while it is simulated."""
    if not out.is_terminal:
        yield _plain_lines(10, lambda step: f"{step.observation.at_s:.0f} s  {status_line(step)}")
        return
    steps: list[Step] = []
    with live_view(out, "simulated", status_line) as show:

        def watch(_: float, latest: Sequence[Step]) -> None:
            steps.append(latest[0])
            show(steps, latest[0].observation.at_s)

        yield watch


@contextmanager
def bar(out: Console, what: str) -> Iterator[Watch]:
    """Show how far a simulated comparison is."""
    if not out.is_terminal:
        yield _plain_lines(4, lambda _: what)
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), BarColumn(), TextColumn("{task.percentage:>3.0f}%"), TimeRemainingColumn())
    with Progress(*columns, console=out, transient=True) as shown:
        task = shown.add_task(what, total=1.0)
        yield lambda done, _: shown.update(task, completed=done)


@contextmanager
def status(out: Console, what: str) -> Iterator[Progress]:
    """Say what is being done now: in a line that changes on a terminal, line by line elsewhere."""
    with out.status(what) as shown:

        def report(now: str) -> None:
            shown.update(f"{what}: {now}")
            if not out.is_terminal:
                out.print(f"{what}: {now}", style="dim", markup=False, soft_wrap=True)

        yield report


def status_line(step: Step) -> str:
    """Return all cells of a step in one line."""
    return "  ".join(_cells(step))


def change_line(step: Step) -> str:
    """Return what a step changes, or in a dry run would change, and why; "" where it changes nothing."""
    was, decision = step.observation.running, step.decision
    target = step.intent.target if step.intent else decision.shadow
    if target is None or target == was:
        return ""
    text = f"{was.slots if was else '?'} -> {target.slots} slots  {decision.reason}: {decision.sentence}"
    return text if step.intent else f"{text} (not applied)"


def _plain_lines(parts: int, text: Line) -> Watch:
    """Write a line to stderr each time another part of the whole is done."""
    printed = 0

    def watch(done: float, steps: Sequence[Step]) -> None:
        nonlocal printed
        if int(done * parts) > printed:
            printed = int(done * parts)
            print(f"{done:4.0%}  {text(steps[0])}", file=sys.stderr)

    return watch


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
        style = "bold" if step.intent else ""
        table.add_row("" if place else f"{gone_s:.0f} s", *map(escape, _cells(step)), style=style)
    return table
