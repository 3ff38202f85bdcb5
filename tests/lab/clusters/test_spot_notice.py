"""An executor that a spot notice takes away: it leaves, is replaced, and is no loss."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rheostat.engine.spark.executors.scheduler import DECOMMISSION
from rheostat.engine.spark.session.settings import EMBEDDED_NAME
from rheostat.lab.clusters.driver import Place
from rheostat.lab.clusters.sparks import NEWEST, OLDEST, pyspark_folder
from rheostat.lab.clusters.visit import Visitor, count_errors, notice_executor

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif("RHEOSTAT_CLUSTERS" not in os.environ, reason="takes minutes: `make matrix` runs it"),
]


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_a_spot_notice_is_no_loss(version: str, tmp_path: Path) -> None:
    (tmp_path / "wanted").write_text("1")
    visitor = Visitor(Place(tmp_path, EMBEDDED_NAME, {DECOMMISSION: "true"}, {}, pyspark_folder(version), 2))
    with visitor.driving():
        visitor.start()
        visitor.resize(2)
        notice_executor(visitor)
        visitor.stop()
    assert not [word for word in visitor.words if "lost" in word]
    assert count_errors(tmp_path / "output", visitor.batch) == (0, 0)
