"""Commit files of a checkpoint: which driver wrote them, and whether one replaced another."""

from __future__ import annotations

import os
from pathlib import Path

from rheostat.lab.freeze.commits import CommitWatch, marking

FIRST, SECOND = 0o022, 0o026


def commit(checkpoint: Path, batch: int, umask: int) -> None:
    """Write a commit as Spark does: a hidden file that is renamed."""
    folder = checkpoint / "commits"
    folder.mkdir(exist_ok=True)
    written = folder / f".{batch}.tmp"
    written.write_text("v1\n{}")
    written.chmod(0o666 & ~umask)
    os.rename(written, folder / str(batch))


def test_a_commit_belongs_to_the_driver_whose_umask_its_mode_shows(tmp_path: Path) -> None:
    watch = CommitWatch(tmp_path)
    watch.look()  # there is no folder yet
    commit(tmp_path, 0, FIRST)
    commit(tmp_path, 1, SECOND)
    (tmp_path / "commits" / ".1.crc").touch()
    watch.look()
    commit(tmp_path, 2, FIRST)
    watch.look()
    assert [each.batch for each in watch.of(FIRST)] == [0, 2]
    assert [each.batch for each in watch.of(SECOND)] == [1]
    assert [each.batch for each in watch.of(FIRST, after_s=watch.of(SECOND)[0].at_s)] == [2]
    assert watch.replaced() == set()


def test_a_commit_that_replaces_another_one_is_a_second_commit_of_its_batch(tmp_path: Path) -> None:
    watch = CommitWatch(tmp_path)
    for batch in (0, 1):
        commit(tmp_path, batch, FIRST)
    watch.look()
    commit(tmp_path, 1, SECOND)
    watch.look()
    assert watch.replaced() == {1}
    assert [each.batch for each in watch.of(SECOND)] == [1]


def test_spark_is_told_the_umask_in_octal_digits() -> None:
    assert marking(SECOND) == {"spark.hadoop.fs.permissions.umask-mode": "026"}
