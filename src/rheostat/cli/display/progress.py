"""What a person sees while a simulation runs: a live display on a terminal, a few plain lines elsewhere."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from rheostat.control.controller import Step

Progress = Callable[[float, Sequence["Step"]], None]
"""Told the share that is done and the latest steps; see `lab.experiment.simulated.compare`."""

SHOWN = 12
"""Steps that the live table shows."""
HEADINGS = ("time", "load/s", "throughput/s", "backlog", "lag s", "allocation", "decision")


@contextmanager
def live_steps(out: Console) -> Iterator[Progress]:
    """Show the first policy's latest steps in a table that moves along."""
    if not out.is_terminal:
        with plain_lines(10, _line) as progress:
            yield progress
        return
    from rich.live import Live

    latest: deque[Step] = deque(maxlen=SHOWN)
    with Live(console=out, refresh_per_second=8, transient=True) as live:

        def show(done: float, steps: Sequence[Step]) -> None:
            latest.append(steps[0])
            live.update(_table(done, latest))

        yield show


@contextmanager
def bar(out: Console, what: str) -> Iterator[Progress]:
    """Show how far a comparison is."""
    if not out.is_terminal:
        with plain_lines(4, lambda _: what) as progress:
            yield progress
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), BarColumn(), TextColumn("{task.percentage:>3.0f}%"), TimeRemainingColumn())
    with Progress(*columns, console=out, transient=True) as shown:
        task = shown.add_task(what, total=1.0)
        yield lambda done, _: shown.update(task, completed=done)


@contextmanager
def plain_lines(parts: int, text: Callable[[Step], str]) -> Iterator[Progress]:
    """Write a line to stderr each time another part of the whole is done."""
    told = 0

    def tell(done: float, steps: Sequence[Step]) -> None:
        nonlocal told
        if int(done * parts) > told:
            told = int(done * parts)
            print(f"{done:4.0%}  {text(steps[0])}", file=sys.stderr)

    yield tell


def _line(step: Step) -> str:
    return "  ".join(f"{name} {cell}" for name, cell in zip(HEADINGS, _cells(step), strict=True))


def _table(done: float, steps: Sequence[Step] | deque[Step]) -> Table:
    from rich.table import Table

    table = Table(title=f"{done:.0%} simulated", title_justify="left", box=None)
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading in ("allocation", "decision") else "right")
    for step in steps:
        table.add_row(*_cells(step), style="bold" if step.intent else "")
    return table


def _cells(step: Step) -> tuple[str, ...]:
    window, decision = step.observation, step.decision
    numbers = (window.load_per_s, window.throughput_per_s, window.backlog, window.lag_s)
    change = "" if decision.target is None else f" -> {decision.target}"
    return (
        f"{window.at_s:.0f} s",
        *("-" if number is None else f"{number:,.0f}" for number in numbers),
        str(window.running or "-"),
        f"{decision.reason}{change}",
    )
