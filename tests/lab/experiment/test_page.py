"""The pages of comparisons on Spark, over runs that stand for real ones; the simulated one is in tests/report."""

from dataclasses import replace
from io import StringIO
from typing import Any

from rich.console import Console

from rheostat.cli.display.tables import comparison_table, conditions
from rheostat.engine.batches.progress import Batch, SourceProgress
from rheostat.engine.testbed.loads import Constant, Permutation
from rheostat.lab.experiment.comparison import Comparison
from rheostat.lab.experiment.microbatch import MicroBatches
from rheostat.lab.experiment.microbatch_job import MicroBatchJob
from rheostat.lab.experiment.page import comparison_page
from rheostat.lab.experiment.realtime import RealTime, equal_shares, realtime_twin
from rheostat.lab.experiment.run import Run
from rheostat.lab.experiment.simulated import Simulated
from rheostat.lab.experiment.trial import Trial

SECONDS = 100


def printed(comparison: Comparison[Any]) -> str:
    out = Console(width=100, record=True, file=StringIO())
    out.print(comparison_table(comparison))
    return out.export_text() + conditions(comparison, [0])


def test_predicted_and_measured_stand_side_by_side_and_every_stage_has_its_panel() -> None:
    twin, ground = realtime_twin("wordcount"), RealTime()
    load = Permutation(repeats=1, hold_s=10.0)
    trial = Trial(twin, load, SECONDS, 5.0, ground.slo, start=equal_shares(twin), way="ds2")
    predicted = Simulated().run([trial], lambda _: None)
    real = Run(
        trial, "spark-realtime", float(SECONDS), steps=predicted[0].steps, silences_s=(1.5,), records=1000, wrong=7
    )
    runs = (*predicted, real)
    comparison = Comparison(ground, trial, runs, ground.score(["ds2"], runs))
    assert [row["engine"] for row in comparison.as_dicts()] == ["simulated", "spark-realtime"]
    assert [row.tunings for row in comparison.rows] == [10, 10]
    page = comparison_page(comparison)
    assert "wordcount in real-time mode: ds2" in page
    assert "predicted" in page
    for panel in ("Tasks of split", "Tasks of count", "Backlog, records", "Latency as the job reports it"):
        assert panel in page
    assert ">7<" in page  # keys wrong
    lines = printed(comparison)
    assert "  predicted" in lines
    assert "at the start: split=11 count=11" in lines


def test_ways_on_micro_batches_stand_side_by_side() -> None:
    source = SourceProgress("", None, 10, 10, 0, {})
    batch = Batch("trial", "r", 0, 12.0, 4.0, 4.0, 0, (source,), {}, 0, 0)
    trial = Trial(MicroBatchJob("ysb", "ysb", (1, 4), slot_per_s=5.0, level_per_s=10.0), Constant(1.0), 20)
    ways = ("static-minimum", "ds2")
    runs = tuple(
        Run(replace(trial, way=way), "spark", 20.0, batches=(batch,), sizes=((0.0, 1 + k),), checked=5, wrong=3 * k)
        for k, way in enumerate(ways)
    )
    comparison = Comparison(MicroBatches(), trial, runs, MicroBatches().score(ways, runs))
    assert [row["rows_lost"] for row in comparison.as_dicts()] == [0, 3]
    page = comparison_page(comparison)
    assert "ysb on Spark: static-minimum, ds2" in page
    for panel in ("Load, records/s", "Executors", "Backlog, records without a result", "Latency of the second"):
        assert panel in page
    assert "static-minimum" in printed(comparison)
    assert "oracle" not in page.partition("<script")[0]
