"""Pipelines that `rheostat.autoscale` starts and restarts on an embedded cluster; prints one JSON line.

python spark_restart.py FOLDER PART...    # grow, kill or recover

`grow` goes from 2 to 6 slots under load, once with state that can be repartitioned and once with state that cannot.
`kill` kills driver and JVM during a repartition; `recover` is the next driver.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pyspark.sql import DataFrame, SparkSession

import rheostat
from rheostat.api.scaler import Scaler
from rheostat.engine.spark.lifecycle.application import spark_checkpoint
from rheostat.engine.testbed.loads import Steps
from rheostat.engine.testbed.schedule import Schedule
from rheostat.engine.testbed.source import ScheduleCounter, batch, stream
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Reason
from rheostat.job.guards import UNGUARDED
from rheostat.job.record import IntentEnd, IntentStep, Record, Run
from rheostat.journal import open_journal
from rheostat.journal.sql import SqlJournal
from rheostat.lab.workload.pacing import paced
from rheostat.ports import Journal, Lease, Policy, Situation

STORES = "org.apache.spark.sql.execution.streaming.state"
EXECUTORS, CORES = (1, 3), 2
SLOT_PER_S = 100.0
PATIENCE_S = 240.0


class Clicks:
    """Counts records by second; the output of a batch is a file, so that it survives a killed driver."""

    def __init__(self, spark: SparkSession, folder: Path, store: str = "RocksDB") -> None:
        self.spark, self.folder, self.store = spark, folder, store
        self.schedule = Schedule(Steps((0.8, 1.2), 10), 100.0, 20)
        self.built: list[int] = []
        (folder / "out").mkdir(parents=True, exist_ok=True)

    def start(self, allocation: Allocation) -> Any:
        self.built.append(allocation.slots)
        self.spark.conf.set("spark.sql.streaming.stateStore.providerClass", f"{STORES}.{self.store}StateStoreProvider")
        tasks = 2 * allocation.slots if self.store == "RocksDB" else 4
        events = paced(stream(self.spark, self.schedule, partitions=tasks), SLOT_PER_S, tasks=tasks)
        counted = events.selectExpr("unix_seconds(timestamp) as second").groupBy("second").count()
        return (
            counted.selectExpr("second", "count as n")
            .writeStream.outputMode("update")
            .foreachBatch(self.keep)
            .queryName("clicks")
            .option("checkpointLocation", str(self.folder / "checkpoint"))
            .trigger(processingTime="1 second")
            .start()
        )

    def keep(self, frame: DataFrame, number: int) -> None:
        rows = {row["second"]: row["n"] for row in frame.collect()}
        draft = self.folder / "out" / f"{number}.new"
        draft.write_text(json.dumps(rows))
        draft.rename(draft.with_suffix(".json"))

    def wrong(self) -> tuple[int, int]:
        """Return the seconds whose count differs from the batch computation, and how many there are."""
        final: dict[int, int] = {}
        for file in sorted((self.folder / "out").glob("*.json"), key=lambda file: int(file.stem)):
            final.update({int(second): n for second, n in json.loads(file.read_text()).items()})
        first, last = min(final), max(final)  # the last second may not be complete
        rows = batch(self.spark, self.schedule, first_s=0, last_s=last - first)
        expected = rows.selectExpr("unix_seconds(timestamp) as second").groupBy("second").count().collect()
        return sum(final.get(row["second"]) != row["count"] for row in expected), len(expected)

    def scaled(self, journal: Journal) -> Scaler:
        least, most = EXECUTORS
        counters = {"clicks": ScheduleCounter(self.schedule)}
        return rheostat.start(
            self.start,
            min_executors=least,
            max_executors=most,
            policy=Six(),
            journal=journal,
            options=rheostat.Options(name="clicks", interval_s=1.0, window_s=4.0, counters=counters, guards=UNGUARDED),
        )

    def partitions(self) -> int:
        state = spark_checkpoint(self.spark, str(self.folder / "checkpoint")).state()
        assert state is not None
        return state.partitions


@dataclass(frozen=True)
class Six(Policy[None]):
    """Wants six slots as soon as it sees something."""

    name: ClassVar[str] = "six"

    def decide(self, situation: Situation[None]) -> Decision:
        if situation.running.slots == 6 or situation.memo.get("asked"):
            return Decision.hold(Reason.STEADY, "asked before", memo=situation.memo)
        return Decision(Allocation({"job": 6}), Reason.UNDER_PROVISIONED, "six", memo={"asked": True})


class Deadly(SqlJournal):
    """Kills the driver in the middle of a journaled repartition."""

    def __init__(self, path: str, spark: SparkSession, checkpoint: Path) -> None:
        super().__init__(path)
        self.checkpoint = checkpoint
        jvm: Any = spark._jvm
        self.jvm_pid = int(jvm.java.lang.ProcessHandle.current().pid())

    def append(self, lease: Lease, step: int, records: Sequence[Record]) -> int:
        number = super().append(lease, step, records)
        for record in records:
            if isinstance(record, IntentStep) and record.name.startswith("repartition the state"):
                threading.Thread(target=self.watch, daemon=True).start()
        return number

    def watch(self) -> None:
        last = max(int(file.name) for file in (self.checkpoint / "offsets").glob("[0-9]*"))
        half = self.checkpoint / "offsets" / str(last + 1)
        while not half.exists():
            time.sleep(0.001)
        os.kill(self.jvm_pid, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)


def until(scaler: Scaler, what: str, true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        if time.monotonic() > deadline or not scaler.status.startswith("running"):
            raise RuntimeError(
                f"{what} did not come: {scaler.status}, {[str(s.observation.problem) for s in scaler.steps[-5:]]}"
            )
        time.sleep(0.1)


def ends(journal: Journal) -> list[IntentEnd]:
    return [
        entry.record for entry in journal.read("clicks", kinds=["intent_end"]) if isinstance(entry.record, IntentEnd)
    ]


def finish(clicks: Clicks, scaler: Scaler, journal: Journal) -> dict[str, Any]:
    """Wait for a window after the change, stop, and return the results."""
    (query,) = scaler.queries
    until(scaler, "a window", lambda: scaler.steps[-1].observation.usable)
    windows = [step.observation for step in scaler.steps]
    scaler.stop()
    query.stop()
    wrong, checked = clicks.wrong()
    notes = [entry.record for entry in journal.read("clicks", kinds=["intent_step"])]
    runs = [entry.record for entry in journal.read("clicks", kinds=["run"])]
    return {
        "status": scaler.status,
        "built": clicks.built,
        "partitions": clicks.partitions(),
        "rows_wrong": wrong,
        "seconds_checked": checked,
        "steps": [note.name for note in notes if isinstance(note, IntentStep)],
        "endings": [(str(end.ending), end.running and end.running.slots, end.downtime_s) for end in ends(journal)],
        "statuses": sorted({str(window.status) for window in windows}),
        "slots": [window.running.slots for window in windows if window.running],
        "bottlenecks": sorted({text for window in windows for text in window.bottlenecks}),
        "most": runs[-1].spec.tunable[0].bounds.max if isinstance(runs[-1], Run) else None,
    }


def grow(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Grow with a state that can be repartitioned, then with one that cannot."""
    clicks = Clicks(spark, folder / "moved")
    journal = open_journal(str(folder / "moved.db"))
    scaler = clicks.scaled(journal)
    until(scaler, "the change", lambda: bool(ends(journal)))
    moved = finish(clicks, scaler, journal)
    clicks = Clicks(spark, folder / "kept", "HDFSBacked")
    journal = open_journal(str(folder / "kept.db"))
    scaler = clicks.scaled(journal)
    until(scaler, "the change", lambda: bool(ends(journal)))
    return {"moved": moved, "kept": finish(clicks, scaler, journal)}


