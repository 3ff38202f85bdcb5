"""A window with what is seen now: the sources' own counts, and the tasks of a long batch."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from rheostat.engine.batches.arrivals import FRESH_S, ArrivalCount
from rheostat.engine.batches.live import Live, read_live
from rheostat.engine.batches.observation import JobView, job_reading, observe_queries
from rheostat.engine.batches.offsets import KafkaCounter
from rheostat.engine.batches.present import RunningBatch, RunningStage, Waiting
from rheostat.engine.batches.progress import Batch, SourceProgress
from rheostat.engine.batches.stage import Stage
from rheostat.engine.batches.window import QueryView
from rheostat.engine.batches.work import UsualBatch, Work, read_work
from rheostat.job.allocation import Allocation


def offset(records: float) -> dict[str, dict[str, int]]:
    return {"clicks": {"0": int(records)}}


def batch(number: int, start_s: float, seconds: float = 1.0, rows: int = 1000) -> Batch:
    """Batches of 1000 records, one after the other, that take everything."""
    end = offset((number + 1) * rows)
    source = SourceProgress("KafkaV2[Subscribe[clicks]]", offset(number * rows), end, end, rows, {})
    return Batch("query", "run", number, start_s, seconds, 0.9 * seconds, rows, (source,), {}, 0, 0)


def work_of(one: Batch) -> Stage:
    return Stage(one.number, one.run_id, one.number, 4, 0.8 * one.seconds, 2.0, 1.0, 0.0, one.rows, 0)


def view(batches: Sequence[Batch], now_s: float, changed_s: float = 0.0, *, active: bool = True) -> QueryView:
    stages = [work_of(one) for one in batches]
    counter = KafkaCounter()
    return QueryView(
        batches, stages, lambda *_: counter, now_s, 30.0, changed_s, 0.0, active, 2, lambda low_s, high_s: 2
    )


SECONDS = [batch(number, 100.0 + number) for number in range(10)]
"""A batch a second from 100 to 110 s."""


def counts(rate_per_s: float, from_s: float, until_s: float, start: float = 0.0) -> list[ArrivalCount]:
    return [
        ArrivalCount(from_s + 5.0 * step, start + 5.0 * step * rate_per_s)
        for step in range(int((until_s - from_s) / 5) + 1)
    ]


def test_load_backlog_and_lag_are_those_of_the_source_however_old_the_last_report_is() -> None:
    # The load falls from 1000 to 100 a second at 110 s; the batch that began then runs on.
    arrived = counts(1000.0, 95.0, 110.0, 0.0)[:-1] + counts(100.0, 110.0, 150.0, 10_000.0)
    part, problem = read_live(view(SECONDS, 150.0), Live(arrived, 10_000.0, 110.0))
    assert problem is None
    assert part.rate_per_s == pytest.approx(100.0)
    assert part.backlog == 4000.0
    assert part.lag_s == 40.0
    assert part.measured_s == 150.0


def test_files_bytes_and_versions_that_wait_are_read_with_their_source() -> None:
    parts = [read_live(view(SECONDS, 111.0), Live(waiting=one))[0] for one in (Waiting(2, 300, 1), None)]
    job = JobView(111.0, Allocation({"job": 2}), Allocation({"job": 2}))
    [table] = observe_queries(job, "job", 2, parts, None).sources
    assert (table.files_waiting, table.bytes_waiting, table.versions_waiting) == (2, 300, 1)
    [topic] = observe_queries(job, "job", 2, parts[1:], None).sources
    assert (topic.files_waiting, topic.bytes_waiting, topic.versions_waiting) == (None, None, None)


def test_without_an_answer_a_report_is_not_extended_beyond_the_window() -> None:
    part, problem = read_live(view(SECONDS, 120.0), Live())
    assert problem is None
    assert part.backlog == pytest.approx(11_000.0)  # 1000/s since the last trigger
    part, problem = read_live(view(SECONDS, 150.0), Live(counts(1000.0, 95.0, 150.0 - FRESH_S - 5.0), 10_000.0, 110.0))
    assert part.backlog is None
    assert part.measured_s == 109.0


def test_what_the_running_batch_has_done_is_no_backlog_where_the_source_is_not_asked_either() -> None:
    work = Work(3000.0, 30.0, 8, 110.0, 120.0, 3000.0, 20.0, settled=False)
    part, _ = read_live(view(SECONDS, 120.0), Live(batch_s=110.0, work=work))
    assert part.backlog == pytest.approx(11_000.0 - 3000.0)


def test_a_long_batch_counts_with_the_tasks_that_it_has_finished() -> None:
    stage = RunningStage(10, 8, 4, 2, 40.0, 4000, 20.0, 111.0)
    running = RunningBatch("run", 10, 150.0, 110.0, (offset(10_000),), (offset(18_000),), (stage,))
    work = read_work(running, 8000.0, [UsualBatch((2.0,))] * 5)
    assert work is not None
    live = Live(counts(200.0, 110.0, 150.0, 10_000.0), 10_000.0, 110.0, work)
    part, problem = read_live(view(SECONDS, 150.0), live)
    assert problem is None
    # The last batch of 1000 records in 2 s, and 60 of the 80 s for the 8000 of this one.
    assert (part.records, part.busy_s, part.end_s) == (7000.0, 62.0, 150.0)
    assert part.backlog == pytest.approx(8000.0 - 6000.0)
    assert part.latency is not None
    assert part.latency.p99_s == 40.0


def test_the_first_batch_of_a_size_is_read_while_it_runs() -> None:
    work = Work(3000.0, 30.0, 8, 112.0, 120.0, 2000.0, 20.0, settled=True)
    live = Live(counts(6000.0, 100.0, 120.0), 10_000.0, 111.0, work, work)
    part, problem = read_live(view(SECONDS, 120.0, changed_s=111.5), live)
    assert problem is None
    assert part.settled
    assert (part.start_s, part.end_s, part.batches) == (112.0, 120.0, 0)
    assert part.records / part.busy_s == 100.0
    assert part.rate_per_s == 6000.0
    assert part.overloaded  # 250 of the 6000 records per second are done
    reading = job_reading("job", [part], 2, part.end_s - part.start_s)
    assert reading.true_rate_per_s == 100.0


def test_after_the_first_batch_of_a_size_its_last_reading_counts_until_the_next_one_shows_something() -> None:
    settled = Work(3000.0, 30.0, 8, 112.0, 118.0, 2000.0, 20.0, settled=True)
    unsettled = Work(10.0, 30.0, 8, 119.0, 123.0, 0.0, 4.0, settled=False)
    live = Live(counts(6000.0, 100.0, 123.0), 18_000.0, 119.0, unsettled, settled)
    part, problem = read_live(view(SECONDS, 123.0, changed_s=111.5), live)
    assert problem is None
    assert (part.start_s, part.end_s, part.records, part.busy_s) == (112.0, 118.0, 2000.0, 20.0)
    assert part.backlog == 120_000.0 - 18_000.0 - 10.0  # of now, by the batch that runs now


def test_a_reading_of_another_size_does_not_count() -> None:
    settled = Work(3000.0, 30.0, 8, 112.0, 118.0, 2000.0, 20.0, settled=True)
    live = Live(counts(6000.0, 100.0, 123.0), 18_000.0, 119.0, None, settled)
    part, problem = read_live(view(SECONDS, 123.0, changed_s=120.0), live)
    assert problem is None
    assert (part.settled, part.former_slots) == (False, 2)


def test_an_answer_that_comes_while_the_window_is_read_counts() -> None:
    live = Live([*counts(1000.0, 95.0, 110.0), ArrivalCount(112.02, 17_020.0)], 10_000.0)
    part, _ = read_live(view(SECONDS, 112.0, active=False), live)
    assert part.backlog == 7020.0
    assert part.measured_s == 112.0


def test_while_no_task_of_the_new_size_has_ended_the_window_shows_the_load() -> None:
    work = Work(3000.0, 30.0, 8, 112.0, 120.0, 0.0, 4.0, settled=False)
    live = Live(counts(6000.0, 100.0, 120.0), 10_000.0, 111.0, work)
    part, problem = read_live(view(SECONDS, 120.0, changed_s=111.5), live)
    assert problem is None
    assert (part.settled, part.former_slots) == (False, 2)
    assert not part.settled
    assert part.rate_per_s == 6000.0
    assert part.backlog == 120_000.0 - 10_000.0 - 3000.0


def test_a_query_without_a_finished_batch_shows_what_waits() -> None:
    part, problem = read_live(view([], 120.0), Live(counts(100.0, 100.0, 120.0), 0.0))
    assert problem == "no batch has finished in this window"
    assert (part.rate_per_s, part.backlog, part.lag_s) == (100.0, 2000.0, 20.0)


def test_sources_that_do_not_answer_are_the_reason_where_nothing_else_is_known() -> None:
    silent = "the Kafka broker at b:9092 has not answered for 12 s"
    _, problem = read_live(view([], 120.0), Live(problem=silent))
    assert problem == silent
    _, problem = read_live(view(SECONDS, 112.0), Live(problem=silent))
    assert problem is None


def test_right_after_a_change_a_window_has_the_load_of_now_and_the_rates_of_the_former_size() -> None:
    live = Live(counts(1000.0, 95.0, 110.0), 10_000.0, 110.0)
    part, problem = read_live(view(SECONDS, 111.0, changed_s=110.5), live)
    assert problem is None
    assert (part.settled, part.former_slots, part.rate_per_s) == (False, 2, 1000.0)
    assert part.records / part.busy_s == 500.0  # of a slot, per busy second
    part, problem = read_live(view(SECONDS, 111.0, changed_s=110.5), replace(live, problem="the broker is down"))
    assert problem is None  # it has answered a second ago
    _, problem = read_live(view(SECONDS, 135.0, changed_s=134.0), Live(problem="the broker is down"))
    assert problem == "the broker is down"
