"""WordCount in real-time mode on a Kafka broker, scaled by Rheostat; prints one JSON line.

python spark_realtime.py '{"servers": ..., "source": ..., "sink": ..., "folder": ..., ...}'

`kill_at` names a step of a change before which this process kills itself and its JVM. Without it the process runs until
all records of the source topic are counted, compares the sink topic with a batch computation, and prints the journal's
steps.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pyspark.sql import SparkSession

import rheostat
from rheostat.api.scaler import Scaler
from rheostat.api.start import slots_of
from rheostat.engine.spark.lifecycle.application import spark_checkpoint, temporary_settings
from rheostat.engine.spark.lifecycle.checkpoint import PARTITIONS
from rheostat.engine.spark.pipeline import Staged
from rheostat.engine.spark.session.log4j import quiet
from rheostat.job.allocation import Allocation
from rheostat.job.guards import UNGUARDED
from rheostat.job.observation import Observation
from rheostat.job.record import IntentEnd, IntentStep, Record
from rheostat.journal import open_journal
from rheostat.journal.sql import SqlJournal
from rheostat.kafka import output as kafka_output
from rheostat.kafka.jars import connector_jars
from rheostat.lab.experiment.processes import kill_an_executor
from rheostat.lab.experiment.realtime_run import expected_counts, local_session, parse_count
from rheostat.lab.workload.realtime import realtime_pipeline
from rheostat.policy.static import Static
from rheostat.ports import Lease

PATIENCE_S = 120.0


def kill_before(word: str) -> None:
    """Kill JVM and process as soon as a step whose name begins with this word has been journaled."""
    append = SqlJournal.append

    def deadly(self: SqlJournal, lease: Lease, step: int, records: Sequence[Record]) -> int:
        number = append(self, lease, step, records)
        if any(isinstance(record, IntentStep) and record.name.startswith(word) for record in records):
            jvm = SparkSession.getActiveSession() or SparkSession._instantiatedSession
            assert jvm is not None
            pid = int(jvm._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
            for one in (pid, os.getpid()):
                os.kill(one, signal.SIGKILL)
        return number

    SqlJournal.append = deadly  # type: ignore[method-assign]


def wait(what: str, done: Callable[[], Any], scaler: Scaler) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not done():
        if time.monotonic() > deadline_s:
            last = scaler.steps[-1].observation.problem if scaler.steps else "no step"
            raise TimeoutError(f"{what} within {PATIENCE_S:g} s; {scaler.status}; {last}")
        time.sleep(0.2)


def cluster(executors: tuple[int, int], folder: Path) -> SparkSession:
    """Start executors of two slots each, in separate processes."""
    conf = {**quiet(folder), "spark.jars": ",".join(map(str, connector_jars())), "spark.sql.session.timeZone": "UTC"}
    least, most = executors
    return rheostat.session("realtime", min_executors=least, max_executors=most, cores=2, conf=conf)


def made_by_realtime(spark: SparkSession, staged: Staged, tasks: Allocation) -> str:
    """Create the checkpoint with real-time mode itself, as without Rheostat; return why its state is immovable."""
    checkpoint = spark_checkpoint(spark, staged.checkpoint)
    partitions = {PARTITIONS: str(tasks.tasks[staged.keyed or ""])}
    with patch.object(Staged, "_seed", lambda *_: None), temporary_settings(spark, partitions):
        query = staged.start(spark, tasks)
    deadline_s = time.monotonic() + PATIENCE_S
    while checkpoint.done < 0:
        if (error := query.exception()) is not None:
            raise error
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"no batch within {PATIENCE_S:g} s")
        time.sleep(0.2)
    query.stop()
    return checkpoint.immovable_reason()


def stages_of(window: Observation) -> dict[str, Any]:
    """Return what one window shows of the stages."""
    latency = window.latency
    return {
        "records": [reading.records_in_per_s for reading in window.operators],
        "true_rates": [reading.true_rate_per_s for reading in window.operators],
        "latency": latency and [latency.p99_s, latency.event_p99_s],
    }


def main(options: dict[str, Any]) -> None:
    folder = Path(options["folder"])
    journal = str(folder / "journal.db")
    if options.get("kill_at"):
        kill_before(options["kill_at"])
    executors = tuple(options["executors"]) if options.get("executors") else None
    spark = local_session(8, quiet(folder)) if executors is None else cluster(executors, folder)
    staged = realtime_pipeline(
        "wordcount",
        servers=options["servers"],
        source=options["source"],
        sink=options["sink"],
        checkpoint=str(folder / "checkpoint"),
    )
    target = Allocation(options["target"])
    immovable = made_by_realtime(spark, staged, Allocation(options["start"])) if options.get("rename") else ""
    least, most = executors or (1, None)
    with rheostat.start(
        staged,
        mode="realtime",
        initial=Allocation(options["start"]),
        min_executors=least,
        max_executors=most,
        policy=Static(tasks=target.tasks),
        journal=journal,
        options=rheostat.Options(
            interval_s=1.0, window_s=10.0, rename_state=bool(options.get("rename")), guards=UNGUARDED
        ),
    ) as scaler:
        wait(
            "the change",
            lambda: any(step.observation.usable and step.observation.running == target for step in scaler.steps),
            scaler,
        )
        if options.get("fail"):
            # The death of an executor fails its tasks, and with them the real-time query.
            first = scaler.queries[0].runId
            if executors is not None:
                assert kill_an_executor()

            def failed() -> bool:
                if executors is None and scaler.queries[0].runId == first:
                    spark.sparkContext.cancelAllJobs()  # repeated, since no job runs between two batches
                return scaler.queries[0].runId != first and scaler.queries[0].isActive

            wait("another run", failed, scaler)
        due = expected_counts(spark, staged)
        outputs: list[kafka_output.Output] = []

        def complete() -> bool:
            outputs[:] = kafka_output.read(options["servers"], options["sink"], parse_count)
            return kafka_output.last_values(outputs) == due

        wait("all counts", complete, scaler)
        slots = slots_of(spark, executors).available()
        downtimes = [step.observation.downtime_s for step in scaler.steps if step.observation.downtime_s is not None]
    for query in scaler.queries:
        query.stop()
    state = spark_checkpoint(spark, staged.checkpoint).state()
    book = open_journal(journal)
    entries = [entry.record for entry in book.read("wordcount")]
    book.close()
    print(
        json.dumps(
            {
                "keys": len(due),
                "records": sum(due.values()),
                "repeated": kafka_output.repetitions(outputs),
                "partitions": None if state is None else state.partitions,
                "steps": [record.name for record in entries if isinstance(record, IntentStep)],
                "endings": [str(record.ending.value) for record in entries if isinstance(record, IntentEnd)],
                "immovable": immovable,
                "slots": slots,
                "downtimes": sorted(set(downtimes)),
                "seen": [stages_of(step.observation) for step in scaler.steps if step.observation.usable],
                "backlogs": [step.observation.sources[0].backlog for step in scaler.steps],
                "problems": sorted({step.observation.problem for step in scaler.steps if step.observation.problem}),
            }
        )
    )
    spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
