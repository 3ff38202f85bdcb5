"""Batches of real-time mode become a window: rates, useful time, the late stage, what waits."""

from typing import Any

import pytest

from rheostat.engine.batches.lateness import Chain
from rheostat.engine.batches.probe import LATENCY, NANOSECONDS, RECORDS, SAMPLED
from rheostat.engine.batches.progress import Batch
from rheostat.engine.batches.realtime_window import Arrived, RealTimeWindow, Running, arrival_rate, realtime_window
from rheostat.engine.batches.stage import Stage

CHAIN = Chain(("lines", "split", "count"), {"lines": 2, "split": 2, "count": 4}, 5.0)
RATE = 100.0
ARRIVED = [Arrived(float(second), RATE * second) for second in range(0, 101, 5)]


def batch(number: int, start_s: float, seconds: float = 5.0, rows: int = 500, words: int = 3) -> Batch:
    """A batch whose split takes 10 ms a line and whose count takes 5 ms a word."""
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


def seen(
    batches: list[Batch],
    work: list[Stage],
    now_s: float,
    running: Running | None = None,
    done: float | None = None,
    arrived: list[Arrived] | None = None,
    unread_s: float | None = 80.0,
) -> RealTimeWindow | str:
    known = [point for point in arrived or ARRIVED if point.at_s <= now_s]
    return realtime_window(CHAIN, batches, work, now_s - 20.0, now_s, known, done, running, unread_s)


def window(*args: object, **kwargs: object) -> RealTimeWindow:
    found = seen(*args, **kwargs)  # type: ignore[arg-type]
    assert isinstance(found, RealTimeWindow), found
    return found


def test_true_rates_are_records_in_per_useful_second_of_one_task() -> None:
    found = window([batch(1, 80.0), batch(2, 85.0)], [], 91.0, Running(90.0, ()), 9000.0)
    lines, split, count = found.operators
    assert lines.records_in_per_s == pytest.approx(100.0)
    assert (split.records_in_per_s, count.records_in_per_s) == pytest.approx((100.0, 300.0))
    assert (split.true_rate_per_s, count.true_rate_per_s) == pytest.approx((100.0, 200.0))
    assert split.useful_share == pytest.approx(100 * 0.01 / 2)
    assert [(edge.upstream, edge.downstream) for edge in found.edges] == [("lines", "split"), ("split", "count")]
    assert [edge.records_per_s for edge in found.edges] == pytest.approx([100.0, 300.0])
    assert found.overloaded == ()
    assert found.rate_per_s == pytest.approx(RATE)
    assert found.latency is not None
    assert found.latency.p99_s == pytest.approx(0.1)


def test_a_stage_that_computes_is_seen_through_its_cpu_time() -> None:
    work = stages(1, 80.0, (5.0, 5.0, 5.0), cpu_s=20.0)
    _, split, _ = window([batch(1, 80.0)], work, 86.0).operators
    assert split.true_rate_per_s == pytest.approx(500 / 20.0)
    assert split.cpu_share == pytest.approx(1.0)  # 20 s of two tasks in 5 s: never more than there is


@pytest.mark.parametrize(
    ("ends_s", "late"),
    # Where several are late, the one that needs most time per task: here split, with 0.5 s a second against 0.375.
    [((5.0, 9.0, 9.1), "split"), ((5.0, 5.1, 9.0), "count")],
)
def test_a_stage_that_ends_later_than_what_waited_explains_is_overloaded(ends_s: tuple[float, ...], late: str) -> None:
    found = window([batch(1, 80.0, 9.1)], stages(1, 80.0, ends_s), 90.0, Running(89.1, ()), 8500.0)
    assert found.overloaded == (late,)
    assert found.operators[CHAIN.names.index(late)].blocking_share > 0.3  # type: ignore[operator]


def test_a_long_batch_that_found_much_waiting_is_catching_up() -> None:
    work = stages(1, 80.0, (5.0, 9.0, 9.1))
    assert (
        window([batch(1, 80.0, 9.1, rows=1200)], work, 90.0, Running(89.1, ()), 9200.0, unread_s=75.0).overloaded == ()
    )
    # So may be the very first one: nobody knows since when nothing was read.
    assert window([batch(1, 80.0, 9.1)], work, 90.0, Running(89.1, ()), 8500.0, unread_s=None).overloaded == ()


def test_a_batch_that_is_overdue_tells_before_it_ends() -> None:
    running = Running(85.0, ("split", "count"))
    found = window([batch(1, 80.0)], [], 95.0, running, 8500.0)
    assert found.overloaded == ("split",)
    assert found.overdue_s == pytest.approx(95 - 85 - 5.5)
    # Ten seconds have come since the last batch ended, and a batch on time holds five of them.
    assert found.backlog == pytest.approx(500.0)
    assert found.lag_s == pytest.approx(5.0)


def test_nothing_is_told_before_a_batch_has_ended() -> None:
    assert seen([], [], 90.0, Running(80.0, ("split", "count"))) == (
        "no batch has finished since the change, and the running one is 4 s overdue"
    )
    assert seen([], [], 82.0, Running(80.0, ())) == "no batch has finished since the change"


def test_without_the_broker_there_is_neither_rate_nor_backlog() -> None:
    found = window([batch(1, 80.0, 9.1)], [], 90.0, Running(89.1, ()), 8500.0, [Arrived(0.0, 0.0)])
    assert (found.rate_per_s, found.backlog, found.lag_s) == (None, None, None)


def test_arrivals_are_counted_between_the_first_and_the_last_look() -> None:
    assert arrival_rate([], 0.0) is None
    assert arrival_rate(ARRIVED[:1], 0.0) is None
    assert arrival_rate(ARRIVED, 50.0) == pytest.approx(RATE)
    # A topic that was deleted and made again does not make a negative rate.
    assert arrival_rate([Arrived(0.0, 100.0), Arrived(10.0, 0.0)], 0.0) == 0.0
