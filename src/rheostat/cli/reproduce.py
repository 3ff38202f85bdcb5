"""`rheostat reproduce`: a paper's comparison on the simulator, with the paper's numbers beside ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from rheostat.cli import options

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from rheostat.lab.papers.campaign import Failed
    from rheostat.lab.papers.claim import Judgement
    from rheostat.lab.papers.parallel import Runner
    from rheostat.lab.papers.result import Result
    from rheostat.lab.papers.table import Cell

WIDE = 8
"""Most columns of a table; a wider one is transposed, or printed in parts."""


def reproduce(
    name: Annotated[
        str, typer.Argument(metavar="SUITE", help="conttune, dragster, autrascale, streambed, phoebe, grounds, or all.")
    ],
    quick: Annotated[bool, typer.Option("--quick", help="Fewer seeds: a minute or two instead of many.")] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit 1 if a claim is missing or no longer holds, against the record.")
    ] = False,
    record: Annotated[bool, typer.Option("--record", help="Store the verdicts in the project.")] = False,
    on: Annotated[
        str | None, typer.Option("--on", metavar="MASTER", help="Run on this Spark master instead of local processes.")
    ] = None,
    json_file: options.JsonFile = None,
    html_file: options.HtmlFile = None,
    verbose: options.Verbose = False,
) -> None:
    """Run a paper's comparison and print its tables beside ours.

    `grounds` runs all policies on drift, hard cases and recorded traces. `all` prints the claims of all papers, and the
    cost over the oracle's on all grounds.
    """
    from rheostat.cli.display import logs
    from rheostat.cli.display.output import check_writable, console, write_json, write_text
    from rheostat.errors import InvalidValue
    from rheostat.lab.papers import campaign, verdicts
    from rheostat.lab.papers.registry import SUITES, suite
    from rheostat.lab.papers.result import Result

    logs.configure(verbose)
    check_writable(json=json_file, html=html_file)
    if strict and record:
        raise InvalidValue("--strict compares with the stored verdicts and --record replaces them: give one of them")
    size = "quick" if quick else "full"
    suites = [suite(each) for each in (SUITES if name == "all" else [name])]
    out = console(json_file)
    with _progress(out) as progress:
        results = campaign.reproduce(suites, size, progress, _runner(on, progress))
    done = [result for result in results if isinstance(result, Result)]
    if name == "all":
        show_claims(results, out)
    else:
        for result in done:
            show(result, out)
    if json_file is not None:
        write_json(json_file, [row for result in done for row in result.rows()])
    if html_file is not None:
        from rheostat.lab.papers.page import reproduction_page
        from rheostat.lab.papers.summary import summary_page

        write_text(html_file, summary_page(results, size) if name == "all" else reproduction_page(done[0]))
    worse = _compare(done, size, out) if strict else False
    failed = [result for result in results if not isinstance(result, Result)]
    for each in failed:
        out.print(f"{each.suite} failed: {each.error}", style="bold red", markup=False)
    if record and not failed:
        verdicts.record_verdicts(verdicts.verdict_file(size), done)
        out.print(f"verdicts of {', '.join(each.suite for each in done)} stored ({size})", markup=False)
    if worse or failed:
        raise typer.Exit(1)


@contextmanager
def _progress(out: Console) -> Iterator[Callable[[str, float], None]]:
    """Show a bar, or a line per part where the output is no terminal."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    if not out.is_terminal:
        yield lambda what, share: out.print(f"{share:.0%}, {what}", style="dim", markup=False)
        return
    columns = (
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[what]}"),
    )
    with Progress(*columns, console=out, transient=True) as bar:
        task = bar.add_task("", total=1.0, what="")
        yield lambda what, share: bar.update(task, completed=share, what=what)


def _runner(master: str | None, progress: Callable[[str, float], None]) -> Runner:
    if master is None:
        from rheostat.lab.papers.parallel import run_in_processes

        return run_in_processes
    from rheostat.lab.papers.on_spark import spark_runner

    return spark_runner(master, lambda done, all_: progress(f"{done} of {all_} parts on {master}", done / all_))


def _compare(results: Sequence[Result], size: str, out: Console) -> bool:
    """Print what differs from the stored verdicts; return whether something is worse."""
    from rheostat.lab.papers import verdicts

    stored = verdicts.read_verdicts(verdicts.verdict_file(size))
    worse = [line for result in results for line in verdicts.find_regressions(stored, result)]
    out.print(f"\n[bold]Against the stored verdicts ({size})[/]")
    for line in worse:
        out.print(f"worse: {line}", style="red", markup=False)
    for line in (line for result in results for line in verdicts.find_news(stored, result)):
        out.print(f"new: {line}", markup=False)
    if not worse:
        out.print("nothing is worse")
    return bool(worse)


