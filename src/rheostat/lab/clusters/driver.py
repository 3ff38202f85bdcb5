"""The job that every cluster runs, in a process of its own: a stateful query under a scaler that follows a file.

Rows are numbered from 0 without a gap, so the right counts of every batch are known.
"""

from __future__ import annotations

import json
import os
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rheostat.job.decision import Decision
from rheostat.lab.clusters.sparks import use_pyspark
from rheostat.ports import Policy, Situation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

ROWS, KEYS, PARTITIONS = 600, 50, 6
PAUSE_ROWS, PAUSE_MS = 20, 40
"""Rows of a partition between two pauses, and their ms: a batch takes about 1.2 s of slots, and kills hit it."""
POLL_S = 0.2
ANSWER_S = 60.0
"""Seconds that Spark's page may take for an answer: the first one can take 9 s and more."""
NAME = "visit"


def start_query(spark: SparkSession, folder: Path, count_ms: int = 0) -> StreamingQuery:
    """Start a count per key whose every batch writes its counts into a file; each count may take some milliseconds."""
    output = folder / "output"
    output.mkdir(exist_ok=True)

    def write(batch: DataFrame, number: int) -> None:
        counts = {str(row["key"]): row["count"] for row in batch.collect()}
        write_whole(output / f"{number}.json", json.dumps(counts))

    def pause(milliseconds: int) -> str:
        return f"java_method('java.lang.Thread', 'sleep', cast({milliseconds} as bigint))"

    rows = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", ROWS)
        .option("numPartitions", PARTITIONS)
        .option("startTimestamp", 0)
        .option("advanceMillisPerBatch", 1000)
        .load()
        .selectExpr(
            f"value % {KEYS} as key",
            f"case when (value div {PARTITIONS}) % {PAUSE_ROWS} = 0 then {pause(PAUSE_MS)} end as paused",
        )
        .where("paused is null or paused <> 'never'")
    )
    counted = rows.groupBy("key").count()
    if count_ms:
        counted = counted.selectExpr("*", f"{pause(count_ms)} as paused").where("paused is null or paused <> 'never'")
    writer: Any = counted.writeStream.queryName(NAME).outputMode("update").foreachBatch(write)
    return writer.option("checkpointLocation", str(folder / "checkpoint")).start()  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Place:
    """Where a driver runs."""

    folder: Path
    """Its checkpoint, journal, output, and the files by which it is directed."""
    master: str
    conf: Mapping[str, str]
    environment: Mapping[str, str]
    pyspark: Path | None
    """The folder of another version of PySpark."""
    most: int = 3
    counts_tasks: bool = False
    """Whether it counts tasks: those that are computed again, and those of the running stage. On YARN a driver's own
    page answers only the proxy."""
    start: Callable[[SparkSession, Path], StreamingQuery] = start_query
    """Starts the query, with its folder."""


@dataclass(frozen=True)
class Follow(Policy[None]):
    """Asks for the number of executors in a file: a test directs it. Not pure, so not a policy for anything else."""

    name: ClassVar[str] = "follow"
    reads_partial_windows: ClassVar[bool] = True

    file: str = ""

    def decide(self, situation: Situation[None]) -> Decision:
        """Return the size in the file."""
        [tunable] = situation.spec.tunable
        target = situation.fit({tunable.operator: int(Path(self.file).read_text()) * tunable.quantum})
        return situation.change_to(target, "as the file says")


def drive(place: Place) -> None:
    """Run the job until the file `stop` appears."""
    os.environ.update(place.environment)
    use_pyspark(place.pyspark)
    from rheostat.api.autoscale import autoscale
    from rheostat.api.options import Options
    from rheostat.engine.spark.session.session import session
    from rheostat.job.guards import UNGUARDED
    from rheostat.lab.experiment.processes import enclose

    enclose(place.folder, str(place.folder / "driver.log"))
    spark = session(NAME, place.master, min_executors=1, max_executors=place.most, memory_mb=512, conf=place.conf)
    query = place.start(spark, place.folder)
    with autoscale(
        query,
        max_executors=place.most,
        policy=Follow(str(place.folder / "wanted")),
        journal=str(place.folder / "journal.db"),
        options=Options(interval_s=1.0, name=NAME, guards=UNGUARDED),
    ) as scaler:
        known: dict[str, Any] = {}
        while query.isActive and not (place.folder / "stop").exists():
            steps = scaler.steps
            seen = steps[-1].observation if steps else None
            running = seen.running if seen else None
            report = {
                "spark": spark.version,
                "status": scaler.status,
                "executors": running.slots if running else None,
                "problem": seen.problem if seen else None,
                "load_per_s": seen.load_per_s if seen else None,
                "backlog": seen.backlog if seen else None,
                **(count_tasks(spark) if place.counts_tasks else {}),
            }
            known = {**known, **{key: value for key, value in report.items() if value is not None or key == "problem"}}
            write_whole(place.folder / "status.json", json.dumps(known))
            time.sleep(POLL_S)
    query.stop()
    spark.stop()


def count_tasks(spark: SparkSession) -> dict[str, Any]:
    """Return the tasks that were computed again; all tasks of the newest running stage, and those that have ended."""
    tracker = spark.sparkContext.statusTracker()
    newest = tracker.getStageInfo(max(tracker.getActiveStageIds(), default=-1))
    stage = (newest.numTasks, newest.numCompletedTasks) if newest else (0, 0)
    return {"repeated_tasks": repeated_tasks(spark), "stage_tasks": stage}


def repeated_tasks(spark: SparkSession) -> int:
    """Return the tasks that were computed again: those of later attempts of a stage, and failed or killed ones."""
    page = f"{spark.sparkContext.uiWebUrl}/api/v1/applications/{spark.sparkContext.applicationId}/stages"
    with urllib.request.urlopen(page, timeout=ANSWER_S) as answer:
        stages: list[dict[str, int]] = json.load(answer)
    again = sum(stage["numCompleteTasks"] for stage in stages if stage["attemptId"] > 0)
    return again + sum(stage["numFailedTasks"] + stage["numKilledTasks"] for stage in stages)


def write_whole(file: Path, text: str) -> None:
    """Write a file so that a reader sees all of it or nothing."""
    draft = file.with_name(f"{file.name}.{os.getpid()}.draft")
    draft.write_text(text)
    draft.replace(file)
