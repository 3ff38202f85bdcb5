"""`rheostat.pipeline`: a query as named stages, for real-time mode (tasks per stage) or for micro-batch mode.

    @rheostat.pipeline
    def words(p, servers="localhost:9092"):
        p.kafka("lines", servers=servers, topic="lines", parse=text)
        p.stage("split", split)                      # a function DataFrame -> DataFrame, row by row
        p.keyed("count", count)                      # groupBy().agg() or dropDuplicates: its tasks are the state's
        p.to_kafka("counts", servers=servers, columns=record, checkpoint="/data/words")

There is an exchange between two stages. A stage's tasks are the partitions of the exchange before it: `repartition(n)`
for a stateless stage, `spark.sql.shuffle.partitions` for the keyed one.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from rheostat.engine.batches.probe import EVENT_LATENCY, LATENCY, QUANTILES
from rheostat.engine.spark.lifecycle.application import spark_checkpoint, temporary_settings
from rheostat.engine.spark.lifecycle.checkpoint import FORMAT, STORE
from rheostat.engine.spark.lifecycle.shape import JOB, TASKS_PER_SLOT
from rheostat.engine.spark.telemetry.probe import add_probes
from rheostat.errors import InvalidValue, nearest
from rheostat.job.allocation import Allocation

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

Transform = Callable[["DataFrame"], "DataFrame"]
Slow = Callable[[int], Transform]
"""Tasks -> a transform that slows rows down."""

NAME = re.compile(r"[A-Za-z_][\w-]*")
AGES = {EVENT_LATENCY: "__rheostat_age_ms", LATENCY: "__rheostat_inside_ms"}
"""Latency -> the column with its sampled values."""
AGES_PER_TIMED = 8
"""Records with measured latencies per record with a measured time: quantiles need more samples, but the latencies of
every record would cost a quarter of the CPU time of an empty pipeline."""
SAMPLE = 64
"""Records per record with a measured time, unless it is set."""
BATCH_S = 5.0
"""Length of a real-time batch in seconds, the smallest that Spark allows: the interval of checkpoints and reports."""
SEED_S = 60.0
"""Seconds that the first micro-batch has to create a new checkpoint."""
STATE_SETTINGS = {
    STORE: "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    FORMAT: "2",
}
"""Settings that real-time mode needs; micro-batch mode uses them, too, so that both work on one checkpoint."""


@dataclass(frozen=True)
class StagePart:
    """One stage."""

    name: str
    apply: Transform
    keyed: bool = False
    slow: Slow | None = None
    """For experiments: a transform that takes time in the stage's tasks, after the state of a keyed stage."""
    timed: bool = False
    """Whether probes measure its useful time, for a stage that waits: the CPU time of its tasks does not show that."""

    def timed_part(self, tasks: int) -> Transform:
        """Return the part between the probes: all of a stateless stage, the part after the state of a keyed one."""
        slow = _identity if self.slow is None else self.slow(tasks)
        return slow if self.keyed else lambda rows: self.apply(slow(rows))


@dataclass(frozen=True)
class Topic:
    """A source or sink of the pipeline."""

    name: str
    servers: str
    topic: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    parse: Transform | None = None
    """For a source: the transform that its tasks apply to Kafka's rows."""