def show(result: Result, out: Console) -> None:
    """Print a suite: its tables, its claims, what was fitted, and its differences from the paper."""
    from rich.markup import escape

    from rheostat.cli.display.grounds import show_grounds

    out.print(f"[bold]{escape(result.title)}[/]\n")
    for name, cells in result.tables().items():
        unit = f" ({cells[0].unit})" if cells[0].unit else ""
        out.print(f"{name if name.startswith('Figure') else f'Table {name}'}{unit}", style="italic", markup=False)
        for table in tables(cells):
            out.print(table)
    out.print("Our number, and the paper's below it; * a parameter is fitted to this row.\n", style="dim", markup=False)
    for note in result.notes:
        out.print(f"- {note}", style="dim", markup=False)
    out.print("\n[bold]Claims[/]")
    for judgement in result.judgements:
        out.print(_claim(judgement))
    _show_fits([result], out)
    show_grounds(result, out, notes=False)
    out.print("\n[bold]Differences from the paper[/]")
    for difference in result.differences:
        out.print(f"{difference.table}: {difference.what}: {difference.cause}", markup=False)


def show_claims(results: Sequence[Result | Failed], out: Console) -> None:
    """Print the claims of all papers, what was fitted, the grounds, and the number of claims by verdict."""
    from rich.markup import escape
    from rich.table import Table

    from rheostat.cli.display.grounds import show_grounds
    from rheostat.lab.papers.claim import FAILS, HOLDS, UNKNOWN
    from rheostat.lab.papers.result import Result

    done = [result for result in results if isinstance(result, Result)]
    for result in done:
        out.print(f"\n[bold]{escape(result.title)}[/]")
        for judgement in result.judgements:
            out.print(_claim(judgement))
    _show_fits(done, out)
    for result in done:
        show_grounds(result, out)
    table = Table("paper", "claims", HOLDS, FAILS, UNKNOWN, title="Claims (about fitted cells)")
    for result in done:
        counts = (f"{result.count(verdict)} ({result.count(verdict, True)})" for verdict in (HOLDS, FAILS, UNKNOWN))
        table.add_row(escape(result.suite), str(len(result.judgements)), *counts)
    out.print(table)


def _show_fits(results: Sequence[Result], out: Console) -> None:
    out.print("\n[bold]What was fitted on which data[/]")
    for result in results:
        for fit in result.fits:
            out.print(f"{result.suite}: {fit.what}, to {fit.data} (in {fit.cells})", markup=False)


def _claim(judgement: Judgement) -> str:
    from rich.markup import escape

    from rheostat.lab.papers.claim import FAILS, HOLDS, UNKNOWN

    colour = {HOLDS: "green", FAILS: "red", UNKNOWN: "yellow"}[judgement.verdict]
    beside = "".join(f" \\[{escape(text)}]" for text in (judgement.fitted_text,) if text)
    goal = "our goal: " if judgement.claim.goal else ""
    why = f": {judgement.cause}" if judgement.cause else ""
    claim = escape(f"{judgement.claim.table}: {goal}{judgement.claim.sentence}")
    return f"[{colour}]{judgement.verdict}[/]  {claim}{beside} [dim]({escape(judgement.numbers)}){escape(why)}[/]"


def tables(cells: Sequence[Cell]) -> Iterator[Table]:
    """Yield a table of cells, in parts of `WIDE` columns where it has more of them either way round."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    at = {(cell.row, cell.column): cell for cell in cells}
    rows, columns = (list(dict.fromkeys(place)) for place in zip(*at, strict=True))
    if len(columns) > max(WIDE, len(rows)):
        at, rows, columns = {(column, row): cell for (row, column), cell in at.items()}, columns, rows
    for first in range(0, len(columns), WIDE):
        part = columns[first : first + WIDE]
        table = Table(header_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
        table.add_column("", no_wrap=True)
        for column in part:
            table.add_column(escape(column), justify="right", overflow="fold")
        for row in rows:
            table.add_row(escape(row), *(_text(at[row, column]) if (row, column) in at else "" for column in part))
        yield table


def _text(cell: Cell) -> str:
    """Return our number, with the paper's on the line below."""
    theirs = "" if cell.paper is None else f"\n[dim]{_number(cell.paper)}[/]"
    return f"{_number(cell.ours)}{'*' if cell.fitted else ''}{theirs}"


def _number(value: float) -> str:
    size = abs(value)
    if size >= 1e4:
        return f"{value / 1e3:.{0 if size >= 1e5 else 1}f}k"
    return f"{value:.{0 if size >= 100 or float(value).is_integer() else 1 if size >= 10 else 2}f}"