def kill(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Kill the driver during a repartition."""
    clicks = Clicks(spark, folder / "killed")
    scaler = clicks.scaled(Deadly(str(folder / "killed.db"), spark, folder / "killed" / "checkpoint"))
    until(scaler, "death", lambda: False)
    return {}


def recover(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Take over from the killed driver twice: during a change, and after it."""
    clicks = Clicks(spark, folder / "killed")
    # The clock is ahead, so that the lease of the killed driver has expired: this does not test the wait for it.
    journal = open_journal(str(folder / "killed.db"), wall=lambda: time.time() + 600.0)
    log = spark_checkpoint(spark, str(folder / "killed" / "checkpoint"))
    cut_off = [log.begun, log.done]
    scaler = clicks.scaled(journal)
    until(scaler, "the change", lambda: bool(ends(journal)))
    first = finish(clicks, scaler, journal)
    clicks = Clicks(spark, folder / "killed")
    scaler = clicks.scaled(journal)
    until(scaler, "a batch", lambda: scaler.queries[0].lastProgress is not None)
    return {"cut_off": cut_off, "first": first, "again": finish(clicks, scaler, journal)}


def main(folder: Path, *parts: str) -> None:
    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    spark = rheostat.session("restart", min_executors=EXECUTORS[0], max_executors=EXECUTORS[1], cores=CORES, conf=quiet)
    spark.sparkContext.setLogLevel("OFF")
    play = {"grow": grow, "kill": kill, "recover": recover}
    stories = {part: play[part](spark, folder) for part in parts}
    spark.stop()
    print(json.dumps(stories))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
