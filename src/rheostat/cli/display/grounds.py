"""The grounds of `rheostat reproduce` as text: the cost over the oracle's, and where ours is better or worse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from rheostat.lab.papers.grounds.rows import GroundRow, Standing
    from rheostat.lab.papers.result import Result


def show_grounds(result: Result, out: Console, notes: bool = True) -> None:
    """Print a table of all policies and grounds, and how each policy of ours compares; nothing for another suite."""
    from rheostat.lab.papers.grounds.rows import ground_rows, standings

    rows, compared = list(ground_rows(result)), list(standings(result))
    if not rows:
        return
    out.print("\n[bold]Cost over the oracle by ground[/]")
    for note in result.notes if notes else ():
        out.print(f"- {note}", style="dim", markup=False)
    out.print(_table(rows))
    for ours in dict.fromkeys(standing.ours for standing in compared):
        out.print(
            f"\n[bold]{ours} against the others[/] [dim](its cost over theirs, by seed, with the 95 % interval)[/]"
        )
        for ground in dict.fromkeys(standing.ground for standing in compared):
            own = [standing for standing in compared if (standing.ours, standing.ground) == (ours, ground)]
            out.print(f"{ground}: {_sentence(own)}", markup=False)


def _table(rows: Sequence[GroundRow]) -> Table:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(header_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("ground, policy", no_wrap=True)
    for head in ("cost /\noracle", "95 %", "changes\nper day", "min over\nSLO", "windows\nshort"):
        table.add_column(head, justify="right", no_wrap=True)
    last = ""
    for row in rows:
        if row.ground != last:
            table.add_section()
            table.add_row(f"[bold]{escape(row.ground)}[/]")
        between = "" if row.low is None or row.high is None else f"{row.low:.2f} to {row.high:.2f}"
        numbers = (f"{row.changes_per_day:.1f}", f"{row.over_min:.1f}", f"{row.windows_short:.1f}")
        table.add_row(escape(row.policy), f"{row.cost_over_oracle:.2f}", between, *numbers)
        last = row.ground
    return table


def _sentence(standings: Sequence[Standing]) -> str:
    """Return whom one of our policies beats on a ground, and who beats it."""
    from rheostat.lab.papers.claim import UNKNOWN
    from rheostat.lab.papers.grounds.rows import BETTER, WORSE

    parts = []
    for verdict, words in ((BETTER, "better than"), (WORSE, "worse than"), (UNKNOWN, "cannot be told from")):
        if same := [standing for standing in standings if standing.verdict == verdict]:
            parts.append(f"{words} {', '.join(map(_number, same))}")
    return "; ".join(parts)


def _number(standing: Standing) -> str:
    between = "" if standing.low is None or standing.high is None else f", {standing.low:.2f} to {standing.high:.2f}"
    return f"{standing.policy} ({standing.ratio:.2f}{between})"
