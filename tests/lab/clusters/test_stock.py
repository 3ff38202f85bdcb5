"""The stock job's counts against the producer's schedule and the offsets of its batches."""

from __future__ import annotations

import json
from collections import Counter
from importlib import metadata
from pathlib import Path

import pytest

from rheostat.kafka.load import Sent
from rheostat.lab.clusters.sparks import version_of
from rheostat.lab.clusters.stock import (
    PARTITIONS,
    RATE_PER_S,
    SECTIONS,
    TOPIC,
    records_taken,
    stock_errors,
    true_counts,
)

SENT = Sent(start_s=1_700_000_000.0, first=0, count=2 * RATE_PER_S + 50)
"""Two seconds of records, and a third of the third one."""


def write_batches(folder: Path, ends: list[int], counts: list[Counter[str]]) -> None:
    """Write offsets and counts as the query's checkpoint and its `foreachBatch` do."""
    for name in ("checkpoint/offsets", "output"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for number, (end, count) in enumerate(zip(ends, counts, strict=True)):
        offsets = {TOPIC: {str(k): end // PARTITIONS + (k < end % PARTITIONS) for k in range(PARTITIONS)}}
        lines = ("v1", json.dumps({"batchWatermarkMs": 0}), json.dumps(offsets))
        (folder / "checkpoint" / "offsets" / str(number)).write_text("\n".join(lines))
        (folder / "output" / f"{number}.json").write_text(json.dumps(count))


def test_the_right_counts_are_those_of_the_schedule() -> None:
    right = true_counts(SENT)
    assert right.total() == SENT.count
    assert {key.split()[0] for key in right} == {"1700000000000"}
    assert len(right) == SECTIONS
    late = true_counts(Sent(1_700_000_009.0, 0, SENT.count))
    assert sum(count for key, count in late.items() if key.startswith("1700000000000 ")) == RATE_PER_S


def test_right_counts_have_no_errors(tmp_path: Path) -> None:
    first = true_counts(Sent(SENT.start_s, 0, 100))
    write_batches(tmp_path, [100, SENT.count], [first, true_counts(SENT)])
    assert [records_taken(tmp_path, batch) for batch in (-1, 0, 1, 2)] == [0, 100, SENT.count, 0]
    assert stock_errors(tmp_path, 1, SENT) == (0, 0)


@pytest.mark.parametrize(("more", "errors"), [(-1, (2, 0)), (1, (0, 2))])
def test_a_row_too_few_or_too_many_is_seen_in_its_batch_and_at_the_end(
    tmp_path: Path, more: int, errors: tuple[int, int]
) -> None:
    wrong = true_counts(SENT)
    wrong["1700000000000 3"] += more
    write_batches(tmp_path, [SENT.count], [wrong])
    assert stock_errors(tmp_path, 0, SENT) == errors


def test_a_row_that_is_counted_late_is_seen_in_its_batch(tmp_path: Path) -> None:
    first = true_counts(Sent(SENT.start_s, 0, 99))
    write_batches(tmp_path, [100, SENT.count], [first, true_counts(SENT)])
    assert stock_errors(tmp_path, 1, SENT) == (1, 0)


def test_the_version_of_a_spark_is_in_the_name_of_its_folder() -> None:
    """It selects the Kafka connector."""
    assert version_of(Path("/somewhere/pyspark-3.5.9")) == "3.5.9"
    assert version_of(None) == metadata.version("pyspark")
