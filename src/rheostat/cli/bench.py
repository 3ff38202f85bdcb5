"""`rheostat bench`: speed and fidelity against their goals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rheostat.cli import options

if TYPE_CHECKING:
    from rich.table import Table

    from rheostat.lab.bench.measure import Measure


def bench(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of a bench, or all (without matrix and soak).")],
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer repeats, smaller sizes: at most about five minutes.")
    ] = False,
    only: Annotated[str | None, typer.Option(metavar="PART,...", help="Only these parts of the bench.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="chaos: number of storms.")] = None,
    days: Annotated[float | None, typer.Option(min=0.01, help="chaos: simulated days per storm.")] = None,
    minutes: Annotated[float | None, typer.Option(min=1, help="soak: minutes per part.")] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="chaos: only this storm. soak: seed of faults and sizes.")
    ] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="freeze: rounds per part and mode.")] = None,
    json_file: options.JsonFile = None,
    verbose: options.Verbose = False,
) -> None:
    """Measure speed and fidelity, each beside its goal."""
    from rheostat.cli.display import logs
    from rheostat.cli.display.live import status
    from rheostat.cli.display.output import check_writable, console, write_json
    from rheostat.errors import InvalidValue, nearest
    from rheostat.lab.bench.registry import ALONE, BENCHES, check_sizes, omissions, run_bench, select_parts

    logs.configure(verbose)
    check_writable(json=json_file)
    if name != "all" and name not in BENCHES:
        raise InvalidValue(f"unknown bench {name!r}, {nearest(name, [*BENCHES, 'all'])}")
    if name == "all" and only is not None:
        raise InvalidValue(f"--only {only} names parts of one bench: give the name of that bench instead of all")
    parts = [] if only is None else only.split(",")
    names = [each for each in BENCHES if each not in ALONE] if name == "all" else [name]
    for each in names:
        select_parts(each, quick, parts)
    given = {"seeds": seeds, "days": days, "minutes": minutes, "seed": seed, "rounds": rounds}
    sizes = {option: size for option, size in given.items() if size is not None}
    if name == "all" and sizes:
        raise InvalidValue(f"--{next(iter(sizes))} is an option of one bench: give its name instead of all")
    check_sizes(names[0], sizes)
    out = console(json_file)
    measures: list[Measure] = []
    for each in names:
        with status(out, each) as progress:
            measures += run_bench(each, quick, progress, parts, sizes)
    for each in dict.fromkeys(measure.bench for measure in measures):
        out.print(_table(each, [measure for measure in measures if measure.bench == each]))
    for each in names:
        for line in omissions(each, quick, parts):
            out.print(line, style="dim", markup=False, soft_wrap=True)
    if json_file is not None:
        write_json(json_file, [measure.as_dict() for measure in measures])


def _table(title: str, measures: list[Measure]) -> Table:
    from rich.markup import escape

    from rheostat.cli.display.tables import plain_table

    table = plain_table(title)
    for heading in ("measure", "value", "goal", ""):
        table.add_column(heading, justify="right" if heading == "value" else "left", no_wrap=True)
    table.add_column("note", style="dim")
    words = {True: "[green]met[/]", False: "[red]missed[/]", None: ""}
    for m in measures:
        value = f"{m.value:,.0f}" if m.value >= 1e4 else f"{m.value:.4g}"
        table.add_row(m.measure, f"{value} {escape(m.unit)}".rstrip(), escape(m.goal), words[m.met], escape(m.note))
    return table
