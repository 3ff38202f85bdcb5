"""`rheostat reproduce`: a paper's comparison on the simulator, with the paper's numbers beside ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from rheostat.cli import options

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from rheostat.lab.papers.result import Result
    from rheostat.lab.papers.table import Cell

WIDE = 8
"""Most columns of a table; a wider one is transposed."""


def reproduce(
    name: Annotated[
        str, typer.Argument(metavar="SUITE", help="conttune, dragster, autrascale, streambed, phoebe, or all.")
    ],
    quick: Annotated[bool, typer.Option("--quick", help="Fewer seeds: seconds instead of minutes.")] = False,
    json_file: options.JsonFile = None,
    html_file: options.HtmlFile = None,
    verbose: options.Verbose = False,
) -> None:
    """Run a paper's comparison and print its tables beside ours."""
    from rheostat.cli.display import logs
    from rheostat.cli.display.output import check_writable, console, write_json, write_text
    from rheostat.errors import InvalidValue
    from rheostat.lab.papers.registry import SUITES, suite

    logs.configure(verbose)
    check_writable(json=json_file, html=html_file)
    names = list(SUITES) if name == "all" else [name]
    if html_file is not None and len(names) > 1:
        raise InvalidValue(f"--html {html_file!r} needs one suite, not all: name one of {', '.join(names)}")
    suites = [suite(each) for each in names]
    out = console(json_file)
    rows = []
    for each in suites:
        with out.status(each.name) as status:

            def notify(what: str, share: float, name: str = each.name) -> None:
                status.update(f"{name}: {share:.0%} done")
                if not out.is_terminal:
                    out.print(f"{name}: {share:.0%}, {what}", style="dim", markup=False)

            result = each.reproduce("quick" if quick else "full", notify)
        show(result, out)
        rows += result.rows()
        if html_file is not None:
            from rheostat.lab.papers.page import reproduction_page

            write_text(html_file, reproduction_page(result))
    if json_file is not None:
        write_json(json_file, rows)


def show(result: Result, out: Console) -> None:
    """Print a suite: its tables, its conclusions, and its differences from the paper."""
    from rich.markup import escape

    out.print(f"[bold]{escape(result.title)}[/]\n")
    for name, cells in result.tables().items():
        unit = f" ({cells[0].unit})" if cells[0].unit else ""
        out.print(f"{name if name.startswith('Figure') else f'Table {name}'}{unit}", style="italic", markup=False)
        out.print(_table(cells))
    out.print("Our number, and the paper's below it; * a parameter is fitted to this row.\n", style="dim", markup=False)
    for note in result.notes:
        out.print(f"- {note}", style="dim", markup=False)
    out.print("\n[bold]Conclusions[/]")
    for check in result.checks:
        holds = "[green]holds[/]" if check.holds else "[red]does not hold[/]"
        why = "" if check.holds else f": {check.cause}"
        out.print(
            f"{holds}  {escape(check.table)}: {escape(check.sentence)} [dim]({escape(check.numbers)}){escape(why)}[/]"
        )
    out.print("\n[bold]Differences from the paper, and their causes[/]")
    for finding in result.findings:
        out.print(f"{finding.table}: {finding.what}: {finding.cause}", markup=False)


def _table(cells: Sequence[Cell]) -> Table:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(header_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    at = {(cell.row, cell.column): cell for cell in cells}
    rows, columns = (list(dict.fromkeys(place)) for place in zip(*at, strict=True))
    if len(columns) > WIDE:
        at, rows, columns = {(column, row): cell for (row, column), cell in at.items()}, columns, rows
    table.add_column("", no_wrap=True)
    for column in columns:
        table.add_column(escape(column), justify="right", overflow="fold")
    for row in rows:
        table.add_row(escape(row), *(_text(at[row, column]) if (row, column) in at else "" for column in columns))
    return table


def _text(cell: Cell) -> str:
    """Return our number, with the paper's on the line below."""
    theirs = "" if cell.paper is None else f"\n[dim]{_number(cell.paper)}[/]"
    return f"{_number(cell.ours)}{'*' if cell.fitted else ''}{theirs}"


def _number(value: float) -> str:
    size = abs(value)
    if size >= 1e4:
        return f"{value / 1e3:.{0 if size >= 1e5 else 1}f}k"
    return f"{value:.{0 if size >= 100 or float(value).is_integer() else 1 if size >= 10 else 2}f}"
