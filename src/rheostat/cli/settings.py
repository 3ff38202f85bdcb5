"""`rheostat settings`: the Spark settings with which an application has to start so that `autoscale` can resize it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from rheostat.cli import options

if TYPE_CHECKING:
    from rheostat.engine.spark.session.settings import ConfLine

COMMENT_COLUMNS = 100


def settings(
    master: options.Master = None,
    min_executors: Annotated[str, typer.Option(metavar="N", help="Fewest executors.")] = "1",
    max_executors: Annotated[
        str | None, typer.Option(metavar="N", help="Most executors (default: 4, or what --master has room for).")
    ] = None,
    cores: Annotated[str | None, typer.Option(metavar="N", help="Cores of one executor (default: 1).")] = None,
    json_file: options.JsonFile = None,
) -> None:
    """Print the --conf lines for an application that autoscale attaches to.

    They are ready to be pasted into spark-submit. rheostat.session sets them by itself.
    """
    from dataclasses import asdict

    from rheostat.cli.display.output import check_writable, write_json
    from rheostat.engine.spark.session.settings import EMBEDDED_NAME, MEMORY_MB, attach_settings

    check_writable(json=json_file)
    least = options.whole("--min-executors", min_executors, 1)
    most = None if max_executors is None else options.whole("--max-executors", max_executors, 1)
    slots = None if cores is None else options.whole("--cores", cores, 1)
    url = master or EMBEDDED_NAME
    if url == EMBEDDED_NAME:
        url = f"{EMBEDDED_NAME}[{most or max(4, least)},{slots or 1},{MEMORY_MB}]"
    lines = attach_settings(url, min_executors=least, max_executors=most, cores=slots)
    typer.echo("\n".join(_page(url, lines)), err=json_file == "-")
    if json_file is not None:
        write_json(json_file, [asdict(line) for line in lines])


def _page(master: str, lines: Iterable[ConfLine]) -> Iterator[str]:
    """Yield the reasons as comments, then the command; a comment between two lines of a command would end it."""
    import shlex

    from rheostat.engine.spark.session.settings import submit_lines

    lines = list(lines)
    yield "# Needed: autoscale refuses an application without these."
    yield from _reasons(line for line in lines if line.needed)
    yield "# Recommended: autoscale works without these."
    yield from _reasons(line for line in lines if not line.needed)
    yield f"spark-submit --master {shlex.quote(master)} \\"
    yield f"{submit_lines(lines)} \\"
    yield "JOB.py"


def _reasons(lines: Iterable[ConfLine]) -> Iterator[str]:
    from textwrap import wrap

    for line in lines:
        yield f"#   {line.key}"
        yield from wrap(line.why, COMMENT_COLUMNS, initial_indent="#     ", subsequent_indent="#     ")
