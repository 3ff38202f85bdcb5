"""Pipelines for a testbed on Spark: fed at the rates of a trial's phases, and optionally paced."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rheostat.engine.batches.offsets import OffsetCounter
from rheostat.engine.testbed.loads import Steps
from rheostat.engine.testbed.schedule import Schedule
from rheostat.engine.testbed.spark import StartQuery
from rheostat.errors import InvalidValue
from rheostat.job.decision import Phase
from rheostat.lab.workload.catalog import pipeline_named

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

STEP_S = 5
"""Seconds of a step; phases last whole steps."""
QUERY = "testbed"
"""Name of the query."""


def schedule_of(phases: tuple[Phase, ...]) -> Schedule:
    """Return the records of the phases, by second."""
    levels: list[float] = []
    for phase in phases:
        if phase.seconds % STEP_S:
            raise InvalidValue(f"a phase on Spark must last a multiple of {STEP_S} s, not {phase.seconds:g} s")
        levels += [sum(phase.rates_per_s.values())] * round(phase.seconds / STEP_S)
    # Two more steps, because a query is stopped a little after its last phase.
    levels += levels[-1:] * 2
    return Schedule(Steps(tuple(levels), STEP_S), 1.0, len(levels) * STEP_S)


def pipeline_starter(
    pipeline: str, *, slot_per_s: float | None = None, partitions_per_slot: int = 2, trigger_s: float = 1.0
) -> StartQuery:
    """Return the function that starts a pipeline for a trial; `slot_per_s` paces its slots.

    Partitions are a multiple of the slots: twelve partitions on eleven slots run in two waves, like on six slots.
    """
    definition = pipeline_named(pipeline)

    def start(
        spark: SparkSession, phases: tuple[Phase, ...], slots: int, folder: Path
    ) -> tuple[StreamingQuery, OffsetCounter | None]:
        from rheostat.engine.testbed.source import ScheduleCounter, stream
        from rheostat.lab.workload.pacing import paced
        from rheostat.lab.workload.pipeline import plain

        schedule, partitions = schedule_of(phases), slots * partitions_per_slot
        events = stream(spark, schedule, partitions=partitions)
        if slot_per_s is not None:
            events = paced(events, slot_per_s, tasks=partitions)
        query = (
            definition.build(events, plain)
            .writeStream.queryName(QUERY)
            .outputMode(definition.output_mode)
            .format("noop")
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(processingTime=f"{trigger_s:g} seconds")
            .start()
        )
        return query, ScheduleCounter(schedule)

    return start
