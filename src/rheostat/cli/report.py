"""`rheostat report`: a journal as an HTML page."""

from __future__ import annotations

from typing import Annotated

import typer

from rheostat.cli.replay import JobInJournal, JournalArgument


def report(
    journal: JournalArgument,
    job: JobInJournal = None,
    out: Annotated[str, typer.Option(metavar="FILE.html", help="File of the page; - is stdout.")] = "report.html",
) -> None:
    """Write an HTML page about a journaled job."""
    from rheostat.cli.display.output import STDOUT, check_writable, write_text
    from rheostat.cli.journals import journaled_jobs, old_journal
    from rheostat.errors import InvalidValue
    from rheostat.report.journal_page import journal_page

    check_writable(out=out)
    opened = old_journal(journal)
    try:
        names = journaled_jobs(opened, job)
        if len(names) > 1:
            raise InvalidValue(f"the journal has several jobs: choose one with --job ({', '.join(names)})")
        page = journal_page(opened, names[0])
    finally:
        opened.close()
    write_text(out, page)
    if out != STDOUT:
        typer.echo(f"wrote {out}")
