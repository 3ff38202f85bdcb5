"""`rheostat report`: a journal as an HTML page, or a dry run's score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rheostat.cli import options
from rheostat.cli.replay import JobInJournal, JournalArgument

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rheostat.control.shadow import ShadowScore
    from rheostat.job.decision import Interval


def report(
    journal: JournalArgument,
    job: JobInJournal = None,
    out: Annotated[str, typer.Option(metavar="FILE.html", help="File of the page; - is stdout.")] = "report.html",
    shadow: Annotated[
        bool, typer.Option("--shadow", help="Instead of a page, score a dry run against what really ran.")
    ] = False,
    json_file: options.JsonFile = None,
) -> None:
    """Write an HTML page about a journaled job, or score its dry run."""
    from rheostat.cli.display.output import STDOUT, check_writable, write_text
    from rheostat.cli.journals import journaled_jobs, old_journal
    from rheostat.errors import InvalidValue
    from rheostat.report.journal_page import journal_page

    if json_file is not None and not shadow:
        raise InvalidValue("--json is of --shadow: the page has no JSON")
    check_writable(json=json_file, **({} if shadow else {"out": out}))
    opened = old_journal(journal)
    try:
        names = journaled_jobs(opened, job)
        if len(names) > 1:
            raise InvalidValue(f"the journal has several jobs: choose one with --job ({', '.join(names)})")
        if shadow:
            from rheostat.control.shadow import score_shadow

            entries = opened.read(names[0], kinds=("run", "observation", "decision"), skip=lambda *_: None)
            show_score(names[0], score_shadow(entry.record for entry in entries), json_file)
            return
        page = journal_page(opened, names[0])
    finally:
        opened.close()
    write_text(out, page)
    if out != STDOUT:
        typer.echo(f"wrote {out}")


def show_score(job: str, score: ShadowScore, json_file: str | None) -> None:
    """Print a dry run's score as a table, and what it rests on."""
    from dataclasses import asdict

    from rich.table import Table

    from rheostat.cli.display.output import console, write_json

    out = console(json_file)
    table = Table(title=f"{job}: a dry run of {score.seconds / 3600:.2f} h", title_justify="left", header_style="bold")
    for heading in ("", "really ran", "dry run", "difference"):
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


def score_rows(score: ShadowScore) -> Iterator[tuple[str, str, str, str]]:
    """Yield the rows of the table."""
    real_h, shadow_h = score.real_unit_s / 3600, score.shadow_unit_s / 3600
    share = f" ({score.saved_unit_h / real_h:+.0%})" if real_h else ""
    yield f"{score.unit}-hours", f"{real_h:.2f}", f"{shadow_h:.2f}", f"{score.saved_unit_h:.2f} saved{share}"
    if score.over_s is not None and score.shadow_over_s is not None and score.avoided_s is not None:
        yield "s over the SLO", f"{score.over_s:.0f}", _range(score.shadow_over_s), f"{_range(score.avoided_s)} avoided"
    else:
        yield "s over the SLO", "-", "-", "no limit on latency or lag was set or measured"
    yield "changes", "-", str(score.changes), ""


def certainty(score: ShadowScore) -> Iterator[str]:
    """Yield how sure the score is."""
    yield (
        f"How sure: {score.usable_share:.0%} of the windows could be decided from; true rates varied by "
        f"+-{score.rate_spread:.0%}; for {score.seen_share:.0%} of the time the dry run's size is one that really ran "
        "(elsewhere capacity is taken as proportional to slots)."
    )
    if score.over_s is not None and score.model_over_s is not None:
        yield (
            f"The same computation at the real size gives {score.model_over_s:.0f} s over the SLO; "
            f"{score.over_s:.0f} s were measured."
        )


def _range(value: Interval) -> str:
    text = f"{value.middle:.0f}"
    return text if value.low == value.high else f"{text} ({value.low:.0f} to {value.high:.0f})"
