"""The double of a Spark application and the real one behave alike: what the lifecycle needs of both.

`folder_spark.py` is the double on which `test_kth_failure.py` lets every call fail. What is asserted here of both is
what those tests rely on.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from folder_spark import CountingJob, Format, Job, JobApplication, JobQuery
from pyspark.sql import SparkSession
from spark_job import SparkJob

from rheostat.clock import WallClock
from rheostat.engine.spark.lifecycle.application import temporary_settings
from rheostat.engine.spark.lifecycle.checkpoint import NOTE, SAME, Checkpoint, StateStore
from rheostat.engine.spark.lifecycle.restart import BATCH_RUNS, TWO_DRIVERS, await_gap
from rheostat.errors import EngineError, first_line

FORMATS = [Format(1, False), Format(1, True), Format(2, False), Format(2, True)]
PATIENCE_S = 60.0
every_format = pytest.mark.parametrize("written", FORMATS, ids=lambda each: f"v{each.version}-{each.changelog}")


class Drive:
    """A driver of a counting job, and what its checkpoint holds."""

    def __init__(self, job: CountingJob) -> None:
        self.job = job
        self.application: JobApplication = job.application()
        self.checkpoint: Checkpoint = self.application.checkpoint(job.files.location)

    def start(self, partitions: int = 2) -> JobQuery:
        self.application.start(self.job.start, partitions, lambda _: None)
        assert self.application.query is not None
        return self.application.query

    def process(self, query: JobQuery, batches: int = 1) -> None:
        for _ in range(batches):
            self.job.feed(20)
            query.process_all()

    def run(self, batches: int = 1, partitions: int = 2) -> None:
        """Run some batches, and stop after them."""
        query = self.start(partitions)
        self.process(query, batches)
        query.stop()

    def stop_inside_batch(self, query: JobQuery) -> None:
        """Stop a query while it runs a batch."""
        with self.job.paused():
            self.job.feed(20)
            await_true(lambda: self.is_inside_batch(query))
            query.stop()

    def is_inside_batch(self, query: JobQuery) -> bool:
        return query.status["message"].startswith("Processing") and self.checkpoint.begun > self.checkpoint.done

    def use_tool(self, partitions: int, exactly_once: bool = True) -> None:
        self.checkpoint._tool(self.checkpoint.location, partitions, exactly_once, str(self.job.format.version))

    def logs(self) -> tuple[int, int]:
        """Return the last batch that has begun, and the last one that has ended."""
        return self.checkpoint.begun, self.checkpoint.done

    def offset(self, batch: int) -> str:
        return (self.job.files.text("offsets", str(batch)) or "").splitlines()[2]

    def partitions(self) -> int:
        state = self.checkpoint.state()
        assert state is not None
        return state.partitions

    def commit(self, batch: int) -> tuple[str, dict[str, Any]]:
        version, text = (self.job.files.text("commits", str(batch)) or "").splitlines()
        return version, json.loads(text)

    def state(self, batch: int) -> dict[int, str]:
        """Return the file of every partition's state after a batch."""
        found = {}
        for partition in self.job.files.entries("state", "0"):
            names = self.job.files.entries("state", "0", partition) if partition.isdigit() else {}
            for name in names:
                if re.match(rf"{batch + 1}(_[^.]+)?\.(zip|changelog)$", name):
                    found[int(partition)] = name
        return found

    def names(self, batch: int, kind: str) -> dict[int, str]:
        """Return the names that the files of a batch should have: those of format 2 stand in its commit."""
        if self.job.format.version == 1:
            return dict.fromkeys(range(self.partitions()), f"{batch + 1}.{kind}")
        (ids,) = self.commit(batch)[1]["stateUniqueIds"].values()
        return {partition: f"{batch + 1}_{unique}.{kind}" for partition, (unique,) in enumerate(ids)}


