"""`rheostat report`: a journal as an HTML page; a dry run's score, and its page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rheostat.cli import options
from rheostat.cli.replay import JobInJournal, JournalArgument

if TYPE_CHECKING:
    from rheostat.control.shadow import ShadowScore

PAGE = "report.html"


def report(
    journal: JournalArgument,
    job: JobInJournal = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.html", help="File of the page; - is stdout. Without it report.html; with --shadow, no page."
        ),
    ] = None,
    shadow: Annotated[bool, typer.Option("--shadow", help="Score a dry run against what really ran.")] = False,
    json_file: options.JsonFile = None,
) -> None:
    """Write an HTML page about a journaled job, or score its dry run."""
    from rheostat.cli.display.output import STDOUT, check_writable, write_text
    from rheostat.cli.journals import journaled_jobs, old_journal
    from rheostat.errors import InvalidValue
    from rheostat.report.journal_page import journal_page
    from rheostat.report.shadow_page import shadow_page

    if json_file is not None and not shadow:
        raise InvalidValue("--json is of --shadow: the page has no JSON")
    out = out if shadow else out or PAGE
    check_writable(json=json_file, out=out)
    opened = old_journal(journal)
    try:
        names = journaled_jobs(opened, job)
        if len(names) > 1:
            raise InvalidValue(f"the journal has several jobs: choose one with --job ({', '.join(names)})")
        [name] = names
        if shadow:
            from rheostat.control.shadow import trace_shadow

            entries = opened.read(name, kinds=("run", "observation", "decision"), skip=lambda *_: None)
            score, series = trace_shadow(entry.record for entry in entries)
        else:
            page = journal_page(opened, name)
    finally:
        opened.close()
    if shadow:
        show_score(name, score, json_file, out)
        page = shadow_page(name, score, series) if out is not None else ""
    if out is not None:
        write_text(out, page)
    if out not in (None, STDOUT):
        typer.echo(f"wrote {out}", err=json_file == STDOUT)


def show_score(job: str, score: ShadowScore, json_file: str | None, out_file: str | None = None) -> None:
    """Print a dry run's score as a table, and what it rests on."""
    from dataclasses import asdict

    from rich.table import Table

    from rheostat.cli.display.output import STDOUT, console, write_json
    from rheostat.report.shadow_page import HEADS, certainty, score_rows

    out = console(STDOUT if STDOUT in (json_file, out_file) else None)
    table = Table(title=f"{job}: a dry run of {score.seconds / 3600:.2f} h", title_justify="left", header_style="bold")
    for heading in HEADS:
        table.add_column(heading, justify="right" if heading else "left")
    for row in score_rows(score):
        table.add_row(*row)
    out.print(table)
    for line in certainty(score):
        out.print(line, markup=False, soft_wrap=True)
    if json_file is not None:
        avoided = score.avoided_s
        more = {"saved_unit_h": score.saved_unit_h, "avoided_s": None if avoided is None else asdict(avoided)}
        write_json(json_file, {"job": job, **asdict(score), **more})
