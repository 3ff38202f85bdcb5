"""The store with faults: without faults it is a good one, with a fault a query fails where the fault says."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import stateful_query
from bad_store import BadStore, Fault, add_to, conf
from every import EVERY
from py4j.protocol import Py4JJavaError
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from stateful_query import WordCount

from rheostat.engine.spark.lifecycle.application import spark_checkpoint, temporary_settings

pytestmark = pytest.mark.cluster


@pytest.fixture(params=["FileContext", "FileSystem"])
def bad_spark(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[SparkSession]:
    """A Spark with either of its two ways to write a checkpoint."""
    add_to(spark, request.param)
    with temporary_settings(spark, stateful_query.SETTINGS):
        yield spark


@pytest.fixture
def store(tmp_path: Path) -> BadStore:
    return BadStore(tmp_path)


@pytest.fixture
def words(bad_spark: SparkSession, store: BadStore, tmp_path: Path) -> WordCount:
    return WordCount(bad_spark, tmp_path / "words", store.url("checkpoint"))


class Manager:
    """Spark's manager of a checkpoint's files, as it is used for a store."""

    def __init__(self, spark: SparkSession, store: BadStore) -> None:
        jvm: Any = spark._jvm
        self._path, self._store = jvm.org.apache.hadoop.fs.Path, store
        package = jvm.org.apache.spark.sql.execution.streaming.checkpointing
        conf_of_files = spark._jsparkSession.sessionState().newHadoopConf()
        self.java: Any = package.CheckpointFileManager.create(self._path(store.url()), conf_of_files)

    def write(self, name: str, text: str, *, overwrite: bool) -> str:
        """Write a file; return the error's class, "" for none."""
        try:
            stream = self.java.createAtomic(self._path(self._store.url(name)), overwrite)
            stream.write(bytearray(text.encode()))
            stream.close()
        except Py4JJavaError as error:
            return str(error.java_exception.getClass().getSimpleName())
        return ""


@pytest.fixture
def manager(bad_spark: SparkSession, store: BadStore) -> Manager:
    return Manager(bad_spark, store)


def wait_until(condition: Callable[[], object]) -> None:
    deadline_s = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.002)


def test_a_stateful_query_runs_restarts_and_is_repartitioned(
    bad_spark: SparkSession, words: WordCount, store: BadStore
) -> None:
    words.add("a b a", "b c")
    words.run()
    words.add("a d")
    words.run()
    assert words.result() == words.expected() == {"a": 3, "b": 2, "c": 1, "d": 1}
    checkpoint = spark_checkpoint(bad_spark, words.checkpoint)
    checkpoint.repartition(checkpoint.plan(3))
    words.add("d d")
    words.run()
    assert words.result() == words.expected()
    assert store.calls("rename", "/commits/2")
    assert store.calls("create", "/state/")


def test_spark_takes_the_manager_that_the_store_allows(manager: Manager, request: pytest.FixtureRequest) -> None:
    kind = request.node.callspec.params["bad_spark"]
    assert manager.java.getClass().getSimpleName() == f"{kind}BasedCheckpointFileManager"


STORE_ERROR, STATE_ERROR = "bad store: ", "CANNOT_WRITE_STATE_STORE"


FAULTS = [
    (Fault("fail", "rename", nth=2, path="/commits/"), STORE_ERROR),
    (Fault("lose", "rename", nth=2, path="/commits/"), STORE_ERROR),
    (Fault("fail", "rename", nth=2, path="/offsets/"), STORE_ERROR),
    (Fault("lose", "rename", nth=2, path="/offsets/"), STORE_ERROR),
    (Fault("fail", "create", nth=3, path="/state/0/./"), STATE_ERROR),
    (Fault("lose", "close", nth=3, path="/state/0/./"), STATE_ERROR),
    (Fault("fail", "list", nth=1, path="/offsets"), STORE_ERROR),
]


