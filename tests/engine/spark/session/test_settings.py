"""The settings that resizing needs, what a session sets, and what is refused."""

import os
import subprocess
import sys
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rheostat.engine.spark.session.session import (
    classic_context,
    refuse_connect,
    session,
    session_settings,
    unregistered_executors,
)
from rheostat.engine.spark.session.settings import (
    NEEDED,
    application_needs,
    attach_settings,
    check_application,
    check_master,
    missing_settings,
)
from rheostat.errors import InvalidValue

pytestmark = pytest.mark.cluster


def settings(**changes: Any) -> dict[str, str]:
    arguments = {"name": "a", "min_executors": 1, "max_executors": 3, "cores": 2, "memory_mb": 600}
    return session_settings(**{**arguments, **changes})


def keys(conf: dict[str, str]) -> set[str]:
    return {m.key for m in missing_settings(conf)}


def test_a_plain_spark_lacks_two_settings() -> None:
    assert keys({}) == {"spark.stage.maxConsecutiveAttempts", "spark.executor.cores"}


def test_what_a_session_sets_is_all_that_is_needed() -> None:
    assert missing_settings(settings()) == ()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.dynamicAllocation.enabled", "true"),
        ("spark.stage.maxConsecutiveAttempts", "4"),
        ("spark.stage.maxAttempts", "3"),
        ("spark.task.maxFailures", "1"),
        ("spark.excludeOnFailure.application.fetchFailure.enabled", "TRUE"),
        ("spark.executor.cores", "all"),
    ],
)
def test_a_setting_that_contradicts_is_named_with_the_reason(key: str, value: str) -> None:
    (missing,) = missing_settings({**settings(), key: value})
    assert (missing.key, missing.actual) == (key, value)
    assert str(missing) == f"{key} is {value!r}, it must be {missing.needs}: {missing.why}"


def test_every_needed_setting_says_why_and_takes_the_value_that_a_session_gives() -> None:
    for setting in NEEDED:
        assert len(setting.why) > 20
        assert setting.value is None or setting.fits(setting.value)


@pytest.mark.parametrize("master", ["local-cluster[6,1,512]", "spark://here:7077", "yarn", "k8s://https://here:443"])
def test_masters_that_can_scale(master: str) -> None:
    assert check_master(master) is None


@pytest.mark.parametrize("master", ["local", "local[4]", "local[*]", "local[2,3]", "sc://here", "mesos://x", ""])
def test_masters_that_cannot_scale(master: str) -> None:
    problem = check_master(master)
    assert problem is not None
    assert repr(master) in problem


@pytest.mark.parametrize(
    ("master", "value", "least"), [("yarn", "100", 20), ("k8s://https://here:443", "100000", 10_000)]
)
def test_failures_of_executors_end_an_application_of_a_cluster_manager(master: str, value: str, least: int) -> None:
    """After max(2 x instances, 3) crashes: three for a session that starts with one executor.

    On Kubernetes a pod that a quota refuses is a failure, too, every second.
    """
    made = settings(master=master)
    assert made["spark.executor.maxNumFailures"] == value
    assert application_needs(master, made) == ()
    [need] = application_needs(master, {**made, "spark.executor.maxNumFailures": str(least - 1)})
    assert need.startswith(f"spark.executor.maxNumFailures is '{least - 1}', it must be {least} or more")
    del made["spark.executor.maxNumFailures"]
    [need] = application_needs(master, made)
    assert need.startswith(f"spark.executor.maxNumFailures is not set, it must be {least} or more")
    assert application_needs("spark://here:7077", made) == ()


def test_decommissioning_needs_a_deadline_and_moves_blocks() -> None:
    made = settings(conf={"spark.decommission.enabled": "true"})
    assert made["spark.executor.decommission.forceKillTimeout"] == "60s"
    assert made["spark.storage.decommission.shuffleBlocks.enabled"] == "true"
    assert "spark.executor.decommission.forceKillTimeout" not in settings()
    del made["spark.executor.decommission.forceKillTimeout"]
    with pytest.raises(InvalidValue, match="never leaves") as refused:
        check_application(made["spark.master"], made)
    assert str(refused.value).endswith("--conf spark.executor.decommission.forceKillTimeout=60s")


def test_the_embedded_cluster_is_made_to_measure_and_stays_off_the_network() -> None:
    made = settings()
    assert made["spark.master"] == "local-cluster[3,2,600]"
    assert made["spark.cores.max"] == "6"
    assert made["spark.driver.bindAddress"] == "127.0.0.1"


