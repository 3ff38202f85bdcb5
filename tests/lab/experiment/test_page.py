"""The pages of comparisons on Spark, over runs that stand for real ones; the simulated one is in tests/report."""

from collections.abc import Sequence
from dataclasses import replace
from io import StringIO
from typing import Any

from rich.console import Console

from rheostat.cli.display.tables import comparison_table, conditions
from rheostat.control.controller import Step
from rheostat.engine.batches.progress import Batch, SourceProgress
from rheostat.engine.testbed.loads import Constant, Permutation
from rheostat.errors import PolicyError
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


def failed_steps(steps: Sequence[Step]) -> tuple[Step, ...]:
    return tuple(replace(step, policy_failure=PolicyError("ds2 failed: KeyError: 'rate'\nmore")) for step in steps)


def best_cells(page: str) -> int:
    return page.count('class="number best"')


def test_a_policy_that_fails_in_real_time_mode_is_a_failed_row_without_numbers() -> None:
    twin, ground = realtime_twin("wordcount"), RealTime()
    trial = Trial(twin, Constant(2.0), SECONDS, 5.0, ground.slo, start=equal_shares(twin))
    ways = ("ds2", "dhalion", "conttune")
    trials = [replace(trial, way=way) for way in ways]
    predicted = Simulated().run(trials, lambda _: None)
    never = Run(trials[2], "spark-realtime", 0.0, policy_error=PolicyError("conttune could not learn: KeyError: 1"))
    measured = [
        Run(t, "spark-realtime", float(SECONDS), steps=run.steps) for t, run in zip(trials, predicted, strict=False)
    ][:2]
    measured[0] = replace(measured[0], steps=failed_steps(measured[0].steps))
    runs = (*predicted, *measured, never)
    comparison = Comparison(ground, trial, runs, ground.score(ways, runs))
    rows = {(row["policy"], row["engine"]): row for row in comparison.as_dicts()}
    assert rows["ds2", "simulated"]["policy_failures"] == 0
    assert rows["ds2", "spark-realtime"]["policy_failures"] == len(measured[0].steps)
    failed = "ds2 failed: KeyError: 'rate' (20 of 20 decisions, first in step 0)"
    assert rows["ds2", "spark-realtime"]["failed"] == failed
    assert rows["conttune", "spark-realtime"]["failed"].endswith("KeyError: 1 (before the first step)")
    assert list(comparison.failures) == ["ds2", "conttune"]
    assert [row.policy for row in comparison.rivals] == ["dhalion"]
    assert "ds2 failed: KeyError" in comparison_page(comparison)
    assert printed(comparison).count("failed") == 2


def test_failed_ways_on_micro_batches_are_never_the_best() -> None:
    source = SourceProgress("", None, 10, 10, 0, {})
    batch = Batch("trial", "r", 0, 12.0, 4.0, 4.0, 0, (source,), {}, 0, 0)
    trial = Trial(MicroBatchJob("ysb", "ysb", (1, 4), slot_per_s=5.0, level_per_s=10.0), Constant(1.0), 20)
    first, ended, never, *fine = (
        Run(replace(trial, way=way), "spark", 20.0, batches=(batch,), sizes=((0.0, size),))
        for way, size in (("hpa", 1), ("ds2", 1), ("auto", 1), ("static-minimum", 2), ("static-maximum", 4))
    )
    twin = realtime_twin("wordcount")
    [step] = Simulated().run([Trial(twin, Constant(1.0), 60, way="ds2")], lambda _: None)[0].steps
    first = replace(first, steps=failed_steps([step]))
    ended = replace(ended, failed="[STREAM_FAILED] no broker")
    never = replace(never, end_s=0.0, batches=(), policy_error=PolicyError("auto could not learn: KeyError: 1"))
    runs = (first, ended, never, *fine)
    comparison = Comparison(MicroBatches(), trial, runs, MicroBatches().score([run.policy for run in runs], runs))
    assert [row["policy_failures"] for row in comparison.as_dicts()] == [1, 0, 1, 0, 0]
    assert [row.policy for row in comparison.rivals] == ["static-minimum", "static-maximum"]
    assert comparison.failures["ds2"] == "[STREAM_FAILED] no broker"
    page = comparison_page(comparison)
    for text in ("ds2 failed: KeyError", "[STREAM_FAILED] no broker", "auto could not learn"):
        assert text in page
    assert best_cells(page) > 0
    assert printed(comparison).count("failed") == 3
