"""Writes the archives of `archive.py`, once per Spark and Java; `make setup` does.

    python -m rheostat.engine.spark.session.archive_writer

Runs a few micro-batches on an embedded cluster (state, JSON, a Python UDF, Parquet), whose JVMs write the classes that
they have loaded when they end.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

from rheostat.engine.spark.session.archive import ROLES, SILENT, archive_file, archive_folder, class_path, spark_home
from rheostat.engine.spark.session.java import Java, use_java
from rheostat.engine.spark.session.log4j import quiet
from rheostat.engine.spark.session.session import QUICK_START, session
from rheostat.errors import EngineError, RheostatError

WRITE_S = 90.0
"""Seconds that the JVMs have for their archives after their end."""
BATCHES, TRIGGER = 3, "4 seconds"
POLL_S = 0.2


def write_archives() -> Path:
    """Write the archives, unless they exist; return their folder."""
    home, java = spark_home(), use_java()
    folder = archive_folder(home, java)
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
    try:
        with TemporaryDirectory(prefix="rheostat-archive-") as scratch:
            _run(home, draft, Path(scratch))
        for role in ROLES:
            _await_archive(home, java, archive_file(draft, role))
        # Another process may have been faster.
        with contextlib.suppress(OSError):
            draft.rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder


def _run(home: Path, draft: Path, scratch: Path) -> None:
    """Run an application whose JVMs write their archives into a folder; its own files go into another one."""
    conf = quiet(scratch)
    for role in ROLES:
        options = f"spark.{role}.extraJavaOptions"
        archive = f"-XX:ArchiveClassesAtExit={archive_file(draft, role)} {SILENT}"
        conf[options] = f"{archive} {conf.get(options, QUICK_START)}"
        conf[f"spark.{role}.extraClassPath"] = class_path(home)
    spark = session("archive", max_executors=1, conf=conf)
    jvm: Any = spark.sparkContext._gateway
    try:
        _run_batches(spark, scratch)
    finally:
        spark.stop()
        jvm.shutdown()
        jvm.proc.stdin.close()
        jvm.proc.wait(WRITE_S)


def _run_batches(spark: Any, scratch: Path) -> None:
    from pyspark.sql import functions as sql

    double = sql.udf(lambda value: 2 * value, "long")
    counts = (
        spark.readStream.format("rate")
        .option("rowsPerSecond", 100)
        .load()
        .select("timestamp", sql.from_json(sql.to_json(sql.struct("value")), "value long").alias("row"))
        .select("timestamp", double("row.value").alias("value"))
        .withWatermark("timestamp", "1 second")
        .groupBy(sql.window("timestamp", "1 second"), sql.expr("value % 7"))
        .count()
    )

    def save(frame: Any, number: int) -> None:
        frame.write.mode("overwrite").parquet(f"{scratch}/{number}")

    writer = counts.writeStream.outputMode("update").foreachBatch(save)
    # Stopped between two batches: an interrupted one ends with an error of many lines.
    query = writer.option("checkpointLocation", f"{scratch}/checkpoint").trigger(processingTime=TRIGGER).start()
    while query.isActive and (
        (query.lastProgress or {"batchId": 0})["batchId"] < BATCHES or query.status["isTriggerActive"]
    ):
        time.sleep(POLL_S)
    if (error := query.exception()) is not None:
        raise EngineError(f"the query that loads Spark's classes failed: {error}")
    query.stop()


def _await_archive(home: Path, java: Java, archive: Path) -> None:
    """Wait until Java accepts an archive."""
    command = [java.path, "-Xshare:on", f"-XX:SharedArchiveFile={archive}", "-cp", class_path(home), "-version"]
    deadline_s = time.monotonic() + WRITE_S
    while (check := subprocess.run(command, capture_output=True, text=True, check=False)).returncode:
        if time.monotonic() > deadline_s:
            raise EngineError(f"Java wrote no usable archive of its classes: {(check.stdout + check.stderr)[:400]}")
        time.sleep(POLL_S)


def main() -> None:
    """Write the archives; exit with 1 and the reason where that is not possible."""
    try:
        print(f"Spark's classes: {write_archives()}")
    except RheostatError as error:
        sys.exit(f"{error}. Spark works without, and starts more slowly.")


if __name__ == "__main__":
    main()
