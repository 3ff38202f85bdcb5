"""What a trial on Spark is worth, on trials made by hand."""

from dataclasses import replace

import numpy as np
import pytest

from rheostat.engine.batches.progress import Batch, SourceProgress
from rheostat.engine.testbed.loads import Constant, Steps
from rheostat.errors import InvalidValue
from rheostat.job.slo import SLO
from rheostat.lab.experiment.by_second import BatchRun, backlog, latencies, size_by_second, worked
from rheostat.lab.experiment.microbatch import MicroBatches, demo_load
from rheostat.lab.experiment.microbatch_job import STATIC_MAX, STATIC_MIN, MicroBatchJob, microbatch_job
from rheostat.lab.experiment.run import Run
from rheostat.lab.experiment.score import changes, executor_seconds, reaction_s, score_batches, weighted_quantiles
from rheostat.lab.experiment.trial import Trial

EPOCH_S = 1_000_000.0
SIZES = ((-1.0, 1), (4.0, 2), (6.0, 3), (16.5, 2))


def batch(number: int, first_s: int, last_s: int, start_s: float, end_s: float) -> Batch:
    source = SourceProgress("", first_s if number else None, last_s, last_s, 0, {})
    return Batch("trial", "r", number, EPOCH_S + start_s, end_s - start_s, end_s - start_s, 0, (source,), {}, 0, 0)


@pytest.fixture
def run() -> BatchRun:
    """Ten records/s for 20 s; seconds 0-3 have results at 6 s, 4-9 at 14 s, the rest has none."""
    job = MicroBatchJob("ysb", "ysb", (1, 4), slot_per_s=5.0, level_per_s=10.0)
    trial = Trial(job, Constant(1.0), 20, slo=SLO(max_latency_s=7.0), way="ds2")
    batches = (batch(0, 0, 4, 4.0, 6.0), batch(1, 4, 10, 10.0, 14.0))
    return Run(trial, "spark", 20.0, EPOCH_S, batches=batches, sizes=SIZES)


def test_executor_seconds_count_from_the_first_second_to_the_end() -> None:
    assert executor_seconds(SIZES, 20.0) == pytest.approx(4 * 1 + 2 * 2 + 10.5 * 3 + 3.5 * 2)
    assert executor_seconds(SIZES, 5.0) == pytest.approx(4 * 1 + 1 * 2)


def test_executors_that_come_together_are_one_change() -> None:
    assert changes(SIZES) == 2
    assert changes(((0, 1), (5.0, 2), (40.0, 3))) == 2
    assert changes(((0, 3), (5.0, 2), (6.0, 3))) == 2
    assert changes(((0, 3),)) == 0


def test_the_reaction_is_the_time_until_enough_executors_run() -> None:
    job = MicroBatchJob("ysb", "ysb", (1, 4), slot_per_s=5.0, level_per_s=5.0)

    def reaction(sizes: tuple[tuple[float, int], ...], job: MicroBatchJob = job) -> float | None:
        trial = Trial(job, Steps((1.0, 3.0, 1.0), 10), 30, slo=SLO(), way="ds2")
        return reaction_s(Run(trial, "spark", 30.0, EPOCH_S, batches=(batch(0, 0, 30, 29.0, 30.0),), sizes=sizes))

    assert reaction(((-1.0, 1), (12.0, 2), (14.5, 3), (25.0, 1))) == pytest.approx(4.5)
    assert reaction(((-1.0, 4),)) == 0.0
    assert reaction(((-1.0, 1), (12.0, 2))) is None
    assert reaction(((-1.0, 4), (9.0, 1))) is None
    assert reaction(((-1.0, 4),), replace(job, slot_per_s=None)) is None


def test_a_second_is_as_late_as_the_batch_that_holds_it(run: BatchRun) -> None:
    _, late_s, records = latencies(run)
    assert late_s[0] == pytest.approx(5.5)
    assert late_s[3] == pytest.approx(2.5)
    assert late_s[4] == pytest.approx(9.5)
    assert late_s[10] == pytest.approx(9.5)  # no result: as old as it is at the end
    assert (records == 10).all()


def test_backlog_falls_when_a_batch_ends(run: BatchRun) -> None:
    waiting = backlog(run)
    assert waiting[4] == 50
    assert waiting[5] == 60 - 40
    assert waiting[13] == 140 - 100
    assert waiting[19] == 100


def test_a_batch_without_tasks_works_evenly(run: BatchRun) -> None:
    assert worked(run)[[3, 4, 5, 9, 11, 13, 19]] == pytest.approx([0, 20, 40, 40, 70, 100, 100])


def test_records_are_worked_off_while_their_task_runs(run: BatchRun) -> None:
    tasks = ((1, EPOCH_S + 10.0, 2.0, 0.25), (1, EPOCH_S + 12.0, 1.0, 0.75))
    assert worked(replace(run, tasks=tasks))[[9, 10, 11, 12, 19]] == pytest.approx([40, 47.5, 55, 100, 100])


def test_sizes_are_those_of_the_middle_of_a_second(run: BatchRun) -> None:
    assert size_by_second(run)[[0, 3, 4, 6, 15, 16, 19]].tolist() == [1, 1, 2, 3, 3, 2, 2]


def test_the_score_adds_up(run: BatchRun) -> None:
    found = score_batches(run)
    # Over 7 s late: seconds 4 to 6 (9.5 to 7.5 s) and, of those without a result, 10 to 12.
    assert found.slo_seconds_over == 6
    assert found.slot_seconds_over_maximum == pytest.approx(found.slot_seconds / 80)
    assert found.slot_seconds_over_oracle == pytest.approx(found.slot_seconds / (2 * 20))
    assert found.reconfigurations == 2
    assert found.backlog_max == 100
    assert found.latency_p99_s == pytest.approx(9.5)


def test_quantiles_go_by_weight() -> None:
    values, weights = np.array([3.0, 1.0, 2.0]), np.array([1.0, 98.0, 1.0])
    assert weighted_quantiles(values, weights, (0.5, 0.985, 1.0)) == (1.0, 2.0, 3.0)
    assert weighted_quantiles(values, np.zeros(3), (0.5,)) == (0.0,)


def test_the_size_at_the_start_is_what_the_way_says() -> None:
    job = MicroBatchJob("ysb", "ysb", (1, 4))
    assert job.start_executors(STATIC_MAX) == 4
    assert job.start_executors(STATIC_MIN) == 1
    assert job.policy("ds2") == "ds2"
    assert MicroBatchJob("ysb", "ysb", resizes=((1.0, 2),)).policy("ds2") is None


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: MicroBatches().check("ysb", ["static-minium"]), "did you mean 'static-minimum'"),
        (lambda: MicroBatches().check("ysb", ["trigger-interval:interval=2"]), "interval"),
        (lambda: microbatch_job("ysb-gpu"), "did you mean 'ysb-cpu'"),
        (lambda: Trial(microbatch_job("ysb"), Constant(1.0), 0), "duration_s"),
        (lambda: MicroBatchJob("ysb", "ysb", (3, 2)), r"\(3, 2\)"),
    ],
)
def test_bad_input_is_named(call: object, says: str) -> None:
    with pytest.raises(InvalidValue, match=says):
        call()  # type: ignore[operator]


def test_the_demo_load_fills_the_run() -> None:
    load = demo_load(160)
    assert load.hold_s == 20
    assert load.peak(0.0, 160.0) == 10.0
