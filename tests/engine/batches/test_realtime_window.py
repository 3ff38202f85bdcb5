"""The window of a real-time query: rates, useful time, the late stage, the backlog."""

from dataclasses import replace
from typing import Any

import pytest

from rheostat.engine.batches.arrivals import FRESH_S, ArrivalCount
from rheostat.engine.batches.flow import Flow
from rheostat.engine.batches.lateness import Chain
from rheostat.engine.batches.probe import EVENT_LATENCY, LATENCY, NANOSECONDS, RECORDS, SAMPLED
from rheostat.engine.batches.progress import Batch
from rheostat.engine.batches.realtime_window import RealTimeBatch, RealTimeWindow, SourceNow, realtime_window
from rheostat.engine.batches.stage import Stage

CHAIN = Chain(("lines", "split", "count"), {"lines": 2, "split": 2, "count": 4}, 5.0)
RATE = 100.0
ARRIVED = [ArrivalCount(float(second), RATE * second) for second in range(0, 101, 5)]


def batch(number: int, start_s: float, seconds: float = 5.0, rows: int = 500, words: int = 3) -> Batch:
    """A batch in which `split` takes 10 ms per line and `count` 5 ms per word."""
    observed: dict[str, dict[str, Any]] = {
        # Every word carries the stamps of its line.
        "split": {RECORDS: rows * words, SAMPLED: rows * words, NANOSECONDS: int(rows * words * 10e6)},
        "count": {
            RECORDS: rows * words,
            SAMPLED: rows * words,
            NANOSECONDS: int(rows * words * 5e6),
            LATENCY: [50, 80, 1000 * (seconds - 4.9)],
            EVENT_LATENCY: [60, 90, 1000 * (seconds - 4.8)],
        },
    }
    flow = Flow((float(rows), float(rows), float(rows * words)), float(rows * words))
    return Batch("q", "run", number, start_s, seconds, seconds - 0.1, rows, (), observed, 10, 4096, flow)


def unprobed(number: int, start_s: float, seconds: float = 5.0, rows: int = 500) -> Batch:
    return replace(batch(number, start_s, seconds, rows), observed={})


def stages(number: int, start_s: float, ends_s: tuple[float, ...], cpu_s: float = 0.1) -> list[Stage]:
    return [
        Stage(3 * number + place, "run", number, 2, end_s, 0.0, cpu_s, 0.0, 0, 0, start_s=start_s)
        for place, end_s in enumerate(ends_s)
    ]


def read_window(
    batches: list[Batch],
    work: list[Stage],
    now_s: float,
    running: RealTimeBatch | None = None,
    done: float | None = None,
    arrived: list[ArrivalCount] | None = None,
    last_read_s: float | None = 80.0,
) -> RealTimeWindow | str:
    counts = [count for count in arrived or ARRIVED if count.at_s <= now_s]
    return realtime_window(CHAIN, batches, work, now_s - 20.0, now_s, counts, done, running, last_read_s)


def window(*args: object, **kwargs: object) -> RealTimeWindow:
    result = read_window(*args, **kwargs)  # type: ignore[arg-type]
    assert isinstance(result, RealTimeWindow), result
    return result


def test_true_rates_are_records_in_per_useful_second_of_one_task() -> None:
    result = window([batch(1, 80.0), batch(2, 85.0)], [], 91.0, RealTimeBatch(90.0, ()), 9000.0)
    lines, split, count = result.operators
    assert lines.records_in_per_s == pytest.approx(100.0)
    assert (split.records_in_per_s, count.records_in_per_s) == pytest.approx((100.0, 300.0))
    assert (split.true_rate_per_s, count.true_rate_per_s) == pytest.approx((100.0, 200.0))
    assert split.useful_share == pytest.approx(100 * 0.01 / 2)
    assert [(edge.upstream, edge.downstream) for edge in result.edges] == [("lines", "split"), ("split", "count")]
    assert [edge.records_per_s for edge in result.edges] == pytest.approx([100.0, 300.0])
    assert result.overloaded == ()
    assert result.source.rate_per_s == pytest.approx(RATE)
    assert result.latency is not None
    assert result.latency.p99_s == pytest.approx(0.1)
    assert result.latency.event_p99_s == pytest.approx(0.2)


def test_the_true_rate_of_a_cpu_bound_stage_comes_from_its_cpu_time() -> None:
    work = stages(1, 80.0, (5.0, 5.0, 5.0), cpu_s=20.0)
    _, split, _ = window([batch(1, 80.0)], work, 86.0).operators
    assert split.true_rate_per_s == pytest.approx(500 / 20.0)
    assert split.cpu_share == pytest.approx(1.0)  # 20 s of two tasks in 5 s, cut to 1


