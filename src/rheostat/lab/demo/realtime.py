"""The demo in real-time mode: WordCount between two topics of its own broker, tasks per stage, one failure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from rheostat.api.options import Options
from rheostat.api.scaler import Scaler
from rheostat.api.start import start
from rheostat.clock import WallClock
from rheostat.control.controller import Step
from rheostat.engine.spark.session.log4j import quiet
from rheostat.engine.testbed.loads import Steps
from rheostat.engine.testbed.schedule import Schedule
from rheostat.job.allocation import Allocation
from rheostat.kafka import output as kafka_output
from rheostat.kafka.broker import Broker
from rheostat.kafka.load import start_load
from rheostat.lab.experiment.realtime_run import (
    SOURCE,
    await_first_batch,
    await_output,
    expected_counts,
    keys_wrong,
    local_session,
    open_topics,
    paces_of,
    pipeline_on,
)
from rheostat.lab.experiment.trial import LIVE_GUARDS, Progress
from rheostat.lab.jobs.realtime import PARTITIONS, SLOTS, word_count
from rheostat.ports import Journal

LEVELS = (2.0, 4.0, 7.0, 5.0, 3.0, 2.0)
"""Levels of the load."""
INTERVAL_S, WINDOW_S = 5.0, 20.0
START = {"split": 2, "count": 2}
FIRST_DECISION_S = 10.0
"""Seconds of load before the first decision: earlier windows show a load that has only begun."""
DRAIN_S = 60.0
"""Seconds to wait for the last results."""


@dataclass(frozen=True, slots=True)
class RealTimeDemo:
    """The demo's measurements."""

    steps: tuple[Step, ...]
    failed_s: float
    """Seconds since the start at which the query was made to fail."""
    latency: kafka_output.Latency | None
    records: int
    keys_wrong: int
    repeated: int


def run(seconds: int, journal: Journal, show: Callable[[Scaler, float], None], notify: Progress) -> RealTimeDemo:
    """Run the demo for these seconds; `show` is called about once a second."""
    plant = word_count()
    hold_s = max(5, seconds // len(LEVELS) // 5 * 5)
    schedule = Schedule(Steps(LEVELS, hold_s), plant.unit_per_s["lines"], hold_s * len(LEVELS))
    clock = WallClock()
    with TemporaryDirectory(prefix="rheostat-demo-") as folder, Broker(notify=notify) as broker:
        open_topics(broker, PARTITIONS)
        spark = local_session(SLOTS, quiet(Path(folder)))
        try:
            staged = pipeline_on(broker, "wordcount", f"{folder}/checkpoint", paces=paces_of(plant))
            with start(
                staged,
                mode="realtime",
                initial=Allocation(START),
                policy="ds2",
                journal=journal,
                options=Options(interval_s=INTERVAL_S, window_s=WINDOW_S, guards=LIVE_GUARDS),
            ) as scaler:
                notify("waiting for the first batch")
                await_first_batch(scaler, clock)
                started_s, failed_s, first = clock.now(), 0.0, scaler.queries[0].runId
                with start_load(broker.bootstrap, SOURCE, schedule) as load:
                    while (gone_s := clock.now() - started_s) < seconds:
                        if gone_s > FIRST_DECISION_S:
                            scaler.resume()
                        if (
                            not failed_s
                            and gone_s > 0.7 * seconds
                            and scaler.steps
                            and scaler.steps[-1].observation.usable
                        ):
                            failed_s, first = gone_s, scaler.queries[0].runId
                        if failed_s and scaler.queries[0].runId == first:
                            # As when an executor dies: the jobs of a real-time query fail, and so does the query.
                            # Repeated, because between two batches there is no job.
                            spark.sparkContext.cancelAllJobs()
                        show(scaler, gone_s)
                        clock.sleep(1.0)
                    sent = load.stop()
                due = expected_counts(spark, staged)
                outputs = await_output(broker.bootstrap, due, clock, DRAIN_S)
                steps = scaler.steps
            for query in scaler.queries:
                query.stop()
        finally:
            spark.stop()
    return RealTimeDemo(
        steps,
        failed_s,
        kafka_output.latency(outputs),
        sent.delivered,
        keys_wrong(outputs, due),
        kafka_output.repetitions(outputs),
    )