@pytest.mark.parametrize(
    ("fault", "error"),
    FAULTS if EVERY else FAULTS[::3],
    ids=lambda value: f"{value.effect}-{value.kind}-{value.path}" if isinstance(value, Fault) else "",
)
def test_a_query_fails_where_the_fault_says_and_is_exact_after_a_restart(
    words: WordCount, store: BadStore, fault: Fault, error: str
) -> None:
    words.add("a b a", "b c", "c")
    with store.faults(fault), pytest.raises((StreamingQueryException, Py4JJavaError), match=error):
        words.run()
    assert [call.outcome for call in store.calls() if call.outcome != "ok"] == [fault.effect]
    words.run()
    assert words.result() == words.expected()


def test_a_query_is_exact_on_a_slow_store_whose_renames_copy(words: WordCount, store: BadStore) -> None:
    words.add("a b a", "b c")
    with store.faults(Fault("copy", "rename"), Fault("slow", "any", ms=1)):
        words.run()
        words.add("a")
        words.run()
    assert words.result() == words.expected()
    assert {call.outcome for call in store.calls("rename")} == {"copy"}


def test_a_copy_that_stops_half_way_leaves_half_a_file(words: WordCount, store: BadStore) -> None:
    words.add("a b a", "b c")
    half = Fault("fail", "half", nth=2, path="/offsets/")
    with store.faults(Fault("copy", "rename"), half), pytest.raises(StreamingQueryException, match="half of"):
        words.run()
    offsets = store.folder / "checkpoint" / "offsets"
    sizes = [(offsets / name).stat().st_size for name in ("0", "1")]
    assert sizes[1] <= sizes[0] // 2 + 1
    with pytest.raises((StreamingQueryException, Py4JJavaError)):
        words.run()


def test_of_two_writers_of_one_file_exactly_one_succeeds_without_faults(manager: Manager, store: BadStore) -> None:
    for number in range(20):
        errors = write_twice(manager, f"claim-{number}", overwrite=False)
        assert errors.count("") == 1
        winner = errors.index("")
        assert (store.folder / f"claim-{number}").read_text() == f"writer {winner}"


def write_twice(manager: Manager, name: str, *, overwrite: bool) -> list[str]:
    """Write a file by two threads at once; return their errors."""
    errors = ["", ""]
    start = threading.Barrier(2)

    def write(writer: int) -> None:
        start.wait()
        errors[writer] = manager.write(name, f"writer {writer}", overwrite=overwrite)

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return errors


def test_a_held_copy_shows_half_a_file_to_readers_and_overwrites_one_that_exists(
    manager: Manager, store: BadStore
) -> None:
    assert manager.write("claim", "an older claim", overwrite=False) == ""
    errors: list[str] = []
    writer = threading.Thread(target=lambda: errors.append(manager.write("claim", "12345678", overwrite=True)))
    with store.faults(Fault("copy", "rename"), Fault("hold", "half")):
        writer.start()
        wait_until(lambda: store.calls("half"))
        assert (store.folder / "claim").read_text() == "1234"
    writer.join(60)
    assert errors == [""]
    assert (store.folder / "claim").read_text() == "12345678"


def test_a_slow_call_takes_its_time(manager: Manager, store: BadStore) -> None:
    began_s = time.monotonic()
    with store.faults(Fault("slow", "create", ms=300, path="claim")):
        assert manager.write("claim", "text", overwrite=True) == ""
    assert time.monotonic() - began_s >= 0.3


@pytest.mark.skipif(not EVERY, reason="test_lifecycle.py crashes drivers, too")
def test_a_driver_that_crashes_at_a_call_leaves_what_a_restart_needs(
    spark: SparkSession, store: BadStore, tmp_path: Path
) -> None:
    add_to(spark)
    words = WordCount(spark, tmp_path / "words", store.url("checkpoint"))
    words.add("a b a", "b c")
    run = [sys.executable, stateful_query.__file__, str(words.folder), words.checkpoint, json.dumps(conf())]
    with store.faults(Fault("crash after", "rename", nth=2, path="/offsets/")):
        crashed = subprocess.run(run, capture_output=True, text=True, check=False, timeout=180)
    assert crashed.returncode != 0
    assert not crashed.stdout
    assert {path.name for path in (store.folder / "checkpoint" / "offsets").glob("[01]")} == {"0", "1"}
    assert {path.name for path in (store.folder / "checkpoint" / "commits").glob("[01]")} == {"0"}
    with temporary_settings(spark, stateful_query.SETTINGS):
        words.run()
    assert words.result() == words.expected()
