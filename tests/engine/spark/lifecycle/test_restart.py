"""Restarts of a pipeline on a real Spark: exact results, steps in the journal, and takeover after a kill."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import spark_restart
from pyspark.sql import SparkSession

from rheostat.clock import WallClock
from rheostat.engine.spark.lifecycle import owner
from rheostat.engine.spark.lifecycle.application import SparkApplication
from rheostat.engine.spark.lifecycle.checkpoint import NOTE, Checkpoint
from rheostat.engine.spark.lifecycle.owner import Overtaken
from rheostat.engine.spark.lifecycle.restart import Pipeline, build_at_start, stop_after_batch
from rheostat.engine.spark.lifecycle.shape import JOB
from rheostat.errors import EngineError
from rheostat.job.allocation import Allocation
from rheostat.job.observation import Status

pytestmark = pytest.mark.cluster

STORE = "spark.sql.streaming.stateStore.providerClass"


def child(folder: Path, *parts: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, spark_restart.__file__, str(folder), *parts]
    return subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A driver is killed; the next one takes over, and then runs the other parts on the same cluster."""
    folder = tmp_path_factory.mktemp("restart")
    assert child(folder, "kill").returncode == -signal.SIGKILL
    done = child(folder, "recover", "grow")
    assert done.returncode == 0, done.stderr[-3000:]
    parts: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return parts


def test_a_restart_with_a_repartition_cures_too_few_partitions(stories: dict[str, Any]) -> None:
    story = stories["grow"]["moved"]
    assert (story["partitions"], story["rows_wrong"], story["status"]) == (12, 0, "stopped")
    assert story["seconds_checked"] > 10
    # A stop inside a batch is repeated after it.
    *before, last = story["built"]
    assert (set(before), last) == ({2}, 6)
    words = [step.split()[0] for step in story["steps"]]
    assert words == ["request", "stop", *["start", "stop"] * (len(before) - 1), "repartition", "start"]
    ((ending, slots, downtime_s),) = story["endings"]
    assert (ending, slots) == ("done", 6)
    assert downtime_s > 0
    assert {"down", "recovering", "running"} >= set(story["statuses"]) > {"running"}


def test_state_that_cannot_be_repartitioned_is_named_as_the_limit(stories: dict[str, Any]) -> None:
    story = stories["grow"]["kept"]
    assert story["built"] == [2, 6]
    assert (story["partitions"], story["most"]) == (4, 4)
    assert story["rows_wrong"] == 0
    assert any("the state keeps its 4 partitions" in step for step in story["steps"])
    assert not any(step.startswith("repartition") for step in story["steps"])
    assert any("more than 4 slots cannot be used" in text for text in story["bottlenecks"])


def test_a_driver_killed_during_a_repartition_is_taken_over_exactly(stories: dict[str, Any]) -> None:
    story = stories["recover"]
    begun, finished = story["cut_off"]
    assert begun == finished + 1  # it was killed in the middle
    first, again = story["first"], story["again"]
    assert (first["partitions"], first["rows_wrong"]) == (12, 0)
    assert first["endings"][-1][:2] == ["done", 6]
    # Without an open change it starts at once with the last allocation.
    assert again["built"] == [6]
    assert (again["partitions"], again["rows_wrong"]) == (12, 0)


Counting = Callable[..., Any]


@pytest.fixture
def counting(spark: SparkSession, tmp_path: Path) -> Iterator[Counting]:
    """Start a stateful query with a checkpoint in this test's folder."""
    before = str(spark.conf.get(STORE))
    spark.conf.set(STORE, f"{spark_restart.STORES}.RocksDBStateStoreProvider")

    def start(allocation: Allocation) -> Any:
        if allocation.slots == 13:
            raise ValueError("thirteen is too much")
        rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 100).load()
        counted = rows.selectExpr("value % 7 as key").groupBy("key").count()
        checkpoint = str(tmp_path / "checkpoint")
        stream = counted.writeStream.outputMode("update").format("noop").option("checkpointLocation", checkpoint)
        return stream.trigger(processingTime="2 seconds").start()

    yield start
    spark.conf.set(STORE, before)


def a_few_batches(spark: SparkSession, counting: Counting) -> Checkpoint:
    """Run the query until a stop comes after a whole batch."""
    for _ in range(10):
        query = counting(Allocation({"job": 1}))
        while query.lastProgress is None:
            assert query.isActive
        stop_after_batch(query, WallClock(), None)
        application = SparkApplication(spark)
        checkpoint = application.checkpoint(application.location(query))
        if checkpoint.begun == checkpoint.done:
            return checkpoint
    raise AssertionError("the query was never stopped between two batches")


def test_after_a_failed_start_the_query_runs_as_before(spark: SparkSession, counting: Counting) -> None:
    notes: list[str] = []
    pipeline = Pipeline(SparkApplication(spark), build_at_start(counting))
    pipeline.begin(Allocation({JOB: 1}))
    pipeline.wait()
    first = pipeline.query
    pipeline.restart(lambda: Allocation({JOB: 13}), notes.append)
    pipeline.wait()
    assert pipeline.query is not None
    assert pipeline.query is not first
    assert (pipeline.slots, pipeline.status, pipeline.query.isActive) == (1, Status.RUNNING, True)
    assert "thirteen" in str(pipeline.failure)
    assert "thirteen" in pipeline.fixed_reason
    assert notes[-1].startswith("start with job=1 as before")
    pipeline.query.stop()