@dataclass(frozen=True)
class Staged:
    """A whole pipeline: source, stages, sink."""

    name: str
    source: Topic
    stages: tuple[StagePart, ...]
    sink: Topic
    columns: Transform
    """Turns the last stage's rows into `key` and `value`."""
    checkpoint: str
    event_time: str | None = None
    """Column with the event time, if latencies are measured."""
    sample: int = SAMPLE
    """Records per record with a measured time."""

    @property
    def keyed(self) -> str | None:
        """Name of the stage with state."""
        return next((stage.name for stage in self.stages if stage.keyed), None)

    @property
    def names(self) -> tuple[str, ...]:
        """The source's name and those of the stages, in the order of the records."""
        return (self.source.name, *(stage.name for stage in self.stages))

    def frame(self, spark: SparkSession, tasks: Mapping[str, int]) -> DataFrame:
        """Chain the stages, with an exchange before each, and with the probes that were asked for."""
        reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", self.source.servers)
        reader = reader.option("subscribe", self.source.topic).options(**self.source.options)
        rows = (self.source.parse or _identity)(reader.load())
        for stage in self.stages:
            rows = stage.apply(rows) if stage.keyed else rows.repartition(tasks[stage.name])
            work, columns = stage.timed_part(tasks[stage.name]), []
            if self.event_time is not None and stage is self.stages[-1]:
                work = _add_ages(work, self.event_time, max(1, self.sample // AGES_PER_TIMED))
                columns = _quantiles()
            if stage.timed:
                rows = add_probes(stage.name, work, self.sample, columns)(rows)
            else:
                rows = work(rows).observe(stage.name, *columns) if columns else work(rows)
        rows = rows.drop(*AGES.values())
        return self.columns(rows)

    def start(self, spark: SparkSession, allocation: Allocation, *, realtime: bool = True) -> StreamingQuery:
        """Start the query; in real-time mode every stage has its own tasks, else all share the job's slots."""
        if realtime:
            return self.build(spark, allocation)()
        with temporary_settings(spark, STATE_SETTINGS):
            return self._writer(spark, dict.fromkeys(self.names, TASKS_PER_SLOT * allocation.tasks[JOB])).start()

    def build(self, spark: SparkSession, allocation: Allocation) -> Callable[[], StreamingQuery]:
        """Build the query for real-time mode, which takes a while, and return the function that starts it."""
        trigger: Any = {"realTime": f"{BATCH_S:g} seconds"}
        writer = self._writer(spark, allocation.tasks).trigger(**trigger)

        def start() -> StreamingQuery:
            with temporary_settings(spark, STATE_SETTINGS):
                self._seed(spark, allocation)
                return writer.start()

        return start

    def _seed(self, spark: SparkSession, allocation: Allocation) -> None:
        """Create a new checkpoint with a micro-batch: state that real-time mode creates cannot be repartitioned.

        The micro-batch takes a few records at most; real-time mode reads the others.
        """
        if spark_checkpoint(spark, self.checkpoint).done >= 0:
            return
        few = replace(self, source=replace(self.source, options={**self.source.options, "maxOffsetsPerTrigger": "1"}))
        query = few._writer(spark, allocation.tasks).trigger(availableNow=True).start()
        try:
            left_s = SEED_S
            while query.isActive and spark_checkpoint(spark, self.checkpoint).done < 0 and left_s > 0:
                query.awaitTermination(1)
                left_s -= 1
        finally:
            query.stop()
        if (error := query.exception()) is not None:
            raise error

    def _writer(self, spark: SparkSession, tasks: Mapping[str, int]) -> DataStreamWriter:
        writer = self.frame(spark, tasks).writeStream.queryName(self.name).outputMode("update").format("kafka")
        writer = writer.option("kafka.bootstrap.servers", self.sink.servers).option("topic", self.sink.topic)
        return writer.options(**self.sink.options).option("checkpointLocation", self.checkpoint)


class Builder:
    """The argument `p` of a function under `rheostat.pipeline`: its calls define the parts of the pipeline in order."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._source: Topic | None = None
        self._stages: list[StagePart] = []
        self._staged: Staged | None = None

    def kafka(
        self,
        name: str,
        *,
        servers: str,
        topic: str,
        parse: Transform | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        """Read a topic with one task per partition; `parse` transforms Kafka's rows in these tasks."""
        if self._source is not None:
            raise InvalidValue(f"pipeline {self._name!r} has the source {self._source.name!r} already")
        self._source = Topic(self._new(name), servers, topic, dict(options or {}), parse)

    def stage(self, name: str, apply: Transform, *, slow: Slow | None = None, timed: bool = False) -> None:
        """Add a stateless stage with its own tasks. `timed` measures the time of a stage that waits or calls Python."""
        self._add(StagePart(self._new(name), _function(name, apply), False, slow, timed or slow is not None))

    def keyed(self, name: str, apply: Transform, *, slow: Slow | None = None) -> None:
        """Add the stage with state: `groupBy().agg()` or `dropDuplicates`."""
        if other := next((stage.name for stage in self._stages if stage.keyed), None):
            raise InvalidValue(
                f"pipeline {self._name!r} has the keyed stage {other!r} already: all states of a query have the same "
                "number of partitions, so only one keyed stage can be sized"
            )
        self._add(StagePart(self._new(name), _function(name, apply), True, slow, slow is not None))

    def to_kafka(
        self,
        name: str,
        *,
        servers: str,
        topic: str,
        columns: Transform,
        checkpoint: str,
        event_time: str | None = None,
        sample: int = SAMPLE,
        options: Mapping[str, str] | None = None,
    ) -> None:
        """Write to a topic; `columns` creates `key` and `value` in the tasks of the last stage."""
        if self._source is None or not self._stages:
            raise InvalidValue(f"pipeline {self._name!r}: a source and at least one stage come before the sink")
        if self._staged is not None:
            raise InvalidValue(f"pipeline {self._name!r} has the sink {self._staged.sink.name!r} already")
        if not checkpoint:
            raise InvalidValue(f"pipeline {self._name!r} needs a checkpoint: pass the folder as checkpoint=")
        sink = Topic(self._new(name), servers, topic, dict(options or {}))
        self._staged = Staged(
            self._name, self._source, tuple(self._stages), sink, columns, str(checkpoint), event_time, sample
        )

    @property
    def built(self) -> Staged:
        """The complete pipeline."""
        if self._staged is None:
            raise InvalidValue(f"pipeline {self._name!r} has no sink: end it with p.to_kafka(...)")
        return self._staged

    def _add(self, stage: StagePart) -> None:
        if self._source is None or self._staged is not None:
            raise InvalidValue(f"pipeline {self._name!r}: stage {stage.name!r} must come between source and sink")
        self._stages.append(stage)

    def _new(self, name: str) -> str:
        taken = [stage.name for stage in self._stages] + ([self._source.name] if self._source else [])
        if not isinstance(name, str) or NAME.fullmatch(name) is None or name == JOB:
            raise InvalidValue(
                f"{name!r} is not a valid name for a part of a pipeline: use letters, digits, _ and -, and not 'job'"
            )
        if name in taken:
            raise InvalidValue(f"pipeline {self._name!r} has two parts with the name {name!r}")
        return name


class PipelineFunction:
    """A function that defines a pipeline: `define` calls it with options and returns the pipeline."""

    def __init__(self, function: Callable[..., None]) -> None:
        self._function = function
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__

    def define(self, **options: Any) -> Staged:
        """Define the pipeline with these options."""
        valid = list(inspect.signature(self._function).parameters)[1:]
        for name in options:
            if name not in valid:
                raise InvalidValue(f"pipeline {self.__name__!r} has no option {name!r}, {nearest(name, valid)}")
        builder = Builder(self.__name__)
        self._function(builder, **options)
        return builder.built


def pipeline(function: Callable[..., None]) -> PipelineFunction:
    """Turn a function with a builder `p`, and options of your own, into a pipeline."""
    if not callable(function) or not inspect.signature(function).parameters:
        raise InvalidValue("rheostat.pipeline decorates a function whose first parameter is the builder, as in f(p)")
    return PipelineFunction(function)


def _identity(rows: DataFrame) -> DataFrame:
    return rows


def _function(name: str, apply: Transform) -> Transform:
    if not callable(apply):
        raise InvalidValue(f"stage {name!r} needs a function DataFrame -> DataFrame, not {apply!r}")
    return apply


def _add_ages(work: Transform, event_time: str, sample: int) -> Transform:
    """Return the work with columns for the latencies after it, of one row in `sample`.

    A record that was there when its batch began has entered the job then, any other one when it was written.
    """
    from pyspark.sql import functions as sql

    now_ms = "cast(java_method('java.lang.System', 'currentTimeMillis') as bigint)"
    entered_ms = f"greatest(unix_millis({event_time}), unix_millis(current_timestamp()))"

    def aged(rows: DataFrame) -> DataFrame:
        # Drawn at random, not by a hash of the row: a hash would leave out the same keys every time.
        age = sql.expr(f"case when rand() * {sample} < 1 then {now_ms} - unix_millis({event_time}) end")
        wait = sql.expr(f"{entered_ms} - unix_millis({event_time})")
        rows = work(rows).withColumn(AGES[EVENT_LATENCY], age)
        return rows.withColumn(AGES[LATENCY], sql.col(AGES[EVENT_LATENCY]) - wait)

    return aged


def _quantiles() -> list[Column]:
    from pyspark.sql import functions as sql

    return [sql.percentile_approx(column, list(QUANTILES), 1000).alias(name) for name, column in AGES.items()]
