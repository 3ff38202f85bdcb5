"""The oldest Spark that is supported: grow, shrink, an executor killed, the driver killed and back, no row lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from rheostat.engine.spark.session.settings import EMBEDDED_NAME
from rheostat.lab.clusters.cluster import Cluster
from rheostat.lab.clusters.sparks import OLDEST, pyspark_folder
from rheostat.lab.clusters.visit import visit

pytestmark = pytest.mark.cluster


def test_the_oldest_spark_grows_shrinks_and_survives_kills(tmp_path: Path) -> None:
    seen = visit(tmp_path / "job", Cluster(EMBEDDED_NAME), pyspark_folder(OLDEST), print)
    assert seen.spark == OLDEST
    assert (seen.rows_lost, seen.rows_repeated) == (0, 0)
    assert any("lost executor" in word for word in seen.words)
