"""The window of a real-time query: rates, useful time, the late stage, the backlog."""

from typing import Any

import pytest

from rheostat.engine.batches.arrivals import ArrivalCount, arrival_rate
from rheostat.engine.batches.lateness import Chain
from rheostat.engine.batches.probe import LATENCY, NANOSECONDS, RECORDS, SAMPLED
from rheostat.engine.batches.progress import Batch
from rheostat.engine.batches.realtime_window import RealTimeBatch, RealTimeWindow, realtime_window
from rheostat.engine.batches.stage import Stage

CHAIN = Chain(("lines", "split", "count"), {"lines": 2, "split": 2, "count": 4}, 5.0)
RATE = 100.0
ARRIVED = [ArrivalCount(float(second), RATE * second) for second in range(0, 101, 5)]


def batch(number: int, start_s: float, seconds: float = 5.0, rows: int = 500, words: int = 3) -> Batch:
    """A batch in which `split` takes 10 ms per line and `count` 5 ms per word."""
    observed: dict[str, dict[str, Any]] = {
        "lines": {RECORDS: rows},
        # Every word carries the stamps of its line.
        "split": {RECORDS: rows * words, SAMPLED: rows * words, NANOSECONDS: int(rows * words * 10e6)},
        "count": {
            RECORDS: rows * words,
            SAMPLED: rows * words,
            NANOSECONDS: int(rows * words * 5e6),
            LATENCY: [50, 80, 1000 * (seconds - 4.9)],
        },
    }
    return Batch("q", "run", number, start_s, seconds, seconds - 0.1, rows, (), observed, 10, 4096)


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
    assert result.rate_per_s == pytest.approx(RATE)
    assert result.latency is not None
    assert result.latency.p99_s == pytest.approx(0.1)


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
    assert result.backlog == pytest.approx(500.0)
    assert result.lag_s == pytest.approx(5.0)


def test_there_is_no_window_before_a_batch_has_ended() -> None:
    assert read_window([], [], 90.0, RealTimeBatch(80.0, ("split", "count"))) == (
        "no batch has finished since the change, and the running one is 4 s overdue"
    )
    assert read_window([], [], 82.0, RealTimeBatch(80.0, ())) == "no batch has finished since the change"


def test_without_the_broker_there_is_neither_rate_nor_backlog() -> None:
    result = window([batch(1, 80.0, 9.1)], [], 90.0, RealTimeBatch(89.1, ()), 8500.0, [ArrivalCount(0.0, 0.0)])
    assert (result.rate_per_s, result.backlog, result.lag_s) == (None, None, None)


def test_the_arrival_rate_spans_the_first_to_the_last_count() -> None:
    assert arrival_rate([], 0.0) is None
    assert arrival_rate(ARRIVED[:1], 0.0) is None
    assert arrival_rate(ARRIVED, 50.0) == pytest.approx(RATE)
    # A topic that was deleted and created again does not give a negative rate.
    assert arrival_rate([ArrivalCount(0.0, 100.0), ArrivalCount(10.0, 0.0)], 0.0) == 0.0
