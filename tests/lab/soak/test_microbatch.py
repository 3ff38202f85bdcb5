"""The results of the micro-batch job, compared with what its checkpoint says was read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rheostat.lab.soak.microbatch import KEYS, SCHEDULE, MicroBatchCount
from rheostat.lab.workload.counting import due


def commit(folder: Path, batch: int, second: int) -> None:
    for kind, text in (("offsets", f"v1\n{{}}\n{second}"), ("commits", "v1\n{}")):
        (folder / "checkpoint" / kind).mkdir(parents=True, exist_ok=True)
        (folder / "checkpoint" / kind / str(batch)).write_text(text)


def write(folder: Path, batch: int, counts: dict[str, int]) -> None:
    (folder / "out" / f"{batch}.json").write_text(json.dumps(counts))


@pytest.fixture
def job(tmp_path: Path) -> MicroBatchCount:
    job = MicroBatchCount(tmp_path, 0)
    write(tmp_path, 0, due(KEYS, {"source": SCHEDULE.due(3)}))
    commit(tmp_path, 0, 3)
    write(tmp_path, 1, due(KEYS, {"source": SCHEDULE.due(7)}))
    commit(tmp_path, 1, 7)
    return job


def test_the_counts_of_finished_batches_are_right(job: MicroBatchCount, tmp_path: Path) -> None:
    write(tmp_path, 2, {"5": 1})  # of a batch that was not finished
    assert job.records_finished() == SCHEDULE.due(7)
    assert job.compare(lambda: None) == (0, SCHEDULE.due(7))


def test_a_lost_count_and_an_unexpected_key_are_wrong(job: MicroBatchCount, tmp_path: Path) -> None:
    write(tmp_path, 1, {**due(KEYS, {"source": SCHEDULE.due(7)}), "5": 1, "extra": 1})
    assert job.compare(lambda: None) == (2, SCHEDULE.due(7))


def test_old_files_are_folded_and_deleted(job: MicroBatchCount, tmp_path: Path) -> None:
    commit(tmp_path, 201, 7)  # batches without records between them
    job.fold()
    assert [file.name for file in (tmp_path / "out").iterdir()] == []
    assert job.compare(lambda: None) == (0, SCHEDULE.due(7))


def test_before_the_first_batch_nothing_is_finished(tmp_path: Path) -> None:
    job = MicroBatchCount(tmp_path, 0)
    assert job.records_finished() == job.records_due() == 0
    assert job.compare(lambda: None) == (0, 0)
