"""Sampled calls of a pipeline fail on a real Spark, in the scenarios of `test_kth_failure.py`.

A call raises, its answer is lost, or the driver is killed in it. Such a kill leaves the JVM alive: no later call of the
driver has an effect, and its query is stopped. (`rheostat bench rescale --only kills` kills processes.) Eight samples
are quick; `RHEOSTAT_EVERY_K=1` tries all.
"""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any, cast

import pytest
from every import EVERY
from folder_spark import CallError, Format, Job
from kth_failure import SCENARIOS, World, stopped
from pyspark.sql import SparkSession
from spark_job import DeadlyFaults, KilledError, SparkJob

from rheostat.engine.spark.lifecycle import owner, restart
from rheostat.engine.spark.lifecycle.application import spark_checkpoint, temporary_settings
from rheostat.engine.spark.lifecycle.checkpoint import NOTE
from rheostat.engine.spark.lifecycle.owner import Owner
from rheostat.errors import RheostatError

pytestmark = pytest.mark.cluster

QUICK = 8
ROUNDS = 2
"""Calls that fail of every scenario, in every way."""
HOWS = ("raise", "lost", "kill")
FORMATS = (Format(1, True), Format(1, False), Format(2, False), Format(2, True))
CALLS = {
    "begin": 20,
    "stop": 4,
    "restart": 18,
    "move": 30,
    "move-without-exactly-once": 30,
    "refused-move": 30,
    "refused-move-without-exactly-once": 30,
    "repair": 20,
    "repair-without-exactly-once": 20,
}
"""Calls of a scenario of which one fails; a wait counts as one."""


def samples() -> list[tuple[str, str, int, Format]]:
    """Draw calls: in every round each scenario fails in every way."""
    dice, drawn = random.Random(17), list[tuple[str, str, int, Format]]()
    for _ in range(ROUNDS):
        pairs = list(product(CALLS, HOWS))
        dice.shuffle(pairs)
        drawn += [(scenario, how, dice.randint(1, CALLS[scenario]), dice.choice(FORMATS)) for scenario, how in pairs]
    return drawn if EVERY else drawn[:QUICK]


@pytest.fixture
def owners(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Owner]]:
    """Claims of all drivers of a test. They are renewed by no thread, and end with the test."""
    taken = list[Owner]()

    class Recorded(Owner):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            taken.append(self)

    previous = threading.excepthook

    def report(error: threading.ExceptHookArgs) -> None:
        if not issubclass(error.exc_type, KilledError):
            previous(error)

    monkeypatch.setattr(restart, "Owner", Recorded)
    monkeypatch.setattr(owner, "RENEW_S", 1e9)
    monkeypatch.setattr(threading, "excepthook", report)
    yield taken
    end_claims(taken)


def end_claims(owners: list[Owner]) -> None:
    """End the threads of drivers that have ended, which would go on in this process."""
    for each in owners:
        each._ending.set()
        if each._thread is not None:
            each._thread.join()
    owners.clear()


def prepare(scenario: str, job: SparkJob) -> None:
    """Write the checkpoint on which a scenario begins."""
    if scenario in ("begin", "repair", "repair-without-exactly-once"):
        stopped(cast(Job, job), batches=1)
    if scenario.startswith("repair"):
        # As a driver leaves it that is killed before the tool commits.
        checkpoint = spark_checkpoint(job.spark, job.files.location)
        if scenario == "repair-without-exactly-once":
            job.application(unfinished_at_stop=True).start(job.start, 2, lambda _: None).stop()
        change = checkpoint.plan(5)
        checkpoint.repartition(change, exactly_once=scenario == "repair")
        job.files.delete("commits", str(change.begun + 1))
        job.files.replace(json.dumps(asdict(change)), *NOTE)


def play(scenario: str, job: SparkJob, faults: DeadlyFaults) -> bool:
    """Run a scenario with a failing call; return whether its driver goes on, which then counts exactly."""
    world = None
    with suppress(CallError, RheostatError, KilledError):  # as `rheostat.start` raises it, and the driver ends
        world = SCENARIOS[scenario](cast(Job, job), faults)
    assert len(faults.calls) >= faults.at, f"only {len(faults.calls)} calls: {faults.calls}"
    if world is None or faults.killed or not world.runs():
        return False
    faults.at = 0
    count(world)
    assert world.pipeline.allocation is not None
    assert world.pipeline.activity == ""
    world.close()
    return True


def count(world: World) -> None:
    world.process()
    assert world.job.results() == world.job.expected()


@pytest.mark.parametrize(("scenario", "how", "at", "written"), samples())
def test_whichever_call_fails_every_record_is_counted_once(
    spark: SparkSession, tmp_path: Path, owners: list[Owner], scenario: str, how: str, at: int, written: Format
) -> None:
    with temporary_settings(spark, SparkJob.settings(written)):
        job = SparkJob(spark, tmp_path, written)
        try:
            prepare(scenario, job)
            faults = DeadlyFaults(at, how)
            goes_on = play(scenario, job, faults)
            print(f"{scenario} {how} {at} of {len(faults.calls)}: {faults.calls[at - 1]}, goes on: {goes_on}")
            if how != "kill" and scenario.startswith(("restart", "move", "refused-move")):
                assert goes_on
            for _ in range(2):  # the next driver, and the one that loads its state again
                job.end_queries()
                end_claims(owners)
                world = World(cast(Job, job), keyed="without-exactly-once" in scenario)
                world.begin()
                assert world.pipeline.failure is None
                count(world)
                world.close()
            assert len(job.files.entries("rheostat", "drivers")) == 1
        finally:
            job.end_queries()


def test_the_samples_cover_every_scenario_and_way_to_fail() -> None:
    assert set(CALLS) == set(SCENARIOS)
    drawn = samples()
    assert {how for _, how, _, _ in drawn} == set(HOWS)
    if EVERY:
        assert {(scenario, how) for scenario, how, _, _ in drawn} == set(product(CALLS, HOWS))
