"""`rheostat compare --engine spark`: the same load on a real Spark, sized in several ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from rheostat.lab.experiment.spark_score import Score

COLUMNS = {
    "slot_seconds": ("executor\nseconds", ",.0f"),
    "slot_seconds_over_maximum": ("/ max", ".2f"),
    "slo_seconds_over": ("s over\nSLO", ",.0f"),
    "latency_p95_s": ("latency\np95 s", ",.1f"),
    "latency_p99_s": ("latency\np99 s", ",.1f"),
    "reconfigurations": ("chan-\nges", "d"),
    "rows_lost": ("rows\nlost", "d"),
    "rows_repeated": ("rows\ntwice", "d"),
}
"""Field of a row -> heading and format; less is better in every column."""


def compare_spark(
    job: str,
    policies: str | None,
    load: str | None,
    seconds: str | None,
    interval_s: str | None,
    promises: Mapping[str, str | None],
    json_file: str | None,
    html_file: str | None,
) -> None:
    """Run the ways one after the other and print a line for each."""
    from rheostat.cli.compared import page_of, promised, telling
    from rheostat.cli.display.output import console, write_json, write_text
    from rheostat.config.reader import scalar
    from rheostat.errors import EngineError
    from rheostat.job.frozen import check_number, check_whole
    from rheostat.lab.experiment.described import read_load

    try:
        from rheostat.lab.experiment.spark_compare import SECONDS, SLO, check_way, compare_on_spark, spark_job, ways
    except ImportError as error:
        raise EngineError(f"{error}: Spark is not installed; pip install 'rheostat[spark]'") from error
    jobs = job.split(",")
    asked = {name: policies.split(",") if policies else ways(spark_job(name)) for name in jobs}
    shape = None if load is None else read_load(load)
    slo = promised(SLO, promises)
    length, every_s = scalar(seconds or str(SECONDS)), scalar(interval_s or "5")
    check_whole("--duration", length, least=30)
    check_number("--interval", every_s, least=1.0)
    for each in asked.values():
        for text in each:
            check_way(text)
    out = console(json_file)
    found = []
    for name, texts in asked.items():
        with telling(out, name) as tell:
            comparison = compare_on_spark(name, texts, tell, load=shape, seconds=length, slo=slo, interval_s=every_s)
        out.print(table(name, comparison.rows))
        for note in comparison.notes:
            out.print(note, style="dim", markup=False, soft_wrap=True)
        found += [{"job": name, **row.as_dict()} for row in comparison.rows]
        if html_file is not None:
            from rheostat.lab.experiment.spark_page import spark_page

            write_text(page_of(html_file, name, jobs), spark_page(comparison))
    if json_file is not None:
        write_json(json_file, found)


def table(job: str, rows: Sequence[Score]) -> Table:
    """Return a line per way, with the best value of every column set off."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    shown = Table(
        title=f"{job} on Spark", title_justify="left", header_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0)
    )
    shown.add_column("way", overflow="fold", min_width=16)
    for heading, _ in COLUMNS.values():
        shown.add_column(heading, justify="right")
    best = {field: min(getattr(row, field) for row in rows) for field in COLUMNS}
    for row in rows:
        cells = []
        for field, (_, form) in COLUMNS.items():
            text = f"{getattr(row, field):{form}}"
            cells.append(f"[bold green]{text}[/]" if text == f"{best[field]:{form}}" else text)
        failed = f"\n[red]{escape(row.failed)}[/]" if row.failed else ""
        shown.add_row(escape(row.policy) + failed, *cells)
    return shown
