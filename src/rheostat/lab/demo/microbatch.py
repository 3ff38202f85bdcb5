"""The demo: YSB on an embedded Spark cluster under a load that rises, spikes and falls; one executor is killed.

Every task is paced, so that a machine with two cores behaves like a cluster: a slot processes a fixed number of records
per second, and six executors are six processes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rheostat.api.autoscale import autoscale
from rheostat.api.options import Options
from rheostat.api.scaler import Scaler
from rheostat.clock import WallClock
from rheostat.control.controller import Step
from rheostat.engine.spark.session.log4j import quiet
from rheostat.engine.spark.session.session import session
from rheostat.engine.testbed.schedule import Schedule
from rheostat.engine.testbed.source import ScheduleCounter, stream
from rheostat.errors import RheostatError, first_line
from rheostat.lab.experiment.microbatch import MicroBatches, demo_load
from rheostat.lab.experiment.processes import kill_an_executor
from rheostat.lab.experiment.trial import LIVE_GUARDS
from rheostat.lab.workload.pacing import paced
from rheostat.lab.workload.ysb import YSB
from rheostat.ports import Journal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

EXECUTORS = (1, 6)
"""Smallest and largest size."""
SLOT_PER_S = 400.0
"""Records/s of one slot."""
PARTITIONS = 12
"""Partitions of the source: twice the slots, so that new executors help within a running batch."""
OBJECTIVES = MicroBatches.slo
GUARDS = LIVE_GUARDS
"""Guards of the demo: three minutes are too short for a careful operator's wait before shrinking."""
INTERVAL_S, WINDOW_S = 5.0, 15.0


@dataclass(frozen=True, slots=True)
class Demo:
    """The demo's measurements."""

    steps: tuple[Step, ...]
    seconds: float
    schedule: Schedule
    killed_s: float | None
    """Seconds since the start at which an executor was killed."""


def run(seconds: int, journal: Journal, show: Callable[[Scaler, float], None]) -> Demo:
    """Run the demo for these seconds; `show` is called about once a second."""
    load = demo_load(seconds)
    schedule = Schedule(load, YSB.unit_per_s, int(load.hold_s) * len(load.levels))
    clock = WallClock()
    with TemporaryDirectory(prefix="rheostat-demo-") as folder:
        spark = session(
            "rheostat-demo",
            min_executors=EXECUTORS[0],
            max_executors=EXECUTORS[1],
            conf={**quiet(Path(folder)), "spark.sql.shuffle.partitions": "6"},
        )
        try:
            events = stream(spark, schedule, partitions=PARTITIONS).transform(_pace)
            query = (
                YSB.build(events)
                .writeStream.outputMode(YSB.output_mode)
                .format("noop")
                .queryName("ysb")
                .option("checkpointLocation", str(Path(folder) / "checkpoint"))
                .trigger(processingTime="2 seconds")
                .start()
            )
            started_s, killed_s = clock.now(), None
            counters = {"ysb": ScheduleCounter(schedule)}
            with autoscale(
                query,
                slo=OBJECTIVES,
                min_executors=EXECUTORS[0],
                max_executors=EXECUTORS[1],
                journal=journal,
                options=Options(interval_s=INTERVAL_S, window_s=WINDOW_S, counters=counters, guards=GUARDS),
            ) as scaler:
                while (gone_s := clock.now() - started_s) < seconds and query.isActive:
                    if killed_s is None and gone_s > 0.6 * seconds:
                        killed_s = gone_s if kill_an_executor() else None
                    show(scaler, gone_s)
                    clock.sleep(1.0)
                steps = scaler.steps
            if (failed := query.exception()) is not None:
                raise RheostatError(f"the query failed: {first_line(failed)}")
            query.stop()
            return Demo(steps, clock.now() - started_s, schedule, killed_s)
        finally:
            spark.stop()


def _pace(events: DataFrame) -> DataFrame:
    return paced(events, SLOT_PER_S, tasks=PARTITIONS)


@dataclass(frozen=True, slots=True)
class Cost:
    """One way to run the demo's load: its executor-seconds, and its seconds over the objective."""

    way: str
    executor_seconds: float
    seconds_over: float
    measured: bool


def costs(demo: Demo) -> list[Cost]:
    """Return the cost of the scaler, measured, and of fixed sizes, computed from the capacity measured in this run."""
    usable = [step.observation for step in demo.steps if step.observation.running is not None]
    held = sum(o.running.slots for o in usable if o.running is not None) * INTERVAL_S
    over = sum(INTERVAL_S for o in usable if o.latency and o.latency.event_p99_s > (OBJECTIVES.max_latency_s or 0.0))
    rates = sorted(r for o in usable if o.usable and (r := o.operator("job").true_rate_per_s))
    all_costs = [Cost("scaled by DS2", held, over, True)]
    # Without a clean window, as on a busy machine, the pace itself is the best estimate.
    slot_per_s = rates[len(rates) // 2] if rates else SLOT_PER_S
    for way, count in (("static minimum", EXECUTORS[0]), ("static maximum", EXECUTORS[1])):
        all_costs.append(Cost(way, count * demo.seconds, _late_s(demo, count * slot_per_s), False))
    return all_costs


def _late_s(demo: Demo, capacity_per_s: float) -> float:
    """Return the seconds in which a fixed capacity misses the latency objective."""
    backlog, late = 0.0, 0.0
    for second in range(int(demo.seconds)):
        arrived = demo.schedule.due(second + 1) - demo.schedule.due(second)
        backlog = max(0.0, backlog + arrived - capacity_per_s)
        late += backlog > capacity_per_s * (OBJECTIVES.max_latency_s or 0.0)
    return late
