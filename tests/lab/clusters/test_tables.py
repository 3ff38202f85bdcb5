"""Streams of real Delta and Iceberg tables: rows, versions, files and bytes that wait."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rheostat.lab.clusters.sparks import pyspark_folder
from rheostat.lab.clusters.table_source import COMMITS, FORMATS, ROWS, SPARK, jars_of, watch_table
from rheostat.lab.experiment.processes import in_own_process

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif("RHEOSTAT_CLUSTERS" not in os.environ, reason="takes minutes: `make matrix` runs it"),
]


@pytest.mark.parametrize("name", FORMATS)
def test_what_waits_at_a_table_is_what_was_appended(name: str, tmp_path: Path) -> None:
    seen = in_own_process(watch_table, name, tmp_path, pyspark_folder(SPARK), jars_of(name, print))
    appended = seen.appended
    assert (appended.rows, appended.versions) == (COMMITS * ROWS, COMMITS)
    assert (appended.files or 0) >= COMMITS
    assert (appended.bytes or 0) > 0
    assert seen.waiting
    assert seen.after
    assert seen.wrong == 0, seen
