"""How far a running batch has come, by its tasks."""

from dataclasses import replace

import pytest

from rheostat.engine.batches.present import STALE_S, RunningBatch, RunningStage, UsualBatch, WorkReader, read_work

SCAN = RunningStage(7, tasks=8, finished=2, active=2, busy_s=20.0, records_in=2000, active_s=6.0, start_s=101.0)
BATCH = RunningBatch("run", 3, 113.0, 100.0, (None,), ({"t": {"0": 8000}},), (SCAN,))


def test_finished_tasks_tell_the_work_of_a_stage() -> None:
    work = read_work(BATCH, 8000.0, ())
    assert work is not None
    assert (work.busy_s, work.left_busy_s) == (26.0, 54.0)
    assert work.done == pytest.approx(8000 * 26 / 80)
    assert (work.start_s, work.records, work.tasks, work.settled) == (100.0, work.done, 8, True)
    assert work.records / work.busy_s == pytest.approx(100.0)  # of a slot, per busy second


def test_stages_that_come_later_are_those_of_the_batches_before() -> None:
    work = read_work(BATCH, 8000.0, [UsualBatch((10.0, 5.0)), UsualBatch((20.0, 10.0)), UsualBatch((1.0, 9.0))])
    assert work is not None
    assert work.left_busy_s == pytest.approx(80 * 1.5 - 26)
    done = replace(SCAN, finished=8, active=0, busy_s=80.0, active_s=0.0)
    both = replace(BATCH, stages=(done, RunningStage(8, 4, 0, 2, 0.0, 0, active_s=10.0)))
    work = read_work(both, 8000.0, [UsualBatch((10.0, 5.0))])  # the second stage has just begun
    assert work is not None
    assert work.left_busy_s == pytest.approx(30.0)
    assert work.done == 8000.0  # no record waits to be read
    table = replace(SCAN, number=9, finished=1, busy_s=10.0, active_s=0.0, reads_input=True)
    work = read_work(replace(both, stages=(done, table)), 8000.0, ())  # a second source, whose tasks have begun
    assert work is not None
    assert work.done == pytest.approx(8000 * 90 / 160)


def test_before_the_first_task_ends_the_rows_that_were_read_tell() -> None:
    reading = replace(BATCH, stages=(replace(SCAN, finished=0, busy_s=0.0, active_s=30.0),), rows_done=2000.0)
    work = read_work(reading, 8000.0, ())
    assert work is not None
    assert (work.busy_s, work.left_busy_s, work.done) == (30.0, 90.0, 2000.0)
    assert read_work(replace(reading, rows_done=None), 8000.0, ()) is None
    assert read_work(replace(reading, rows_done=0.0), 8000.0, ()) is None


USUAL = [UsualBatch((20.0, 5.0), 20_000.0), UsualBatch((5.0, 1.0)), UsualBatch((80.0,), 8000.0, 20.0)]
"""Batches before; the last one is of the same size, with 10 ms per record in two slots and some time between tasks."""


def test_before_the_first_report_the_time_per_record_of_a_batch_before_tells() -> None:
    young = replace(BATCH, at_s=104.0, stages=(replace(SCAN, finished=0, busy_s=0.0, active_s=6.0),))
    work = read_work(young, 8000.0, [replace(usual, wall_s=0.0) for usual in USUAL])
    assert work is not None
    assert work.done == pytest.approx(8000 * 6 / 80)
    assert not work.settled  # nothing of this batch has been measured
    late = replace(BATCH, stages=(replace(SCAN, finished=0, busy_s=0.0, active_s=60.0),))
    work = read_work(late, 8000.0, [replace(usual, wall_s=0.0) for usual in USUAL])
    assert work is not None
    assert work.done == pytest.approx(8000 * 2 / 8)  # no task has ended: at most the records of the two that run
    assert read_work(young, 8000.0, USUAL[1:2]) is None  # a source that reports no records


def test_the_store_is_a_moment_behind() -> None:
    """Two of eight tasks have finished and two run, 12 s after the first was launched; as usual it would be 60 %."""
    work = read_work(BATCH, 8000.0, USUAL)
    assert work is not None
    assert work.done == pytest.approx(8000 * (26 / 80 + STALE_S / 20.0))
    small = replace(BATCH, at_s=101.2, stages=(replace(SCAN, finished=0, busy_s=0.0, active_s=0.0, records_in=0),))
    work = read_work(small, 80.0, [UsualBatch((0.8,), 80.0, 0.4)])
    assert work is None  # no task has begun
    begun = replace(small, stages=(replace(small.stages[0], active_s=0.02),))
    work = read_work(begun, 80.0, [UsualBatch((0.8,), 80.0, 0.4)])
    assert work is not None
    assert work.done == pytest.approx(80 * 0.2 / 0.4)


