"""Checkpoints on S3A: which of Spark's managers work, and what creates a file only if it does not exist.

The server is the tests' own (`s3_server.py`). With moto 5.2 in its place the races had the same winners.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from every import EVERY
from py4j.protocol import Py4JJavaError
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from s3_server import LostAnswerError, RefusedError, Request, S3Server
from stateful_query import WordCount

from rheostat.engine.spark.lifecycle.application import spark_checkpoint, temporary_settings

pytestmark = pytest.mark.cluster

MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
PACKAGE = "org.apache.spark.sql.execution.streaming.checkpointing"
MANAGERS = {
    "context": f"{PACKAGE}.FileContextBasedCheckpointFileManager",
    "file system": f"{PACKAGE}.FileSystemBasedCheckpointFileManager",
    "abortable": "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager",
}
CONDITIONAL = "fs.option.create.conditional.overwrite"
ROUNDS = 50 if EVERY else 10


class Bucket:
    """A folder of the bucket, through Hadoop."""

    def __init__(self, spark: SparkSession, folder: str) -> None:
        self._jvm: Any = spark._jvm
        self._url = f"s3a://bucket/{folder}"
        self._conf: Any = spark._jsparkSession.sessionState().newHadoopConf()
        self.files: Any = self.path("").getFileSystem(self._conf)
        self.files.mkdirs(self.path(""))

    def path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self._url}/{name}")

    def manager(self, kind: str | None = None) -> Any:
        """Return a manager of Spark's, the default one without a kind."""
        if kind is not None:
            self._conf.set(MANAGER, MANAGERS[kind])
        package = self._jvm.org.apache.spark.sql.execution.streaming.checkpointing
        return package.CheckpointFileManager.create(self.path(""), self._conf)

    def conditional(self, name: str, etag: str = "") -> Any:
        """Return the stream of a file that is created only if there is none, or replaced only if it has this ETag."""
        builder = self.files.createFile(self.path(name)).overwrite(bool(etag))
        if etag:
            return builder.must(f"{CONDITIONAL}.etag", etag).build()
        return builder.must(CONDITIONAL, "true").build()


@pytest.fixture
def bucket(s3_spark: SparkSession, tmp_path: Path) -> Bucket:
    return Bucket(s3_spark, tmp_path.name)


def write(open_stream: Callable[[], Any], text: str) -> str:
    """Write a file; return the error's class, "" for none."""
    try:
        stream = open_stream()
        stream.write(bytearray(text.encode()))
        stream.close()
    except Py4JJavaError as error:
        return str(error.java_exception.getClass().getSimpleName())
    return ""


def race(open_stream: Callable[[], Any]) -> list[str]:
    """Write a file by two threads at once; return their errors."""
    errors = ["", ""]
    start = threading.Barrier(2)

    def run(writer: int) -> None:
        start.wait()
        errors[writer] = write(open_stream, f"writer {writer}")

    threads = [threading.Thread(target=run, args=(writer,)) for writer in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return errors


def test_spark_takes_the_manager_over_file_context(bucket: Bucket) -> None:
    assert bucket.manager().getClass().getName() == MANAGERS["context"]


@pytest.mark.parametrize("kind", MANAGERS if EVERY else ["context"])
def test_a_stateful_query_runs_restarts_and_is_repartitioned(
    s3_spark: SparkSession, tmp_path: Path, kind: str, server: S3Server
) -> None:
    words = WordCount(s3_spark, tmp_path / "words", f"s3a://bucket/{tmp_path.name}")
    words.add("a b a", "b c")
    with temporary_settings(s3_spark, {MANAGER: MANAGERS[kind]}):
        words.run()
        checkpoint = spark_checkpoint(s3_spark, words.checkpoint)
        checkpoint.repartition(checkpoint.plan(3))
        words.add("d d a")
        words.run()
    assert words.result() == words.expected() == {"a": 3, "b": 2, "c": 1, "d": 2}
    assert server.keys("bucket", f"{tmp_path.name}/commits/")


def test_a_query_whose_writes_are_refused_fails_and_is_exact_after_a_restart(
    s3_spark: SparkSession, tmp_path: Path, server: S3Server
) -> None:
    words = WordCount(s3_spark, tmp_path / "words", f"s3a://bucket/{tmp_path.name}")
    words.add("a b a", "b c")

    def refuse(request: Request) -> None:
        if request.method == "PUT" and request.key.endswith("/commits/1"):
            raise RefusedError(403, "AccessDenied")

    server.before = refuse
    with pytest.raises(StreamingQueryException, match="commits/1"):
        words.run()
    server.before = lambda request: None
    words.run()
    assert words.result() == words.expected()


@pytest.mark.parametrize("kind", MANAGERS)
def test_no_manager_overwrites_a_file_that_exists_but_none_is_atomic(
    bucket: Bucket, kind: str, server: S3Server, tmp_path: Path
) -> None:
    manager = bucket.manager(kind)
    assert write(lambda: manager.createAtomic(bucket.path("claim"), False), "first") == ""
    assert write(lambda: manager.createAtomic(bucket.path("claim"), False), "second").endswith("AlreadyExistsException")
    assert server.content("bucket", f"{tmp_path.name}/claim") == b"first"
    # Each writer's last request waits for the other's: both have looked before one has written.
    both = threading.Barrier(2)

    def meet(request: Request) -> None:
        if request.method == "PUT" and request.key.endswith("/race"):
            both.wait(30)

    server.before = meet
    assert race(lambda: manager.createAtomic(bucket.path("race"), False)) == ["", ""]


def test_of_two_conditional_creates_exactly_one_succeeds(bucket: Bucket, server: S3Server, tmp_path: Path) -> None:
    for number in range(ROUNDS):
        errors = race(lambda name=f"claim-{number}": bucket.conditional(name))  # type: ignore[misc]
        assert sorted(errors) == ["", "RemoteFileChangedException"]
        content = server.content("bucket", f"{tmp_path.name}/claim-{number}")
        assert content.decode() == f"writer {errors.index('')}"


def test_a_conditional_create_is_one_request(bucket: Bucket, server: S3Server) -> None:
    before = len(server.requests)
    assert write(lambda: bucket.conditional("claim"), "text") == ""
    assert [(one.method, one.headers["if-none-match"]) for one in server.requests[before:]] == [("PUT", "*")]


def test_a_file_is_replaced_only_if_it_is_unchanged(bucket: Bucket) -> None:
    assert write(lambda: bucket.conditional("claim"), "first") == ""
    etag = str(bucket.files.getFileStatus(bucket.path("claim")).getETag())
    assert write(lambda: bucket.conditional("claim", etag), "second") == ""
    assert write(lambda: bucket.conditional("claim", etag), "third") == "RemoteFileChangedException"


def test_a_conditional_create_whose_answer_is_lost_is_repeated_and_fails_though_it_succeeded(
    bucket: Bucket, server: S3Server, tmp_path: Path
) -> None:
    lost: list[str] = []

    def lose(request: Request) -> None:
        if request.method == "PUT" and not lost:
            lost.append(request.key)
            raise LostAnswerError

    server.after = lose
    assert write(lambda: bucket.conditional("claim"), "mine") == "RemoteFileChangedException"
    assert lost == [f"{tmp_path.name}/claim"]
    assert server.content("bucket", lost[0]) == b"mine"