@pytest.mark.parametrize(
    ("ends_s", "late"),
    # Of several late stages, the one that needs most time per task: here `split`, with 0.5 s per second against 0.375.
    [((5.0, 9.0, 9.1), "split"), ((5.0, 5.1, 9.0), "count")],
)
def test_a_stage_that_ends_later_than_the_backlog_explains_is_overloaded(ends_s: tuple[float, ...], late: str) -> None:
    result = window([batch(1, 80.0, 9.1)], stages(1, 80.0, ends_s), 90.0, RealTimeBatch(89.1, ()), 8500.0)
    assert result.overloaded == (late,)
    assert result.operators[CHAIN.names.index(late)].blocking_share > 0.3  # type: ignore[operator]


def test_a_long_batch_after_a_backlog_is_catching_up() -> None:
    work = stages(1, 80.0, (5.0, 9.0, 9.1))
    assert (
        window(
            [batch(1, 80.0, 9.1, rows=1200)], work, 90.0, RealTimeBatch(89.1, ()), 9200.0, last_read_s=75.0
        ).overloaded
        == ()
    )
    # So may be the very first batch: the last read before it is unknown.
    assert window([batch(1, 80.0, 9.1)], work, 90.0, RealTimeBatch(89.1, ()), 8500.0, last_read_s=None).overloaded == ()


def test_an_overdue_batch_shows_overload_before_it_ends() -> None:
    running = RealTimeBatch(85.0, ("split", "count"))
    result = window([batch(1, 80.0)], [], 95.0, running, 8500.0)
    assert result.overloaded == ("split",)
    assert result.overdue_s == pytest.approx(95 - 85 - 5.5)
    # Ten seconds of input have arrived since the last batch ended; a batch on time holds five of them.
    assert result.source.backlog == pytest.approx(500.0)
    assert result.source.lag_s == pytest.approx(5.0)


def test_there_is_no_window_before_a_batch_has_ended() -> None:
    assert read_window([], [], 90.0, RealTimeBatch(80.0, ("split", "count"))) == (
        "no batch has finished since the change, and the running one is 4 s overdue"
    )
    assert read_window([], [], 82.0, RealTimeBatch(80.0, ())) == "no batch has finished since the change"


def test_rows_on_their_way_without_a_finished_batch_to_compare_are_no_backlog_of_zero() -> None:
    """The batches before the load had no rows: how many words leave per line is unknown, so how many wait is, too."""
    flow = Flow((250.0, 250.0, 740.0), 330.0)
    result = window([batch(1, 80.0, rows=0)], [], 90.0, RealTimeBatch(86.5, (), flow=flow), 8650.0)
    assert result.source.backlog is None
    assert result.source.rate_per_s == pytest.approx(100.0)
    before = window([batch(1, 80.0, rows=0)], [], 90.0, RealTimeBatch(86.5, (), flow=None), 8650.0)
    assert before.source.backlog == pytest.approx(0.0)


def test_without_the_broker_there_is_neither_rate_nor_backlog() -> None:
    result = window([batch(1, 80.0, 9.1)], [], 90.0, RealTimeBatch(89.1, ()), 8500.0, [ArrivalCount(0.0, 0.0)])
    assert result.source == SourceNow()


def test_a_count_that_the_broker_gave_long_ago_is_not_the_present() -> None:
    stale = [count for count in ARRIVED if count.at_s <= 90.0 - FRESH_S - 1.0]
    assert window([batch(1, 80.0)], [], 90.0, None, 8500.0, stale).source == SourceNow()


def test_the_load_is_the_present_one() -> None:
    """A jump shows in full as soon as it is seen, not averaged over the window."""
    jump = [*(count for count in ARRIVED if count.at_s <= 90.0), ArrivalCount(95.0, 9000.0 + 5 * 1000.0)]
    assert window([batch(1, 80.0)], [], 95.0, None, 8500.0, jump).source.rate_per_s == pytest.approx(1000.0)


def test_the_rows_of_a_running_batch_show_what_is_done() -> None:
    # 3.5 s of a batch: 350 lines read, and 900 of their 1,050 words counted.
    flow = Flow((350.0, 350.0, 1050.0), 900.0)
    result = window([batch(1, 80.0)], [], 90.0, RealTimeBatch(86.5, (), flow=flow), 8650.0)
    assert result.source.backlog == pytest.approx(50.0)
    assert result.source.lag_s == pytest.approx(0.5)
    assert [reading.pending for reading in result.operators] == pytest.approx([0.0, 0.0, 150.0])
    assert result.overloaded == ()
    # After 5 s the source no longer reads: what has arrived since waits for the next batch. The rows are from between
    # two heartbeats.
    late = RealTimeBatch(84.0, (), flow=Flow((500.0, 500.0, 1500.0), 1500.0), flow_age_s=1.0)
    source = window([batch(1, 79.0)], [], 90.0, late, 8400.0).source
    assert source.backlog == pytest.approx(50.0)
    assert source.measured_s == pytest.approx(89.5)