def test_rows_bound_what_tasks_seem_to_have_done() -> None:
    """The running tasks wait on an executor that has just come: they have read nothing."""
    work = read_work(replace(BATCH, rows_done=2000.0, rows_read=2000.0, rows_age_s=1.2), 8000.0, ())
    assert work is not None
    assert work.done == pytest.approx(2000.0 * (1 + 1.2 / 12))
    work = read_work(replace(BATCH, rows_done=3500.0, rows_read=4000.0), 8000.0, ())
    assert work is not None
    assert work.done == 3500.0  # more than the tasks in the store show


def test_after_a_change_only_tasks_that_ended_since_then_tell() -> None:
    later = replace(BATCH, at_s=123.0, stages=(replace(SCAN, finished=2, active=4, active_s=16.0),))
    work = read_work(later, 8000.0, (), BATCH)
    assert work is not None
    assert not work.settled
    assert (work.start_s, work.busy_s) == (113.0, 10.0)
    later = replace(BATCH, at_s=123.0, stages=(replace(SCAN, finished=4, active=4, busy_s=36.0, active_s=8.0),))
    work = read_work(later, 8000.0, (), BATCH)
    assert work is not None
    assert work.settled
    assert work.busy_s == 18.0
    assert work.done == pytest.approx(8000 * 44 / 72)
    assert work.records == pytest.approx(8000 * 18 / 72)


def test_rows_that_running_tasks_report_after_a_change_settle_it_too() -> None:
    before = replace(BATCH, rows_done=2500.0)
    later = replace(before, at_s=123.0, stages=(replace(SCAN, active=4, active_s=16.0),), rows_done=2600.0)
    work = read_work(later, 8000.0, (), before, 113.0)
    assert work is not None
    assert work.settled


def test_a_change_between_two_readings_gets_its_share_of_what_was_done() -> None:
    reader = WorkReader()
    reader.read(BATCH, 8000.0, (), 0.0)
    later = replace(BATCH, at_s=118.0, stages=(replace(SCAN, finished=4, active=4, busy_s=36.0, active_s=8.0),))
    work = reader.read(later, 8000.0, (), 115.0)  # read 5 s before and 3 s after executors came
    assert work is not None
    assert (work.settled, work.start_s, work.at_s) == (True, 115.0, 118.0)
    assert work.busy_s == pytest.approx(18.0 * 3 / 5)
    assert work.records / work.busy_s == pytest.approx(8000 / 72)
    assert reader.settled == work
    # Right after a change the new executors have done nothing yet.
    work = WorkReader().read(later, 8000.0, (), 117.5)
    assert work is not None
    assert not work.settled


def test_a_batch_that_shows_nothing_has_no_work() -> None:
    assert read_work(replace(BATCH, stages=()), 8000.0, ()) is None
    assert read_work(replace(BATCH, start_s=None), 8000.0, ()) is None
    assert read_work(BATCH, 0.0, ()) is None


def test_a_batch_with_long_last_tasks_never_has_less_than_no_work_left() -> None:
    long = replace(BATCH, stages=(replace(SCAN, finished=7, active=1, busy_s=7.0, active_s=60.0),))
    work = read_work(long, 8000.0, ())
    assert work is not None
    assert (work.left_busy_s, work.done) == (0.0, 8000.0)


def test_a_batch_of_an_hour_is_read_as_any_other() -> None:
    stage = RunningStage(7, tasks=4000, finished=3000, active=4, busy_s=14_000.0, records_in=3_000_000, active_s=8.0)
    hour = RunningBatch("run", 3, 3700.0, 100.0, (None,), ({"t": {"0": 4_000_000}},), (stage,))
    work = read_work(hour, 4_000_000.0, ())
    assert work is not None
    assert work.done == pytest.approx(4_000_000 * 14_008 / 14_000 * 3 / 4)
    assert work.left_busy_s == pytest.approx(14_000 / 3 - 8)