def test_a_failed_build_does_not_stop_the_running_query(spark: SparkSession, counting: Counting) -> None:
    def build(allocation: Allocation) -> Callable[[], Any]:
        if allocation.slots == 13:
            raise ValueError("thirteen cannot be built")
        return lambda: counting(allocation)

    notes: list[str] = []
    pipeline = Pipeline(SparkApplication(spark), build)
    pipeline.begin(Allocation({JOB: 1}))
    pipeline.wait()
    first = pipeline.query
    pipeline.restart(lambda: Allocation({JOB: 13}), notes.append)
    pipeline.wait()
    assert pipeline.query is first
    assert first is not None
    assert (pipeline.slots, pipeline.status, first.isActive) == (1, Status.RUNNING, True)
    assert "thirteen cannot be built" in pipeline.fixed_reason
    assert "stop after a batch" not in notes
    first.stop()


def test_without_an_allocation_there_is_no_restart(spark: SparkSession, counting: Counting) -> None:
    notes: list[str] = []
    pipeline = Pipeline(SparkApplication(spark), build_at_start(counting))
    pipeline.begin(Allocation({JOB: 2}))
    pipeline.wait()
    first = pipeline.query
    pipeline.restart(lambda: None, notes.append)
    pipeline.wait()
    assert (pipeline.query, notes) == (first, [])
    assert first is not None
    first.stop()


def test_a_pipeline_must_return_its_query(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match="must return it, and returned a builtins"):
        Pipeline(SparkApplication(spark), build_at_start(lambda _: None)).begin(Allocation({JOB: 1}))


def test_a_query_on_a_claimed_checkpoint_is_stopped_before_it_begins_a_batch(
    spark: SparkSession, counting: Counting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkpoint of a user's function is only known when its query starts."""
    monkeypatch.setattr(owner, "FRESH_S", 1.0)
    monkeypatch.setattr(owner, "PATIENCE_S", 1.0)
    monkeypatch.setattr(owner, "RENEW_S", 0.2)
    checkpoint = a_few_batches(spark, counting)
    application, last = SparkApplication(spark), checkpoint.done
    first = owner.Owner(checkpoint, application.driver(), WallClock(), lambda _: None)
    first.claim()
    second = Pipeline(application, build_at_start(counting))
    with pytest.raises(Overtaken, match=r"another driver \(process \d+ on .*\) runs on file:"):
        second.begin(Allocation({JOB: 1}))
    assert (checkpoint.begun, checkpoint.done) == (last, last)
    assert [(q.name, str(q.runId), q.isActive, q.status, q.lastProgress) for q in spark.streams.active] == []
    first.release()
    second = Pipeline(application, build_at_start(counting))
    second.begin(Allocation({JOB: 1}))
    second.wait()
    assert checkpoint.done > last
    with pytest.raises(Overtaken):
        first.confirm()
    second.finish()  # the query goes on, and so does the claim
    renewed = second._owner
    assert renewed is not None
    assert renewed.look().driver.ended is False  # type: ignore[union-attr]
    second.query.stop()
    assert renewed._thread is not None
    renewed._thread.join(10)
    assert renewed.look().driver.ended is True  # type: ignore[union-attr]


def test_a_repartition_is_finished_undone_or_left_alone(spark: SparkSession, counting: Counting) -> None:
    checkpoint = a_few_batches(spark, counting)
    last, state = checkpoint.done, checkpoint.state()
    assert state is not None
    assert state.movable
    change = checkpoint.plan(state.partitions + 3)
    assert checkpoint.settle() == ""

    checkpoint.repartition(change)
    checkpoint.repartition(change)  # a repetition is not an error
    assert (checkpoint.begun, checkpoint.done) == (last + 1, last + 1)
    assert checkpoint.state() == type(state)(change.new, state.provider)
    assert checkpoint.settle() == ""

    place = Path(checkpoint.location.removeprefix("file:"))
    checkpoint.files.replace(json.dumps(asdict(change)), *NOTE)
    assert checkpoint.settle() == ""  # it has committed: only the note goes
    checkpoint.files.replace(json.dumps(asdict(change)), *NOTE)
    checkpoint.files.delete("commits", str(last + 1))
    assert checkpoint.settle().startswith("undone: repartition the state of batch")
    assert (checkpoint.begun, checkpoint.done, checkpoint.state()) == (last, last, state)
    newer = [path for log in ("offsets", "commits") for path in (place / log).glob(str(last + 1))]
    newer += [path for path in (place / "state").rglob(f"{last + 2}*") if path.is_file()]
    newer += (place / "state").rglob(f"_metadata/v2/{last + 1}")
    assert newer == []
    assert not (place / "rheostat" / "repartition").exists()
    assert a_few_batches(spark, counting).done > last


def test_an_unreadable_note_stops_the_start_with_a_reason(spark: SparkSession, counting: Counting) -> None:
    checkpoint = a_few_batches(spark, counting)
    checkpoint.files.replace("nonsense", *NOTE)
    with pytest.raises(EngineError, match=r"rheostat/repartition in .* cannot be read.*delete it if you are sure"):
        Pipeline(SparkApplication(spark), build_at_start(counting)).begin(Allocation({JOB: 1}))
    checkpoint.files.delete(*NOTE)
