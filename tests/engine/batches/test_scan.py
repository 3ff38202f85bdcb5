"""The SQL executions of a batch, and their counts, are read from Spark's texts."""

import pytest

from rheostat.engine.batches.scan import batch_executions, parse_count

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
