"""Restarts on stores of several kinds: counts stay exact while calls fail, lose their answers or kill the JVM."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import lifecycle_stores
import pytest
import stateful_query
from bad_store import Fault, add_to
from every import EVERY
from lifecycle_stores import COPYING, KINDS, Bad, Driver, Store
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from rheostat.engine.spark.lifecycle import owner, restart
from rheostat.engine.spark.lifecycle.application import temporary_settings
from rheostat.engine.spark.lifecycle.checkpoint import NOTE
from rheostat.errors import EngineError

pytestmark = pytest.mark.cluster

EFFECTS = ("fail", "lose")
FIRST_STATE, TOOL_COMMIT = "/state/0/2/", r"/commits/\.?3"
"""Calls inside the tool: two partitions become three after batches 0 to 2."""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restart, "RESTORE_S", (0.0, 0.1, 0.2, 0.5, 1.0, 1.0, 1.0))
    monkeypatch.setattr(owner, "RENEW_S", 0.5)


class Job:
    """One job's folder and checkpoint, with a driver after the other."""

    def __init__(self, spark: SparkSession, folder: Path, checkpoint: str) -> None:
        self._spark, self.folder, self.checkpoint = spark, folder, checkpoint
        self.driver = self.new()

    def new(self) -> Driver:
        return Driver(self._spark, self.folder, self.checkpoint)

    def repaired(self) -> Driver:
        """Return a driver whose query runs: the present one, or the next one."""
        if not self.driver.runs():
            self.driver.end()
            self.driver = self.new()
            self.driver.begin()
        return self.driver

    def reload(self) -> Driver:
        """End the driver in order, and begin the next one."""
        self.driver.end()
        self.driver = self.new()
        self.driver.begin()
        return self.driver


@pytest.fixture
def job(spark: SparkSession, store: Store, tmp_path: Path) -> Iterator[Job]:
    one = Job(spark, tmp_path / "words", store.url("checkpoint"))
    yield one
    one.driver.end()


def keep_the_claim(driver: Driver, store: Store) -> None:
    """Let all renewals fail for a while: the query goes on."""
    query = driver.pipeline.query
    for effect in EFFECTS:
        with store.faults(Fault(effect, "any", path="/rheostat/drivers")):  # type: ignore[arg-type]
            deadline_s = time.monotonic() + 30
            while not store.hit:
                assert time.monotonic() < deadline_s
                time.sleep(0.02)
            driver.check()
    assert driver.pipeline.query is query
    driver.pipeline.confirm_claim()


def test_counts_are_exact_after_restarts_in_which_calls_fail_or_lose_their_answers(job: Job, store: Store) -> None:
    driver = job.driver
    driver.begin()
    driver.check()
    keep_the_claim(driver, store)
    assert driver.restart(2) is None  # nothing moves
    driver.check()
    before = {kind: store.count(kind) for kind in KINDS}
    assert driver.restart(3) is None
    calls = {kind: store.count(kind) - before[kind] for kind in KINDS}
    driver.check()
    assert driver.partitions() == 3
    choice = random.Random(7)
    cases = [(kind, effect) for kind, effect in product(KINDS, EFFECTS) if calls[kind]]
    cases = cases * 5 if EVERY else choice.sample(cases, 3)
    hits, slots = 0, 3
    for kind, effect in cases:
        slots = 5 - slots
        nth = choice.randint(1, calls[kind])
        with store.faults(Fault(effect, kind, nth=nth)):  # type: ignore[arg-type]
            job.driver.restart(slots)
        hits += store.hit
        case = f"{effect} {kind} {nth}"
        assert not job.driver.pipeline.activity, case
        job.repaired().check()
        assert job.driver.partitions() in (2, 3), case
    assert hits >= len(cases) // 2
    # The next driver loads the state again, and moves it.
    driver = job.reload()
    driver.check()
    assert driver.restart(5 - driver.partitions()) is None
    driver.check()
    assert not driver.pipeline.application.checkpoint(job.checkpoint).files.text(*NOTE)


def crash(job: Job, store: Store, fault: Fault) -> None:
    """Run a driver in a process of its own until a call kills its JVM."""
    command = [sys.executable, lifecycle_stores.__file__, str(job.folder), job.checkpoint, json.dumps(store.settings)]
    with store.faults(fault):
        child = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        store.crash = lambda: os.killpg(child.pid, signal.SIGKILL)
        out, error = child.communicate(timeout=240)
    assert store.hit, error[-2000:]
    assert (child.returncode, out) in ((9, ""), (-signal.SIGKILL, "")), error[-2000:]


KILLS = list(product(("context", "copying", "s3a"), ("state", "commit")))


@pytest.mark.parametrize(("store", "inside"), KILLS if EVERY else [("s3a", "commit")], indirect=["store"])
def test_what_a_kill_inside_the_tool_and_one_inside_its_undoing_leave_is_repaired(
    job: Job, store: Store, inside: str
) -> None:
    checkpoint = job.driver.pipeline.application.checkpoint(job.checkpoint)
    crash(job, store, Fault("crash", "create", nth=1, path=FIRST_STATE if inside == "state" else TOOL_COMMIT))
    assert checkpoint.files.text(*NOTE) is not None
    assert (checkpoint.done, checkpoint.begun) == (2, 3)
    if inside == "commit":
        crash(job, store, Fault("crash", "delete", nth=1, path="/offsets/3"))
        assert checkpoint.files.text(*NOTE) is not None
        assert (checkpoint.done, checkpoint.begun) == (2, 3)
    driver = job.driver
    driver.begin()
    assert checkpoint.files.text(*NOTE) is None
    driver.check()
    assert driver.partitions() == 2
    assert driver.restart(3) is None
    driver.check()
    job.reload().check()


@pytest.mark.parametrize("log", ["offsets", "commits"])
def test_half_a_file_in_sparks_logs_is_refused_with_the_remedy(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest, log: str
) -> None:
    """Where renames copy, a kill can leave half a file."""
    add_to(spark, "FileSystem")
    store = Bad(tmp_path, *COPYING, access="FileSystem")
    with temporary_settings(spark, stateful_query.SETTINGS):
        job = Job(spark, tmp_path / "words", store.url("checkpoint"))
        request.addfinalizer(lambda: job.driver.end())
        job.driver.begin()
        with store.faults(Fault("fail", "half", nth=1, path=f"/{log}/")):
            job.driver.words.add("x")
            with pytest.raises(StreamingQueryException):
                job.driver.pipeline.query.processAllAvailable()
        with pytest.raises(EngineError, match=rf"{log}/1 in .* is half written.*delete {log}/1"):
            job.reload()
        job.driver.pipeline.application.checkpoint(job.checkpoint).files.delete(log, "1")
        job.reload().check()
