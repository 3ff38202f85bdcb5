"""Restarts of a pipeline on a real Spark: exact results, steps in the journal, and takeover after a kill."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import spark_restart
from pyspark.sql import SparkSession

from rheostat.api.takeover import repair
from rheostat.clock import WallClock
from rheostat.engine.spark.lifecycle.checkpoint import Checkpoint, Repartition
from rheostat.engine.spark.lifecycle.restart import JOB, Pipeline, build_at_start, stop_after_batch
from rheostat.job.allocation import Allocation
from rheostat.job.observation import Status
from rheostat.job.record import IntentStep

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
        checkpoint = Checkpoint.of(spark, query)
        if checkpoint.begun == checkpoint.done:
            return checkpoint
    raise AssertionError("the query was never stopped between two batches")


def test_after_a_failed_start_the_query_runs_as_before(spark: SparkSession, counting: Counting) -> None:
    notes: list[str] = []
    pipeline = Pipeline(spark, build_at_start(counting))
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
    pipeline = Pipeline(spark, build)
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
    pipeline = Pipeline(spark, build_at_start(counting))
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
        Pipeline(spark, build_at_start(lambda _: None)).begin(Allocation({JOB: 1}))  # type: ignore[arg-type, return-value]


def test_a_journal_cannot_name_the_checkpoint_of_another_query(
    spark: SparkSession, counting: Counting, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A batch that runs has no commit yet: to undo it would take its offsets away from a running query."""
    while (checkpoint := a_few_batches(spark, counting)).done < 1:
        pass  # a batch before the one without a commit is needed
    last, state = checkpoint.done, checkpoint.state()
    assert state is not None
    place = Path(checkpoint.location.removeprefix("file:"))
    for name in (str(last), f".{last}.crc"):
        (place / "commits" / name).unlink()
    forged = Repartition(checkpoint.location, last - 1, state.partitions + 1, state.partitions)
    step = IntentStep("1", str(forged), 0.0)
    pipeline = Pipeline(spark, build_at_start(counting))
    assert not repair(pipeline, step, str(tmp_path / "own"))
    assert f"checkpoint {checkpoint.location}, which is not that of this pipeline" in caplog.text
    assert (checkpoint.begun, checkpoint.done) == (last, last - 1)
    for name in ("repartition no JSON", 'repartition {"checkpoint": 5}', 'repartition ["rm", "-rf"]'):
        assert not repair(pipeline, IntentStep("1", name, 0.0), str(place))
    # Its own checkpoint is repaired, however it is written.
    repair(pipeline, step, f"{place}/")
    assert checkpoint.begun == checkpoint.done


def test_a_repartition_is_finished_undone_or_left_alone(spark: SparkSession, counting: Counting) -> None:
    checkpoint = a_few_batches(spark, counting)
    last, state = checkpoint.done, checkpoint.state()
    assert state is not None
    assert state.movable
    change = Repartition(checkpoint.location, last, state.partitions, state.partitions + 3)
    assert Repartition.read(str(change)) == change
    assert checkpoint.repair(change) == ""  # not begun: no action

    checkpoint.repartition(change)
    checkpoint.repartition(change)  # a repetition is not an error
    assert (checkpoint.begun, checkpoint.done) == (last + 1, last + 1)
    assert checkpoint.state() == type(state)(change.new, state.provider)
    assert checkpoint.repair(change) == ""  # finished: no action

    commit = Path(checkpoint.location.removeprefix("file:")) / "commits" / str(last + 1)
    commit.unlink()
    (commit.parent / f".{commit.name}.crc").unlink()
    other = Repartition(checkpoint.location, last, state.partitions, state.partitions + 5)
    assert checkpoint.repair(other) == ""  # not the interrupted one
    assert checkpoint.repair(change).startswith("finished")
    assert (checkpoint.begun, checkpoint.done) == (last + 1, last + 1)

    checkpoint.roll_back(last)
    assert (checkpoint.begun, checkpoint.done, checkpoint.state()) == (last, last, state)
    left = [path.name for path in commit.parent.parent.glob(f"*/*{last + 1}*")]
    assert not [name for name in left if name in (str(last + 1), f".{last + 1}.crc")]
    assert a_few_batches(spark, counting).done > last
