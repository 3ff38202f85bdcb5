"""`rheostat.autoscale` on a real Spark: it follows a load on an embedded cluster."""

import json
import re
import subprocess
import sys
from typing import Any

import pytest
import spark_autoscaled
from project import ROOT
from pyspark.sql import SparkSession
from step_trace import found

from rheostat.engine.spark.telemetry.probe import operator
from rheostat.errors import InvalidValue

pytestmark = pytest.mark.cluster


def test_probes_change_no_result(spark: SparkSession) -> None:
    """The stamps are gone afterwards, also where the operator itself drops them."""
    rows = spark.range(0, 2000, 1, 4)
    kept = operator("keep", lambda frame: frame.where("id % 2 = 0"), sample=1)(rows)
    assert kept.columns == ["id"]
    assert kept.count() == 1000
    dropped = operator("drop", lambda frame: frame.selectExpr("id + 1 as more"))(rows)
    assert dropped.columns == ["more"]
    assert dropped.count() == 2000
    assert operator("pass")(rows).count() == 2000


def test_a_probe_needs_a_name_and_a_sample() -> None:
    with pytest.raises(InvalidValue, match="name"):
        operator("")
    with pytest.raises(InvalidValue, match="sample must be at least 1"):
        operator("parse", sample=0)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What happened on an embedded cluster, in a process of its own."""
    folder = tmp_path_factory.mktemp("autoscaled")
    done = subprocess.run(
        [sys.executable, spark_autoscaled.__file__, str(folder)],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def test_a_rising_load_brings_executors_and_the_query_goes_on(story: dict[str, Any]) -> None:
    assert story["failed"] is None
    assert story["most_executors"] > story["first_executors"]
    assert story["reasons"].get("under-provisioned", 0) >= 1
    assert story["status"] == "running"


def test_the_result_is_exact_through_all_resizes(story: dict[str, Any]) -> None:
    assert story["rows_wrong"] == 0
    assert story["seconds_checked"] > 10


def test_named_operators_and_capacity_are_measured(story: dict[str, Any]) -> None:
    # A slot waits for its pace, so it is never faster; how much slower a busy machine makes it is not for a test.
    assert 0.2 * spark_autoscaled.SLOT_PER_S < story["pace_true_rate"] < 1.15 * spark_autoscaled.SLOT_PER_S


def test_a_dry_run_decides_and_changes_nothing(story: dict[str, Any]) -> None:
    assert story["shadow_changed"] is False
    assert story["shadow_decisions"] >= 1


def test_the_journal_can_be_replayed(story: dict[str, Any]) -> None:
    assert story["replay_steps"] > 3
    assert story["replay_differences"] == 0


def test_the_map_tells_the_way_of_one_window_and_it_is_short(story: dict[str, Any]) -> None:
    _, _, walk = (ROOT / "ARCHITECTURE.md").read_text().partition("<!-- walk -->")
    told = set(re.findall(r"`([\w/]+\.py [\w.]+)`", walk.partition("<!-- /walk -->")[0]))
    for station in told:
        assert callable(found(station)), station
    assert story["walks"]
    for stations in story["walks"]:
        # The counter of a source that Spark does not know is the user's own.
        own = {station for station in stations if not station.startswith("engine/testbed/")}
        assert own <= told
        assert len(own) <= 62
    assert len(told) <= 62
    assert len({station.split()[0] for station in told}) <= 35
