"""A real Delta or Iceberg table as a streaming source: what a scaler says that waits, beside what was appended.

A query takes what is there every `TRIGGER_S`; in between, some thousand rows are appended. So the windows before its
next batch have to show just these rows, and those after it none.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rheostat.engine.spark.session.ivy import Dependency, JarSet, Notify
from rheostat.lab.clusters.sparks import use_pyspark
from rheostat.lab.clusters.table_pins import SHA256

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK = "4.0.5"
"""The newest Spark that both have a connector for."""
TRIGGER_S, COMMITS, ROWS = 15.0, 4, 500


@dataclass(frozen=True)
class Format:
    """A table format."""

    name: str
    jars: tuple[tuple[str, str, str], ...]
    conf: Mapping[str, str]
    table: str
    """Its table, where {} is a folder."""


DELTA = Format(
    "delta",
    (("io.delta", "delta-spark_2.13", "4.0.0"), ("io.delta", "delta-storage", "4.0.0")),
    {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    },
    "delta.`{}/table`",
)
ICEBERG = Format(
    "iceberg",
    (("org.apache.iceberg", "iceberg-spark-runtime-4.0_2.13", "1.10.1"),),
    {
        "spark.sql.catalog.here": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.here.type": "hadoop",
        "spark.sql.catalog.here.warehouse": "{}",
    },
    "here.db.events",
)
FORMATS = {one.name: one for one in (DELTA, ICEBERG)}


@dataclass(frozen=True)
class Behind:
    """What waits at a table: as a window shows it, or as it was appended."""

    rows: float | None
    versions: float | None
    files: float | None
    bytes: float | None

    def __str__(self) -> str:
        return f"{self.rows} rows, {self.versions} versions, {self.files} files, {self.bytes} bytes"


NOTHING = Behind(0, 0, 0, 0)


@dataclass(frozen=True)
class Seen:
    """What windows showed, beside what was appended."""

    appended: Behind
    """Rows and versions that were appended, and their data files as the disk has them."""
    waiting: tuple[Behind, ...]
    """Windows between the appends and the next batch."""
    after: tuple[Behind, ...]
    """Windows after it."""
    problems: tuple[str, ...]

    @property
    def wrong(self) -> int:
        """Windows that show something else than what waits."""
        return sum(one != self.appended for one in self.waiting) + sum(one != NOTHING for one in self.after)


def jar_set(table: Format) -> JarSet:
    """Return the jars of a format."""
    names = {f"table/{name}-{version}.jar" for _, name, version in table.jars}
    return JarSet(
        name=table.name,
        version=table.jars[0][2],
        whose=f"{table.name.capitalize()}'s",
        contents=f"{table.name.capitalize()} for Spark {SPARK} (up to 50 MB)",
        remedy="run `make matrix` again",
        dependencies=tuple(Dependency(*one, group="table") for one in table.jars),
        sha256={name: digest for name, digest in SHA256.items() if name in names},
    )


def jars_of(name: str, notify: Notify) -> list[Path]:
    """Return the jars of a format, fetched first if the cache has none."""
    return jar_set(FORMATS[name]).jars("table", notify)


def watch_table(name: str, folder: Path, pyspark: Path | None, jars: list[Path]) -> Seen:
    """Append to a table between two batches of its stream, in this process."""
    use_pyspark(pyspark)
    from pyspark.sql import SparkSession

    from rheostat.engine.spark.session.java import use_java

    use_java()
    table = FORMATS[name]
    builder = SparkSession.builder.master("local[2]").appName("tables")
    settings = {
        "spark.jars": ",".join(map(str, jars)),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        **{key: value.format(folder) for key, value in table.conf.items()},
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        return _watch(spark, table, folder)
    finally:
        spark.stop()


def _watch(spark: SparkSession, table: Format, folder: Path) -> Seen:
    from rheostat.api.autoscale import autoscale
    from rheostat.api.options import Options

    place = table.table.format(folder)
    spark.sql(f"CREATE TABLE {place} (id BIGINT) USING {table.name}")
    _append(spark, place)
    source = spark.readStream.format(table.name)
    rows = source.load(f"{folder}/table") if table is DELTA else source.load(place)
    writer = rows.writeStream.format("noop").queryName("table").option("checkpointLocation", f"{folder}/checkpoint")
    query = writer.trigger(processingTime=f"{TRIGGER_S:g} seconds").start()
    with autoscale(query, dry_run=True, options=Options(interval_s=1.0)) as scaler:

        def windows(seconds: float) -> tuple[Behind, ...]:
            before = len(scaler.steps)
            time.sleep(seconds)
            seen = [step.observation for step in scaler.steps[before:]]
            return tuple(
                Behind(one.backlog, *(one.waiting.get(name) for name in ("versions", "files", "bytes"))) for one in seen
            )

        _await_batch(query, 1)  # the first snapshot
        _append(spark, place)
        _await_batch(query, ROWS)  # the first version after it
        before = data_files(folder)
        for _ in range(COMMITS):
            _append(spark, place)
        fresh = data_files(folder) - before
        appended = Behind(COMMITS * ROWS, COMMITS, len(fresh), sum(file.stat().st_size for file in fresh))
        waiting = windows(4.0)
        _await_batch(query, COMMITS * ROWS)
        time.sleep(1.5)
        after = windows(4.0)
        problems = {step.observation.problem for step in scaler.steps if step.observation.problem}
    query.stop()
    return Seen(appended, waiting, after, tuple(sorted(problems)))


def data_files(folder: Path) -> set[Path]:
    """Return the data files of the tables in a folder; Delta keeps checkpoints of its log as Parquet, too."""
    return {file for file in folder.rglob("*.parquet") if "_delta_log" not in file.parts}


def _append(spark: SparkSession, place: str) -> None:
    spark.sql(f"INSERT INTO {place} SELECT id FROM range({ROWS})")


def _await_batch(query: object, rows: int, within_s: float = 120.0) -> None:
    """Wait for the end of a batch with at least these rows."""
    from pyspark.sql.streaming.query import StreamingQuery

    assert isinstance(query, StreamingQuery)
    deadline_s, known = time.monotonic() + within_s, len(query.recentProgress)
    while not any(one["numInputRows"] >= rows for one in query.recentProgress[known - 1 if rows == 1 else known :]):
        if time.monotonic() > deadline_s or not query.isActive:
            raise TimeoutError(f"no batch of {rows} rows: {query.exception() or query.lastProgress}")
        time.sleep(0.2)