def await_true(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, "the condition has not come true"
        time.sleep(0.005)


def failure(query: JobQuery) -> str:
    """Let a query fail, and return the line that is reported."""
    with pytest.raises(Exception, match=r"\w"):
        query.process_all()
    await_true(lambda: not query.isActive)
    error = query.exception()
    assert error is not None
    return first_line(error)


class ApplicationConformance:
    """What holds for all applications; a subclass has a fixture `job` over an empty folder."""

    @pytest.fixture
    def written(self) -> Format:
        return Format()

    @pytest.fixture
    def drive(self, job: CountingJob) -> Drive:
        return Drive(job)

    # -- batches -------------------------------------------------------------------------------------------------

    @every_format
    def test_a_batch_is_in_both_logs_and_a_repartition_is_a_batch_that_reads_nothing(
        self, job: CountingJob, drive: Drive
    ) -> None:
        assert drive.checkpoint.state() is None
        drive.run(batches=2)
        assert drive.logs() == (1, 1)
        assert sorted(job.files.entries("offsets").keys() & {"0", "1", "2"}) == ["0", "1"]
        drive.checkpoint.check()
        assert drive.checkpoint.state() == StateStore(2, "RocksDBStateStoreProvider")
        assert (drive.checkpoint.operators(), drive.checkpoint.immovable_reason()) == (("stateStoreSave",), "")
        assert (drive.offset(0) != drive.offset(1), drive.commit(1)[0]) == (True, f"v{job.format.version}")
        assert drive.state(1) == drive.names(1, "changelog" if job.format.changelog else "zip")
        metadata = job.files.text("state", "0", "_metadata", "metadata")

        drive.use_tool(3)
        assert (drive.logs(), drive.partitions(), drive.offset(2)) == ((2, 2), 3, drive.offset(1))
        assert (drive.commit(2)[0], len(drive.state(2))) == (f"v{job.format.version}", 3)
        assert drive.state(2) == drive.names(2, "zip")  # a snapshot, also with changelogs
        assert job.files.text("state", "0", "_metadata", "metadata") == metadata
        assert not job.files.entries("state", "0", "_metadata", "v2")

        drive.run(partitions=7)  # the number in the checkpoint counts
        assert (drive.logs(), drive.partitions(), job.results()) == ((3, 3), 3, job.expected())
        assert drive.state(3) == drive.names(3, "changelog" if job.format.changelog else "zip")

    def test_a_query_without_new_data_makes_progress_without_a_batch(self, job: CountingJob, drive: Drive) -> None:
        drive.run()
        query = drive.start()
        await_true(lambda: query.lastProgress is not None)
        assert (query.lastProgress["batchId"], query.lastProgress["numInputRows"]) == (1, 0)
        assert drive.logs() == (0, 0)
        drive.process(query)
        await_true(lambda: query.lastProgress["numInputRows"] == 20)
        assert (query.lastProgress["batchId"], job.results()) == (1, job.expected())
        query.stop()

    # -- stops ---------------------------------------------------------------------------------------------------

    def test_a_stop_after_a_batch_leaves_whole_batches(self, drive: Drive) -> None:
        query = drive.start()
        drive.process(query)
        assert query.isActive
        assert await_gap(query, WallClock(), PATIENCE_S)
        query.stop()
        assert (drive.logs(), query.isActive, query.exception()) == ((0, 0), False, None)
        assert query.status["message"] == "Stopped"
        assert query.lastProgress["batchId"] == 0
        query.stop()
        assert not await_gap(query, WallClock(), PATIENCE_S)

    def test_a_stop_inside_a_batch_leaves_its_offsets_and_the_next_query_repeats_it(
        self, job: CountingJob, drive: Drive
    ) -> None:
        with job.paused():
            job.feed(20)
            query = drive.start()
            await_true(lambda: drive.is_inside_batch(query))
            assert query.status["message"].startswith(BATCH_RUNS)
            assert query.lastProgress is None
            query.stop()
        assert (drive.logs(), query.isActive, query.exception()) == ((0, -1), False, None)
        begun = job.files.text("offsets", "0")
        job.feed(20)
        query = drive.start(partitions=5)
        query.process_all()
        assert (job.files.text("offsets", "0"), job.results()) == (begun, job.expected())
        assert (drive.logs(), drive.partitions()) == ((1, 1), 2)  # the number of the batch that had begun
        query.stop()

    def test_the_second_start_on_a_checkpoint_stops_the_first_query(self, job: CountingJob, drive: Drive) -> None:
        first = drive.start()
        drive.process(first)
        second = drive.start()
        assert (first.isActive, first.exception(), second.isActive) == (False, None, True)
        drive.process(second)
        assert (drive.logs(), job.results()) == ((1, 1), job.expected())
        second.stop()

    # -- admission -----------------------------------------------------------------------------------------------

    def test_a_query_is_admitted_before_its_first_batch(self, job: CountingJob, drive: Drive) -> None:
        asked = []

        def admit(location: str) -> None:
            time.sleep(0.05)  # a query that does not wait would begin
            asked.append((drive.application.same(location, job.files.location), drive.logs()))

        job.feed(20)
        started = drive.application.start(job.start, 2, admit)
        assert drive.application.same(drive.application.location(started), job.files.location)
        assert not drive.application.same(job.files.location, job.files.location + "2")
        assert drive.application.query is not None
        drive.application.query.process_all()
        assert (asked, drive.logs()) == ([(True, (-1, -1))], (0, 0))
        started.stop()

    def test_a_refused_query_ends_without_a_batch_and_so_does_the_one_before_it(
        self, job: CountingJob, drive: Drive
    ) -> None:
        first = drive.start()
        drive.process(first)

        def refuse(_: str) -> None:
            raise EngineError("another driver runs on it")

        for _ in range(2):
            with pytest.raises(EngineError, match="another driver runs on it"):
                drive.application.start(job.start, 2, refuse)
            assert (first.isActive, drive.logs()) == (False, (0, 0))
            job.feed(20)
        query = drive.start()
        query.process_all()
        assert (drive.logs(), job.results()) == ((1, 1), job.expected())
        query.stop()

    # -- failures ------------------------------------------------------------------------------------------------

    def test_of_two_drivers_one_commits_a_batch(self, job: CountingJob, drive: Drive) -> None:
        query = drive.start()
        drive.process(query)
        # Another driver runs the next batch.
        for log in ("offsets", "commits"):
            assert job.files.create(job.files.text(log, "0") or "", log, "1")
        job.feed(20)
        assert "CONCURRENT_STREAM_LOG_UPDATE" in failure(query)
        assert drive.logs() == (1, 1)

    def test_a_batch_that_another_driver_commits_meanwhile_fails(self, job: CountingJob, drive: Drive) -> None:
        query = drive.start()
        drive.process(query)
        with job.paused():
            job.feed(20)
            await_true(lambda: drive.is_inside_batch(query))
            assert job.files.create(job.files.text("commits", "0") or "", "commits", "1")
            job.resume()
            assert "CONCURRENT_STREAM_LOG_UPDATE" in failure(query)
        assert drive.logs() == (1, 1)

    def test_a_query_that_cannot_load_its_state_fails_and_says_why(self, job: CountingJob, drive: Drive) -> None:
        drive.run()
        job.files.delete("state", "0", "1", drive.state(0)[1])
        query = drive.start()
        job.feed(20)
        assert "CANNOT_LOAD_STATE_STORE" in failure(query)
        assert drive.logs() == (1, 0)

    # -- the tool ------------------------------------------------------------------------------------------------

    @every_format
    def test_a_batch_that_has_not_finished_is_kept_or_dropped(self, job: CountingJob, drive: Drive) -> None:
        drive.run()
        drive.stop_inside_batch(drive.start())
        assert drive.logs() == (1, 0)
        with pytest.raises(Exception, match="LAST_BATCH_FAILED"):
            drive.use_tool(3, exactly_once=True)
        assert (drive.logs(), drive.partitions()) == ((1, 0), 2)

        drive.use_tool(3, exactly_once=False)
        assert (drive.logs(), drive.partitions()) == ((2, 2), 3)
        assert drive.commit(1) == ("v1", {"nextBatchWatermarkMs": 0})
        assert (drive.offset(2), drive.offset(1) != drive.offset(0)) == (drive.offset(0), True)
        assert (drive.state(1), drive.state(2)) == ({}, drive.names(2, "zip"))
        query = drive.start()
        query.process_all()  # what the dropped batch has read is read again
        assert (drive.logs(), job.results()) == ((3, 3), job.expected())
        query.stop()

    def test_the_same_number_of_partitions_is_an_error_of_the_tool(self, drive: Drive) -> None:
        drive.run()
        for exactly_once in (True, False):
            with pytest.raises(Exception, match=SAME):
                drive.use_tool(2, exactly_once)
        assert drive.logs() == (0, 0)
        drive.checkpoint.repartition(drive.checkpoint.plan(2))
        assert drive.logs() == (0, 0)

    def test_the_tool_needs_a_batch_that_has_finished(self, drive: Drive) -> None:
        with pytest.raises(Exception, match="NO_COMMITTED_BATCH"):
            drive.use_tool(3)
        drive.stop_inside_batch(drive.start())
        with pytest.raises(Exception, match="NO_COMMITTED_BATCH"):
            drive.use_tool(3, exactly_once=False)
        assert drive.logs() == (0, -1)

    def test_an_interrupted_repartition_stops_a_query_until_it_is_repeated(
        self, job: CountingJob, drive: Drive
    ) -> None:
        drive.run()
        drive.use_tool(3)
        job.files.delete("commits", "1")
        assert "STREAMING_UNFINISHED_REPARTITION_DETECTED" in failure(drive.start())
        assert drive.logs() == (1, 0)
        with pytest.raises(Exception, match="LAST_BATCH_ABANDONED_REPARTITION"):
            drive.use_tool(4)
        drive.use_tool(3)
        assert drive.logs() == (1, 1)
        drive.run()
        assert (drive.partitions(), job.results()) == (3, job.expected())

    @pytest.mark.parametrize("written", FORMATS[1:3], ids=str)
    def test_an_interrupted_repartition_is_undone_by_deleting(self, job: CountingJob, drive: Drive) -> None:
        drive.run()
        drive.stop_inside_batch(drive.start())
        change = drive.checkpoint.plan(3)
        drive.checkpoint.repartition(change, exactly_once=False)
        job.files.delete("commits", "2")
        job.files.replace(json.dumps({"batch": 0, "begun": 1, "old": 2, "new": 3}), *NOTE)
        assert drive.checkpoint.settle() == f"undone: {change}"
        assert (drive.logs(), drive.partitions(), drive.state(2)) == ((1, 0), 2, {})
        drive.run()
        assert (drive.logs(), job.results()) == ((2, 2), job.expected())

    def test_a_task_that_fails_leaves_an_unfinished_repartition(self, job: CountingJob) -> None:
        drive = Drive(job)
        drive.run()
        failing = job.application(tool_fails_at=2).checkpoint(job.files.location)
        with pytest.raises(Exception, match=r"\w"):
            failing._tool(failing.location, 3, True, str(job.format.version))
        assert (drive.logs(), drive.partitions()) == ((1, 0), 3)
        with pytest.raises(EngineError, match="the state cannot be repartitioned"):
            failing.repartition(failing.plan(3))

    # -- the driver ----------------------------------------------------------------------------------------------

    def test_a_driver_has_a_token_for_every_call(self, drive: Drive) -> None:
        assert not drive.application.ended()
        assert drive.application.driver().token != drive.application.driver().token


class TestFolderApplication(ApplicationConformance):
    @pytest.fixture
    def job(self, tmp_path: Path, written: Format) -> CountingJob:
        return Job(tmp_path, written)


@pytest.mark.cluster
class TestSparkApplication(ApplicationConformance):
    @pytest.fixture
    def job(self, spark: SparkSession, tmp_path: Path, written: Format) -> Iterator[CountingJob]:
        with temporary_settings(spark, SparkJob.settings(written)):
            job = SparkJob(spark, tmp_path, written)
            yield job
            job.end_queries()

    def test_a_file_of_a_log_that_appears_as_spark_writes_it_has_an_error_of_its_own(
        self, job: CountingJob, drive: Drive, tmp_path: Path
    ) -> None:
        query = drive.start()
        drive.process(query)
        # Spark finds no file, writes a draft, and renames it. The rename fails on a checksum as on the file itself.
        (tmp_path / "checkpoint" / "offsets" / ".1.crc").write_text("")
        job.feed(20)
        why = failure(query)
        assert "CONCURRENT_STREAM_LOG_UPDATE" not in why
        assert TWO_DRIVERS.search(why)
