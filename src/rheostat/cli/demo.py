"""`rheostat demo`: a real Spark cluster on this machine, scaled live under a changing load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rheostat.cli import options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table

    from rheostat.control.controller import Step
    from rheostat.journal.memory import MemoryJournal

MODES = ("micro-batch", "realtime")


def demo(
    mode: Annotated[
        str, typer.Option(metavar="MODE", help="micro-batch, or realtime (tasks per stage, with Kafka).")
    ] = "micro-batch",
    seconds: Annotated[int, typer.Option("--seconds", help="Seconds of load, at least 60.")] = 180,
    html_file: options.HtmlFile = None,
    json_file: options.JsonFile = None,
    verbose: options.Verbose = False,
) -> None:
    """Scale a real Spark query live under a load that rises, spikes and falls.

    YSB on an embedded cluster; with --mode realtime, WordCount with a Kafka broker of its own.
    """
    from rheostat.cli.display import logs
    from rheostat.cli.display.live import live_view, status_line
    from rheostat.cli.display.output import check_writable, console, write_json
    from rheostat.errors import EngineError, InvalidValue, nearest
    from rheostat.journal.memory import MemoryJournal

    logs.configure(verbose)
    check_writable(json=json_file, html=html_file)
    if seconds < 60:
        raise InvalidValue(f"--seconds is {seconds}: the demo needs at least 60")
    if mode not in MODES:
        raise InvalidValue(f"--mode is {mode!r}, {nearest(mode, MODES)}")
    if mode == "realtime":
        _realtime(seconds, html_file, json_file)
        return
    try:
        from rheostat.lab.demo.microbatch import EXECUTORS, costs, run
    except ImportError as error:
        raise EngineError(f"the demo needs Spark ({error}): pip install 'rheostat[spark]'") from error
    out = console(json_file)
    out.print(
        f"starting an embedded Spark cluster, {EXECUTORS[0]} to {EXECUTORS[1]} executors (about 20 s)", style="dim"
    )
    journal = MemoryJournal()
    with live_view(out, "YSB on Spark", status_line) as show:
        done = run(seconds, journal, lambda scaler, gone_s: show(scaler.steps, gone_s))
    out.print(_changes(done.steps))
    if done.killed_s is not None:
        killed = f"an executor was killed after {done.killed_s:.0f} s; Spark replaced it and the query continued"
        out.print(killed, style="dim", soft_wrap=True)
    all_costs = costs(done)
    out.print(_costs(all_costs))
    _write_page(out, journal, html_file)
    if json_file is not None:
        write_json(json_file, [{name: getattr(cost, name) for name in cost.__slots__} for cost in all_costs])


def _realtime(seconds: int, html_file: str | None, json_file: str | None) -> None:
    """Run the demo of real-time mode."""
    from rheostat.cli.display.live import live_view, status_line
    from rheostat.cli.display.output import console, write_json
    from rheostat.errors import EngineError
    from rheostat.journal.memory import MemoryJournal

    try:
        from rheostat.lab.demo.realtime import run
    except ImportError as error:
        raise EngineError(
            f"the demo in real-time mode needs Spark and Kafka ({error}): pip install 'rheostat[spark,kafka]'"
        ) from error
    out, journal = console(json_file), MemoryJournal()
    out.print("starting a Kafka broker and Spark in real-time mode (about 40 s)", style="dim")
    with live_view(out, "WordCount in real-time mode", status_line) as show:
        done = run(
            seconds,
            journal,
            lambda scaler, gone_s: show(scaler.steps, gone_s),
            lambda what: out.print(what, style="dim", markup=False, soft_wrap=True),
        )
    out.print(_changes(done.steps, tasks=True))
    downtimes = [step.observation.downtime_s for step in done.steps if step.observation.downtime_s is not None]
    lines = [
        f"{done.records:,} lines counted; {done.keys_wrong} counts wrong, {done.repeated} results written twice",
        f"the query was made to fail after {done.failed_s:.0f} s and was restarted",
        f"seconds without output, by change or failure: {', '.join(f'{s:.1f}' for s in dict.fromkeys(downtimes))}",
    ]
    if done.latency is not None:
        lines.append(f"latency p50 {done.latency.p50_ms / 1e3:.2f} s, p99 {done.latency.p99_ms / 1e3:.1f} s")
    for line in lines:
        out.print(line, markup=False, soft_wrap=True)
    _write_page(out, journal, html_file)
    if json_file is not None:
        write_json(json_file, [{"records": done.records, "keys_wrong": done.keys_wrong, "repeated": done.repeated}])


def _write_page(out: Console, journal: MemoryJournal, html_file: str | None) -> None:
    from rheostat.cli.display.output import write_text

    if html_file is not None:
        from rheostat.report.journal_page import journal_page

        write_text(html_file, journal_page(journal, journal.jobs()[0]))
        out.print(f"report: {html_file}", soft_wrap=True)


def _changes(steps: Sequence[Step], tasks: bool = False) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table(title="Changes", header_style="bold", title_justify="left")
    for heading in ("time", "tasks" if tasks else "executors", "why"):
        table.add_column(heading)
    start_s = steps[0].observation.at_s if steps else 0.0
    for step in steps:
        if step.intent is not None:
            was, to = step.intent.previous, step.intent.target
            table.add_row(
                f"{step.observation.at_s - start_s:.0f} s",
                f"{was} -> {to}" if tasks else f"{was.slots if was else '?'} -> {to.slots}",
                escape(step.decision.sentence),
            )
    return table


def _costs(all_costs: Any) -> Table:
    from rich.table import Table

    table = Table(title="Cost", header_style="bold", title_justify="left")
    for heading in ("", "executor-seconds", "seconds over the objective (15 s)", ""):
        table.add_column(heading, justify="left" if not heading else "right")
    for cost in all_costs:
        how = "measured" if cost.measured else "computed from the measured capacity"
        table.add_row(cost.way, f"{cost.executor_seconds:,.0f}", f"{cost.seconds_over:,.0f}", how)
    return table
