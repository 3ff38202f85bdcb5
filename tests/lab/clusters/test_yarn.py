"""YARN: a real resource manager, executors in containers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from crashing import crash, run_unprotected

from rheostat.lab.clusters.cluster import Cluster
from rheostat.lab.clusters.driver import Place, write_whole
from rheostat.lab.clusters.sparks import spark_home
from rheostat.lab.clusters.visit import Visitor, count_errors, endings, kill_executor, visit
from rheostat.lab.clusters.yarn import NARROW, yarn
from rheostat.lab.experiment.processes import Child, await_true

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif("RHEOSTAT_CLUSTERS" not in os.environ, reason="takes minutes: `make matrix` runs it"),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with yarn(tmp_path_factory.mktemp("yarn"), spark_home(None)) as started:
        yield started


def test_executors_in_containers_grow_shrink_and_survive_kills(cluster: Cluster, tmp_path: Path) -> None:
    seen = visit(tmp_path / "job", cluster, None, print)
    assert (seen.rows_lost, seen.rows_repeated) == (0, 0)
    assert any("lost executor" in word for word in seen.words)


def visitor_on(cluster: Cluster, folder: Path, most: int, **conf: str) -> Visitor:
    (folder / "wanted").write_text("1")
    return Visitor(Place(folder, cluster.master, {**cluster.conf, **conf}, cluster.environment, None, most))


def test_a_queue_without_room_gives_what_it_has(cluster: Cluster, tmp_path: Path) -> None:
    """The queue has 3,000 MB: the application master and two executors."""
    visitor = visitor_on(cluster, tmp_path, 4, **{"spark.yarn.queue": NARROW})
    with visitor.driving():
        visitor.start()
        write_whole(tmp_path / "wanted", "4")
        visitor.wait(lambda: bool(endings(tmp_path)), "the change does not end")
        assert endings(tmp_path)[0] == "partial: wanted job=4, got job=2"
        visitor.pass_batches()
        visitor.resize(1)
        visitor.stop()
    assert count_errors(tmp_path / "output", visitor.batch) == (0, 0)


def test_an_application_survives_more_crashes_than_spark_allows_by_default(cluster: Cluster, tmp_path: Path) -> None:
    visitor = visitor_on(cluster, tmp_path, 2)
    with visitor.driving():
        visitor.start()
        for _ in range(5):
            kill_executor(visitor, 1)
        visitor.stop()
    assert count_errors(tmp_path / "output", visitor.batch) == (0, 0)


def test_without_the_setting_autoscale_refuses_and_spark_ends_the_application(cluster: Cluster, tmp_path: Path) -> None:
    place = Place(tmp_path, cluster.master, cluster.conf, cluster.environment, None, 2)
    with Child(run_unprotected, place) as driver:
        assert await_true((tmp_path / "refusal").exists, 120.0)
        assert "spark.executor.maxNumFailures is not set" in (tmp_path / "refusal").read_text()
        assert crash(driver) >= 3
