"""`rheostat bench`: what DESIGN promises about speed and fidelity, measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rheostat.cli import options

if TYPE_CHECKING:
    from rich.table import Table

    from rheostat.lab.bench.measure import Measure


def bench(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A bench, or `all`.")],
    quick: Annotated[bool, typer.Option("--quick", help="Fewer repeats, smaller sizes.")] = False,
    json_file: options.JsonFile = None,
    verbose: options.Verbose = False,
) -> None:
    """Measure speed and fidelity, each beside its goal."""
    from rheostat.cli.display import logs
    from rheostat.cli.display.output import check_writable, console, write_json
    from rheostat.errors import InvalidValue, nearest
    from rheostat.lab.bench.registry import BENCHES

    logs.configure(verbose)
    check_writable(json=json_file)
    if name != "all" and name not in BENCHES:
        raise InvalidValue(f"unknown bench {name!r}, {nearest(name, [*BENCHES, 'all'])}")
    out = console(json_file)
    measures: list[Measure] = []
    for each in BENCHES if name == "all" else (name,):
        with out.status(each) as status:

            def tell(what: str, each: str = each) -> None:
                status.update(f"{each}: {what}")
                if not out.is_terminal:
                    out.print(f"{each}: {what}", style="dim", markup=False, soft_wrap=True)

            measures += BENCHES[each](quick, tell)
    for each in dict.fromkeys(measure.bench for measure in measures):
        out.print(_table(each, [measure for measure in measures if measure.bench == each]))
    if json_file is not None:
        write_json(json_file, [measure.as_dict() for measure in measures])


def _table(title: str, measures: list[Measure]) -> Table:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=title, title_justify="left", header_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("measure", "value", "goal", ""):
        table.add_column(heading, justify="right" if heading == "value" else "left", no_wrap=True)
    table.add_column("note", style="dim")
    words = {True: "[green]met[/]", False: "[red]missed[/]", None: ""}
    for m in measures:
        value = f"{m.value:,.0f}" if m.value >= 1e4 else f"{m.value:.4g}"
        table.add_row(m.measure, f"{value} {escape(m.unit)}".rstrip(), escape(m.goal), words[m.met], escape(m.note))
    return table
