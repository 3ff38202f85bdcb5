"""YARN: a real resource manager, executors in containers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rheostat.lab.clusters.sparks import spark_home
from rheostat.lab.clusters.visit import visit
from rheostat.lab.clusters.yarn import yarn

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif("RHEOSTAT_CLUSTERS" not in os.environ, reason="takes minutes: `make matrix` runs it"),
]


def test_executors_in_containers_grow_shrink_and_survive_kills(tmp_path: Path) -> None:
    with yarn(tmp_path, spark_home(None)) as cluster:
        seen = visit(tmp_path / "job", cluster, None, print)
    assert (seen.rows_lost, seen.rows_repeated) == (0, 0)
    assert any("lost executor" in word for word in seen.words)
