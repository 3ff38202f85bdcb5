"""`rheostat compare --engine spark-realtime`: policies for tasks per stage, on a real Spark and a real broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from rheostat.lab.experiment.realtime_compare import RealTimeScore

COLUMNS = {
    "reconfigurations": ("chan-\nges", "d"),
    "reconfigurations_per_tuning": ("per\nlevel", ".2f"),
    "slot_seconds": ("slot-\ns", ",.0f"),
    "downtime_s": ("down\ns", ".1f"),
    "latency_p50_s": ("p50\ns", ",.2f"),
    "latency_p99_s": ("p99\ns", ",.1f"),
    "backlog_max": ("backlog\nmax", ",.0f"),
    "keys_wrong": ("keys\nwrong", "d"),
    "repeated": ("results\ntwice", "d"),
}
"""Field of a row -> heading and format."""


def compare_realtime(
    job: str,
    policies: str | None,
    load: str | None,
    seconds: str | None,
    interval_s: str | None,
    promises: Mapping[str, str | None],
    json_file: str | None,
    html_file: str | None,
) -> None:
    """Predict with the simulator, run on Spark, and print both lines of every policy."""
    from rheostat.cli.compared import page_of, promised, telling
    from rheostat.cli.display.output import console, write_json, write_text
    from rheostat.config.reader import scalar
    from rheostat.errors import EngineError
    from rheostat.job.frozen import check_number, check_whole
    from rheostat.lab.experiment.described import read_load

    try:
        from rheostat.lab.experiment import realtime_compare as bench
    except ImportError as error:
        raise EngineError(f"{error}: needs pip install 'rheostat[spark,kafka]'") from error
    jobs, texts = job.split(","), policies.split(",") if policies else list(bench.WAYS)
    shape = None if load is None else read_load(load)
    slo = promised(bench.SLO, promises)
    length = None if seconds is None else scalar(seconds)
    if length is not None:
        check_whole("--duration", length, least=30)
    every_s = scalar(interval_s or "5")
    check_number("--interval", every_s, least=1.0)
    for name in jobs:
        bench.realtime_job(name)
    out = console(json_file)
    found = []
    for name in jobs:
        with telling(out, name) as tell:
            done = bench.compare_realtime(name, texts, tell, load=shape, seconds=length, slo=slo, interval_s=every_s)
        out.print(table(name, done.rows))
        found += [{"job": name, **row.as_dict()} for row in done.rows]
        if html_file is not None:
            from rheostat.lab.experiment.realtime_page import realtime_page

            write_text(page_of(html_file, name, jobs), realtime_page(done))
    if json_file is not None:
        write_json(json_file, found)


def table(job: str, rows: Sequence[RealTimeScore]) -> Table:
    """Return two lines per policy: as predicted, and as it was."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    from rheostat.lab.experiment.realtime_compare import side_by_side

    shown = Table(
        title=f"{job} in real-time mode: measured on Spark, predicted by the simulator",
        title_justify="left",
        header_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    shown.add_column("policy", overflow="fold", min_width=12)
    for heading, _ in COLUMNS.values():
        shown.add_column(heading, justify="right")
    for row in side_by_side(rows):
        cells = [f"{getattr(row, field):{form}}" for field, (_, form) in COLUMNS.items()]
        shown.add_row("  predicted" if row.engine == "simulated" else escape(row.policy), *cells)
    return shown
