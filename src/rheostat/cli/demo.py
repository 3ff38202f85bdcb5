"""`rheostat demo`: a real Spark cluster on this machine, scaled live under a changing load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rheostat.cli import options

if TYPE_CHECKING:
    from rich.table import Table

    from rheostat.bench.demo import Demo


def demo(
    seconds: Annotated[int, typer.Option("--seconds", help="How long it runs, at least 60.")] = 180,
    html_file: options.HtmlFile = None,
    json_file: options.JsonFile = None,
    verbose: options.Verbose = False,
) -> None:
    """Scale a real Spark query live: YSB under a load that rises, spikes and falls."""
    from rheostat.cli import logs
    from rheostat.cli.live import live_view, status_line
    from rheostat.cli.output import check_writable, console, write_json
    from rheostat.errors import EngineError, InvalidValue
    from rheostat.journal.memory import MemoryJournal

    logs.configure(verbose)
    check_writable(json=json_file, html=html_file)
    if seconds < 60:
        raise InvalidValue(f"--seconds is {seconds}: the demo needs at least 60")
    try:
        from rheostat.bench.demo import EXECUTORS, costs, run
    except ImportError as error:
        raise EngineError(f"{error}: Spark is not installed; pip install 'rheostat[spark]'") from error
    out = console(json_file)
    out.print(
        f"starting an embedded Spark cluster, {EXECUTORS[0]} to {EXECUTORS[1]} executors (about 20 s)", style="dim"
    )
    journal = MemoryJournal()
    with live_view(out, "YSB on Spark", status_line) as show:
        done = run(seconds, journal, lambda scaler, gone_s: show(scaler.steps, gone_s))
    out.print(_changes(done))
    if done.killed_s is not None:
        killed = f"an executor was killed after {done.killed_s:.0f} s; Spark replaced it, the query went on"
        out.print(killed, style="dim", soft_wrap=True)
    found = costs(done)
    out.print(_costs(found))
    if html_file is not None:
        from pathlib import Path

        from rheostat.report.page import journal_page

        Path(html_file).write_text(journal_page(journal, journal.jobs()[0]), encoding="utf-8")
        out.print(f"the whole story: {html_file}", soft_wrap=True)
    if json_file is not None:
        write_json(json_file, [{name: getattr(cost, name) for name in cost.__slots__} for cost in found])


def _changes(done: Demo) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table(title="What was changed, and why", header_style="bold", title_justify="left")
    for heading in ("time", "executors", "why"):
        table.add_column(heading)
    start_s = done.steps[0].observation.at_s if done.steps else 0.0
    for step in done.steps:
        if step.intent is not None:
            was, to = step.intent.previous, step.intent.target
            table.add_row(
                f"{step.observation.at_s - start_s:.0f} s",
                f"{was.slots if was else '?'} -> {to.slots}",
                escape(step.decision.sentence),
            )
    return table


def _costs(found: Any) -> Table:
    from rich.table import Table

    table = Table(title="What it cost", header_style="bold", title_justify="left")
    for heading in ("", "executor-seconds", "seconds over the promise (15 s)", ""):
        table.add_column(heading, justify="left" if not heading else "right")
    for cost in found:
        how = "measured" if cost.measured else "computed from the measured ability"
        table.add_row(cost.way, f"{cost.executor_seconds:,.0f}", f"{cost.seconds_over:,.0f}", how)
    return table