def test_a_real_cluster_keeps_its_own_addresses_and_flags() -> None:
    made = settings(master="spark://here:7077")
    assert "spark.driver.host" not in made
    assert "spark.executor.extraJavaOptions" not in made


@pytest.mark.parametrize("master", ["local-cluster", "spark://here:7077", "yarn", "k8s://https://here:443"])
def test_a_session_sets_what_rheostat_settings_prints(master: str) -> None:
    made = settings(master=master)
    lines = attach_settings(made["spark.master"], max_executors=3, cores=2)
    assert {line.key: line.value for line in lines}.items() <= made.items()
    assert made["spark.sql.shuffle.partitions"] == "12"


def test_heartbeats_come_every_second_unless_the_caller_says_otherwise() -> None:
    """An executor without an answer gives up after ten minutes, as with Spark's own settings."""
    made = settings()
    assert made["spark.executor.heartbeatInterval"] == "1s"
    assert int(made["spark.executor.heartbeat.maxFailures"]) == 60 * 10
    assert settings(conf={"spark.executor.heartbeatInterval": "5s"})["spark.executor.heartbeatInterval"] == "5s"


def test_tasks_do_not_wait_long_for_their_preferred_executor_unless_the_caller_says_so() -> None:
    assert settings()["spark.locality.wait"] == "300ms"
    assert settings(conf={"spark.locality.wait": "3s"})["spark.locality.wait"] == "3s"


def test_settings_of_the_caller_are_added() -> None:
    made = settings(conf={"spark.sql.shuffle.partitions": "7", "spark.stage.maxConsecutiveAttempts": "50"})
    assert made["spark.sql.shuffle.partitions"] == "7"
    assert made["spark.stage.maxConsecutiveAttempts"] == "50"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"min_executors": 5, "max_executors": 2}, "min_executors is 5 and max_executors is 2: the minimum must not"),
        ({"min_executors": 0}, "min_executors must be a whole number of at least 1, not 0"),
        ({"max_executors": 2.5}, "max_executors must be a whole number of at least 1, not 2.5"),
        ({"max_executors": None}, "max_executors is missing: give both"),
        ({"cores": 0}, "cores must be a whole number of at least 1, not 0"),
        ({"memory_mb": 256}, "memory_mb must be a whole number of at least 480, not 256"),
        ({"master": "local[4]"}, "no executors to add or remove"),
        (
            {"master": "local-cluster[2,2,600]"},
            "has room for 2 executors of 2 cores and 600 MB, but max_executors is 3",
        ),
        ({"conf": {"spark.dynamicAllocation.enabled": "true"}}, "dynamicAllocation.*does not see lag"),
        ({"conf": {"spark.executor.cores": "4"}}, "arguments say '2'"),
        ({"conf": {"spark.sql.shuffle.partitions": 4}}, "are strings"),
    ],
)
def test_arguments_that_cannot_be_right_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        settings(**changes)


@pytest.mark.parametrize(
    "selected", [{"SPARK_REMOTE": "sc://x"}, {"spark.remote": "local"}, {"spark.api.mode": "Connect"}]
)
def test_spark_connect_is_refused(selected: dict[str, str]) -> None:
    with pytest.raises(InvalidValue, match="cannot add or remove executors"):
        refuse_connect(selected)


def test_spark_connect_in_the_environment_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://localhost")
    with pytest.raises(InvalidValue, match="SPARK_REMOTE"):
        session()


def test_a_session_that_runs_with_other_settings_is_not_reused(spark: SparkSession) -> None:
    with pytest.raises(InvalidValue, match=r"stop it first.*spark\.master is 'local\[4\]'"):
        session(max_executors=2)


def test_a_classic_session_has_a_context(spark: SparkSession) -> None:
    assert classic_context(spark) is spark.sparkContext


def test_executors_that_were_launched_and_have_not_registered() -> None:
    assert unregistered_executors(("3", "1"), 5) == ["0", "2", "4"]


@pytest.mark.parametrize("module", ["session.settings", "session.session", "session.java", "executors.pool"])
def test_importing_does_not_import_spark(module: str) -> None:
    code = f"import sys, rheostat.engine.spark.{module}; sys.exit('pyspark' in sys.modules or 'py4j' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=dict(os.environ), check=False).returncode == 0