@pytest.mark.parametrize(("heartbeat_s", "unread"), [(90.0, 0.0), (89.1, 0.0), (88.2, 0.0), (87.0, 100.0)])
def test_while_the_source_reads_its_rows_tell_the_moment_of_the_last_heartbeat(
    heartbeat_s: float, unread: float
) -> None:
    """At that moment it had read what had arrived, and 20 lines were under way; a later one knows nothing of them."""
    read = 100.0 * (heartbeat_s - 86.0)
    flow = Flow((read, read, 3 * read), 3 * (read - 20.0))
    running = RealTimeBatch(86.0, (), flow=flow, flow_age_s=1.0)
    source = window([batch(1, 81.0)], [], 90.0, running, 8600.0).source
    assert source.measured_s == pytest.approx(max(heartbeat_s, 88.0))
    assert source.backlog == pytest.approx(20.0 + unread)
    assert source.lag_s == pytest.approx((20.0 + unread) / 100.0)


def test_rows_in_front_of_a_stage_show_overload_inside_a_batch_on_time() -> None:
    # After 4 s `count` has done the words of 1.5 s; more than a gap of 0.2 s explains.
    flow = Flow((420.0, 420.0, 1260.0), 450.0)
    running = RealTimeBatch(85.2, (), flow=flow, flow_age_s=1.0)
    assert window([batch(1, 80.0)], [], 89.2, running, 8520.0).overloaded == ("count",)
    # A batch that began with the records of five seconds has as many to work off.
    after = RealTimeBatch(90.2, (), flow=flow, flow_age_s=1.0)
    assert window([batch(1, 80.0)], [], 94.2, after, 8520.0).overloaded == ()
    # A node that counts its rows only at the end shows nothing.
    silent = RealTimeBatch(85.2, (), flow=replace(flow, left=None), flow_age_s=1.0)
    assert window([batch(1, 80.0)], [], 89.2, silent, 8520.0).overloaded == ()


def test_a_stage_that_waits_has_the_rate_of_its_overload() -> None:
    """Its CPU time of 0.1 s says that it could do a hundred times the load, and two batches say that it cannot."""
    flow = Flow((420.0, 420.0, 1260.0), 450.0)
    work, running = stages(1, 80.0, (5.0, 5.0, 9.0)), RealTimeBatch(89.2, (), flow=flow, flow_age_s=1.0)
    late = unprobed(1, 80.0, 9.1)
    result = window([late], work, 93.7, running, 8920.0, last_read_s=80.0)
    assert (result.overloaded, result.waits) == (("count",), ())  # once may be anything
    overdue = replace(running, active_stages=("count",))
    result = window([late], work, 100.0, overdue, 8920.0, last_read_s=80.0)
    assert result.overloaded == result.waits == ("count",)
    assert result.operators[2].true_rate_per_s == pytest.approx(450.0 / (4 * (100.0 - 89.2 - 0.5)))


def test_stages_of_one_task_each_that_run_together_both_have_the_time_of_both() -> None:
    chain = replace(CHAIN, tasks={"lines": 2, "split": 1, "count": 1})
    work = stages(1, 80.0, (5.0, 5.0), cpu_s=2.0)
    result = realtime_window(chain, [unprobed(1, 80.0)], work, 75.0, 86.0, ARRIVED[:18], 8500.0, None)
    assert isinstance(result, RealTimeWindow)
    assert [reading.true_rate_per_s for reading in result.operators] == pytest.approx([250.0, 250.0, 750.0])
    # Where a stage was evicted, nothing is known.
    result = realtime_window(CHAIN, [unprobed(1, 80.0)], work, 75.0, 86.0, ARRIVED[:18], 8500.0, None)
    assert isinstance(result, RealTimeWindow)
    assert [reading.true_rate_per_s for reading in result.operators] == [None, None, None]


def test_batches_whose_rows_were_not_read_are_left_out() -> None:
    unread = replace(batch(1, 80.0), flow=None)
    one, both = window([batch(2, 85.0)], [], 91.0), window([unread, batch(2, 85.0)], [], 91.0)
    assert both.operators == one.operators
    source, *others = window([unread], [], 91.0).operators
    assert source.records_in_per_s == pytest.approx(100.0)
    assert others == []
