"""The SQL executions of a batch, and their counts, are read from Spark's texts."""

import pytest

from rheostat.engine.batches.scan import ScanCounters, batch_executions, count_rows, parse_count

BATCH = "demo\nid = 1\nrunId = 2\nbatch = 7"


def test_a_batch_has_its_executions_and_those_inside_them() -> None:
    """A user's action inside `foreachBatch` may have another description."""
    rows = [
        {"executionId": 9, "rootExecutionId": 5, "description": "upload"},
        {"executionId": 4, "rootExecutionId": 4, "description": "demo\nid = 1\nrunId = 2\nbatch = 6"},
        {"executionId": 5, "rootExecutionId": 5, "description": BATCH},
        {"executionId": 6, "rootExecutionId": 6, "description": "another query"},
        {"executionId": 7, "rootExecutionId": 5, "description": BATCH},
        {"executionId": 8, "rootExecutionId": 6, "description": "another query"},
    ]
    assert batch_executions(rows, BATCH) == [5, 7, 9]
    assert batch_executions(rows, "unknown") == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Some(40,000)", 40_000),
        ("Some(0)", 0),
        ("Some(1,234,567)", 1_234_567),
        ("None", None),
        ("Some(total (min, med, max (stageId: taskId))\n15.8 s (0 ms, 354 ms, 7.7 s (stage 2.0: task 8)))", None),
        ("Some(1.5 KiB)", None),
    ],
)
def test_a_count_is_read_and_nothing_else(text: str, count: int | None) -> None:
    assert parse_count(text) == count


def test_rows_that_wait_in_front_of_python_are_not_done() -> None:
    plain, udf = ScanCounters(1), ScanCounters(2, (3, 4))
    assert count_rows([plain, udf], {}) == (None, None)
    assert count_rows([plain, udf], {1: 500}) == (500.0, None)
    # Half of the 10,000 rows that were read pass a filter; of these Python has worked on a fifth.
    assert count_rows([udf], {2: 10_000, 3: 5000, 4: 1000}) == (2000.0, 10_000.0)
    assert count_rows([udf], {2: 10_000, 3: 5000}) == (0.0, 10_000.0)
    assert count_rows([udf], {2: 10_000}) == (10_000.0, 10_000.0)  # nothing is known of what lies in between
    assert udf.all == (2, 3, 4)
