"""Which rows of a second are due when. No broker needed."""

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME, TIMESTAMP_NOT_AVAILABLE
from hypothesis import given
from hypothesis import strategies as st

from rheostat.engine.testbed.loads import Steps
from rheostat.engine.testbed.schedule import Schedule
from rheostat.kafka.load import due_by, replaces_time, rows


@given(st.integers(0, 3000), st.integers(-10, 1_000_010))
def test_what_is_due_is_what_was_due_until_now(count: int, gone_us: int) -> None:
    assert due_by(count, gone_us) == sum(nth * 1_000_000 // count <= gone_us for nth in range(count))


def test_rows_are_numbered_over_all_rounds_and_spread_over_their_second() -> None:
    schedule = Schedule(Steps((1.0, 4.0), hold_s=1.0), 2.0, seconds=2, step_s=1)
    assert schedule.counts == (2, 8)
    assert list(rows(schedule, 0, 0, 2)) == [(0, 0), (1, 500_000)]
    assert list(rows(schedule, 3, 6, 8)) == [(18, 3_750_000), (19, 3_875_000)]


@pytest.mark.parametrize(
    ("kind", "replaced"),
    [
        (TIMESTAMP_CREATE_TIME, False),
        (TIMESTAMP_LOG_APPEND_TIME, True),
        # A broker that was killed between writing and answering acknowledges the repetition without a time.
        (TIMESTAMP_NOT_AVAILABLE, False),
    ],
)
def test_only_a_time_of_the_broker_s_own_replaces_the_due_one(kind: int, replaced: bool) -> None:
    assert replaces_time(kind) is replaced
