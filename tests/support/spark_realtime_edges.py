"""Failures around a real-time query, on a real Spark and a real broker. Prints one JSON object per line.

python spark_realtime_edges.py SERVERS FOLDER TOPICS    # TOPICS: {"source": ..., "sink": ..., "wide": ...} as JSON

Lines on stdin signal that the broker has been killed, and that it runs again.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rheostat
from rheostat.api.scaler import Scaler
from rheostat.clock import WallClock
from rheostat.control.controller import Step
from rheostat.engine.spark.lifecycle import owner, watcher
from rheostat.engine.spark.lifecycle.application import SparkApplication
from rheostat.engine.spark.lifecycle.files import Files, HadoopFiles
from rheostat.engine.spark.pipeline import Staged
from rheostat.engine.spark.session.log4j import quiet
from rheostat.errors import RheostatError
from rheostat.job.allocation import Allocation
from rheostat.job.guards import UNGUARDED
from rheostat.kafka import output as kafka_output
from rheostat.kafka.client import producer
from rheostat.lab.experiment.realtime_run import expected_counts, local_session, parse_count
from rheostat.lab.workload.realtime import realtime_pipeline
from rheostat.policy.static import Static

SLOTS = 6
TASKS = {"split": 1, "count": 2}
PATIENCE_S = 120.0


def say(**fields: object) -> None:
    print(json.dumps(fields), flush=True)


def wait(what: str, done: Callable[[], Any], scaler: Scaler) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not done():
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"{what} within {PATIENCE_S:g} s; {scaler.status}")
        time.sleep(0.2)


def replaced_while_read(files: Files) -> list[str | None]:
    """Read a file repeatedly while a thread replaces it; return texts that are neither complete nor missing."""
    over = threading.Event()

    def renew() -> None:
        while not over.is_set():
            files.replace("note", "rheostat", "driver")

    files.replace("note", "rheostat", "driver")  # the thread may start late, and the first read needs a file
    writer = threading.Thread(target=renew)
    writer.start()
    read = [files.text("rheostat", "driver") for _ in range(300)]
    over.set()
    writer.join()
    assert "note" in read
    return [text for text in read if text not in (None, "note")]


def blinded(step: Step) -> bool:
    """Whether the step shows the dead broker: it does not answer, or the query has failed because of it."""
    problem = step.observation.problem or ""
    return any(word in problem for word in ("has not answered", "not active", "after a failure"))


def main(servers: str, folder: Path, topics: dict[str, str]) -> None:
    owner.RENEW_S, owner.FRESH_S, owner.PATIENCE_S = 1.0, 6.0, 4.0
    spark = local_session(SLOTS, quiet(folder))

    def pipeline(source: str, checkpoint: str) -> Staged:
        return realtime_pipeline(
            "wordcount", servers=servers, source=source, sink=topics["sink"], checkpoint=str(folder / checkpoint)
        )

    def scaled(source: str, checkpoint: str, journal: str) -> Scaler:
        return rheostat.start(
            pipeline(source, checkpoint),
            mode="realtime",
            initial=Allocation(TASKS),
            policy=Static(tasks=TASKS),
            journal=str(folder / journal),
            options=rheostat.Options(interval_s=1.0, window_s=10.0, guards=UNGUARDED),
        )

    def refused(begin: Callable[[], object]) -> str:
        try:
            begin()
        except RheostatError as error:
            return str(error)
        return ""

    say(event="note", unlike=replaced_while_read(HadoopFiles(spark, str(folder / "notes"))))
    say(
        event="refused",
        missing=refused(lambda: scaled("misspelt", "refused", "other.db")),
        wide=refused(lambda: scaled(topics["wide"], "refused", "other.db")),
        active=len(spark.streams.active),
    )

    with scaled(topics["source"], "checkpoint", "journal.db") as scaler:
        wait("a window", lambda: scaler.steps and scaler.steps[-1].observation.usable, scaler)
        # A second driver with its own journal claims the checkpoint first.
        application, place = SparkApplication(spark), str(folder / "checkpoint")
        second = owner.Owner(application.checkpoint(place), application.driver(), WallClock(), lambda _: None)
        twice = refused(second.claim)
        say(event="running", twice=twice, active=len(spark.streams.active), status=scaler.status)
        sys.stdin.readline()  # the broker is dead
        begun = len(scaler.steps)
        wait("a blind window", lambda: any(map(blinded, scaler.steps[begun:])), scaler)
        blind = next(filter(blinded, scaler.steps[begun:]))
        say(event="blind", problem=blind.observation.problem, held=blind.decision.target is None)
        sys.stdin.readline()  # the broker runs again, and all records were sent
        wait("a window again", lambda: scaler.steps[-1].observation.usable, scaler)
        due = expected_counts(spark, pipeline(topics["source"], "checkpoint"))

        def complete() -> bool:
            return kafka_output.last_values(list(kafka_output.read(servers, topics["sink"], parse_count))) == due

        wait("all counts", complete, scaler)
        say(event="back", records=sum(due.values()), status=scaler.status)
        # A record that no stage can read, before all later ones.
        watcher.BACK_OFF_S = (0.0, 0.1)
        writer = producer(servers, {})
        writer.produce(topics["source"], b"poison")
        writer.flush()
        wait("giving up", lambda: scaler.status.startswith("failed"), scaler)
        say(event="poisoned", status=scaler.status)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3]))
