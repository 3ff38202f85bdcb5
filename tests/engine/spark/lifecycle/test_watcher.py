"""The watcher of a real-time query, and the deadlines of a restart."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from folder_spark import CallError, Faults, Format, Job
from kth_failure import World

from rheostat.deadline import Deadline
from rheostat.engine.spark.lifecycle import restart, watcher
from rheostat.engine.spark.lifecycle.watcher import Watcher
from rheostat.errors import EngineLate
from rheostat.job.allocation import Allocation
from rheostat.job.observation import Status


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(Job(tmp_path, Format()), Faults())
    world.begin()
    world.process()
    return world


def fail(world: World, why: str = "a task failed four times") -> None:
    assert world.application.query is not None
    world.application.query._active, world.application.query._error = False, RuntimeError(why)


def test_a_failed_query_is_started_again_and_one_that_the_user_stopped_is_not(world: World) -> None:
    watch = Watcher("words", world.pipeline, lambda: None)
    first = world.application.query
    fail(world)
    assert not watch.watch()
    assert world.runs()
    assert world.application.query is not first
    assert watch.failures == ["a task failed four times"]
    world.pipeline.query.stop()
    assert watch.watch()
    assert not world.runs()


def test_an_error_of_a_call_into_spark_does_not_end_the_watcher(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher, "WATCH_S", 0.001)
    watch = Watcher("words", world.pipeline, lambda: None)
    fail(world)
    faults = world.application.faults
    faults.at = len(faults.calls) + 1  # the first look at the query
    watch.start()
    deadline = threading.Event()
    while not world.runs() and not deadline.wait(0.001):
        assert watch._thread.is_alive()
    assert any("isActive" in what for what in faults.calls)
    watch.closed.set()
    watch._thread.join(10)


def test_a_query_that_keeps_failing_is_given_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher, "BACK_OFF_S", (0.0, 0.0))
    watch = Watcher("words", world.pipeline, lambda: None)
    for _ in range(2):
        fail(world)
        assert not watch.watch()
    fail(world, "no such table")
    assert watch.watch()
    assert watch.given_up
    assert "given up after 3 failures: no such table" in str(world.pipeline.failure)


def test_a_stop_that_hangs_ends_at_its_deadline_and_the_query_is_started_again(world: World) -> None:
    hanging, query = threading.Event(), world.application.query
    assert query is not None
    stop = query.stop
    query.stop = lambda: (hanging.wait(60), stop())[1]  # type: ignore[method-assign]
    world.pipeline._stopping = Deadline(0.05)

    def note(name: str) -> None:
        if "as before" in name:
            hanging.set()

    # A query that is about to stop is not active for Spark.
    query._active = True
    world.pipeline.restart(lambda: Allocation({"job": 2}), note)
    world.pipeline.wait()
    assert isinstance(world.pipeline.failure, EngineLate)
    hanging.set()
    assert world.runs()


def test_a_first_batch_that_takes_long_is_observed_as_it_runs(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(type(world.pipeline.shape), "is_processing", lambda *_: False)
    begun_s = world.clock.now()
    world.restart(2)
    assert world.pipeline.failure is None
    assert world.pipeline.status is Status.RUNNING
    assert world.clock.now() - begun_s >= restart.FIRST_BATCH_S
    assert "it is observed as it runs" in caplog.text


def test_a_batch_that_never_ends_does_not_hold_a_restart_for_ever(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = world.application.query
    monkeypatch.setattr(type(query), "status", property(lambda _: {"message": "Processing new data"}))
    monkeypatch.setattr(restart, "POLL_S", 10.0)
    world.restart(5)
    assert "only after a whole batch, and none ended in 900 s" in str(world.pipeline.failure)
    assert world.runs()
    assert world.application.query is query


@pytest.mark.parametrize(
    "why",
    [
        "[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log. Multiple streaming jobs detected for 5.",
        "Multiple streaming queries are concurrently using file:/checkpoint/commits.",
    ],
)
def test_a_batch_that_the_overtaken_driver_commits_after_the_take_over_does_not_end_its_successor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """It was suspended just before its commit, and wakes while the successor repeats that batch."""
    job = Job(tmp_path, Format())
    first = World(job)
    first.begin()
    first.process()
    successor = World(job)
    starts: list[Any] = []
    start = successor.application.start

    def interfere(*arguments: Any) -> Any:
        query: Any = start(*arguments)
        starts.append(query)
        if len(starts) == 1:
            query.query._active, query.query._error = False, RuntimeError(why)
        return query

    monkeypatch.setattr(successor.application, "start", interfere)
    successor.begin()
    assert successor.pipeline.failure is None
    assert len(starts) == 2
    assert successor.runs()


def test_the_error_of_a_failing_call_is_not_hidden(world: World) -> None:
    faults = world.application.faults
    faults.at = len(faults.calls) + 4
    world.restart(2)
    assert isinstance(world.pipeline.failure, CallError)
    assert world.runs()


def test_with_a_dead_jvm_no_start_is_tried_again_and_again(world: World) -> None:
    """Found by a soak: the driver's Python lived on for two minutes after its JVM was killed in a restart."""
    begun_s = world.clock.now()

    def note(name: str) -> None:
        if name.startswith("start with"):
            world.application.has_ended = True
            raise ConnectionRefusedError(111, "Connection refused")

    world.pipeline.restart(lambda: Allocation({"job": 2}), note)
    world.pipeline.wait()
    assert "the next start repairs it" in str(world.pipeline.failure)
    assert world.clock.now() - begun_s < 1.0
    watch = Watcher("words", world.pipeline, lambda: None)
    assert watch.watch()
    assert watch.given_up
