"""One run of a paced pipeline in real-time mode, with a Kafka broker, a load and a policy.

Latency and downtime come from the broker's timestamps in the output topic. The last count of every key is compared with
a batch computation over the input topic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from rheostat.clock import WallClock
from rheostat.engine.simulated import Plant
from rheostat.engine.spark.pipeline import Staged
from rheostat.engine.spark.session.log4j import quiet
from rheostat.engine.testbed.simulated import SimulatedTestbed
from rheostat.errors import PolicyError
from rheostat.kafka import output as kafka_output
from rheostat.kafka.broker import APPEND_TIME, Broker
from rheostat.kafka.jars import connector_jars
from rheostat.kafka.load import start_load
from rheostat.lab.experiment.failures import scaler_failure
from rheostat.lab.experiment.run import Run
from rheostat.lab.experiment.trial import LIVE_GUARDS, Trial
from rheostat.lab.jobs import realtime as jobs
from rheostat.lab.workload.realtime import RECIPES, StagePace, realtime_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rheostat.api.scaler import Scaler

DRAIN_S = 240.0
"""Seconds to wait for the last results after the end of the load."""
SOURCE, SINK = "input", "output"
"""Names of the topics."""
REALTIME = "spark-realtime"
"""Name of the engine in a row."""
TWINS = {"wordcount": jobs.word_count, "ysb": jobs.ysb}
"""Pipeline -> its simulated twin, which sets rates and curves."""


def pipeline_of(twin: Plant) -> str:
    """Return the pipeline of a twin."""
    return twin.name.removeprefix("realtime-")


def run_realtime(trial: Trial[Plant]) -> Run[Plant]:
    """Run one trial in this process, which must not have a SparkSession yet."""
    from rheostat.api.options import Options
    from rheostat.api.start import start

    with TemporaryDirectory(prefix="rheostat-realtime-") as folder, Broker() as broker:
        open_topics(broker, jobs.PARTITIONS)
        spark = local_session(jobs.SLOTS, quiet(Path(folder)))
        try:
            staged = pipeline_on(
                broker, pipeline_of(trial.job), f"{folder}/checkpoint", paces=paces_of(trial.job), seed=trial.seed
            )
            options = Options(
                interval_s=trial.interval_s,
                window_s=trial.window_s or trial.job.metrics.window_s,
                seed=trial.seed,
                testbed=SimulatedTestbed(trial.job, trial.seed),  # trials are made there, not on the running job
                guards=LIVE_GUARDS,
            )
            with start(
                staged,
                mode="realtime",
                initial=trial.start,
                slo=trial.slo,
                policy=trial.way,
                journal=f"{folder}/journal.db",
                options=options,
            ) as scaler:
                clock = WallClock()
                await_first_batch(scaler, clock)
                warm_up_steps = len(scaler.steps)
                with start_load(broker.bootstrap, SOURCE, trial.schedule, last_s=trial.schedule.seconds) as load:
                    scaler.resume()
                    sent = load.wait()
                end_s = clock.now()
                steps, failed = scaler.steps[warm_up_steps:], scaler_failure(scaler)
            due = expected_counts(spark, staged)
            outputs = await_output(broker.bootstrap, due, clock)
            for query in scaler.queries:
                query.stop()
        except PolicyError as error:  # the policy failed before the first step: nothing was measured
            return Run(trial, REALTIME, 0.0, policy_error=error)
        finally:
            spark.stop()
    start_s, wrong = sent.start_s, keys_wrong(outputs, due)
    inside = kafka_output.between(outputs, int(start_s * 1e3), int(end_s * 1e3))
    changed_s = [step.observation.at_s for step in steps if step.intent is not None]
    return Run(
        trial,
        REALTIME,
        end_s - start_s,
        start_s,
        steps,
        silences_s=kafka_output.downtimes_s(outputs, changed_s, end_s),
        latency=kafka_output.latency(inside),
        drained_s=None if wrong else max((output.at_ms for output in outputs), default=0) / 1e3 - start_s,
        records=sent.delivered,
        wrong=wrong,
        repeated=kafka_output.repetitions(outputs),
        failed=failed,
    )


def paces_of(plant: Plant) -> dict[str, StagePace]:
    """Return the pace of every tuned stage of the simulated twin."""
    return {op.name: StagePace(op.curve, op.noise) for op in plant.operators if op.pinned_tasks is None}


def await_first_batch(scaler: Scaler, clock: WallClock) -> None:
    """Pause the scaler and wait for a first batch, so that no decision answers a cold JVM."""
    scaler.pause()
    while not any(query.lastProgress is not None for query in scaler.queries):
        clock.sleep(0.2)


def local_session(slots: int, conf: Mapping[str, str]) -> SparkSession:
    """Start Spark in this process, with slots for real-time mode and the Kafka connector."""
    from rheostat.engine.spark.session.session import start_session
    from rheostat.engine.spark.session.settings import ANYWHERE

    return start_session(
        {
            **{key: value for key, (value, _) in ANYWHERE.items()},
            "spark.app.name": "rheostat-realtime",
            "spark.master": f"local[{slots}]",
            "spark.jars": ",".join(map(str, connector_jars())),
            "spark.sql.session.timeZone": "UTC",
            **conf,
        },
    )


def parse_count(key: bytes | None, value: bytes | None) -> tuple[str, int, int]:
    """Parse a result of `lab.workload.realtime`; the name of its writer may follow."""
    number, event_ms, *_ = (value or b"0 0").split()
    return (key or b"").decode(), int(number), int(event_ms)


def expected_counts(spark: SparkSession, staged: Staged) -> dict[str, int]:
    """Compute every key's last count from the input topic with a batch query."""
    recipe = RECIPES[staged.name]
    rows = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", staged.source.servers)
        .option("subscribe", staged.source.topic)
        .load()
    )
    rows = recipe.parse(rows)
    for _, apply in recipe.stages:
        rows = apply(rows)
    if recipe.keyed is not None:
        rows = recipe.keyed[1](rows)
    counts = recipe.write(rows).collect()
    return {row["key"]: int(row["value"].split()[0]) for row in counts}


def pipeline_on(broker: Broker, name: str, checkpoint: str, **options: Any) -> Staged:
    """Return a pipeline between the two topics of a broker, with these options of `realtime_pipeline`."""
    return realtime_pipeline(name, servers=broker.bootstrap, source=SOURCE, sink=SINK, checkpoint=checkpoint, **options)


def open_topics(broker: Broker, partitions: int) -> None:
    """Create the input and the output topic; results get the broker's timestamp."""
    broker.create(SOURCE, partitions)
    broker.create(SINK, partitions, APPEND_TIME)


def await_output(
    servers: str, due: Mapping[str, int], clock: WallClock, patience_s: float = DRAIN_S
) -> list[kafka_output.Output]:
    """Return the output as soon as every key has its last count, at the latest after `patience_s`."""
    deadline_s = clock.now() + patience_s
    while keys_wrong(outputs := kafka_output.read(servers, SINK, parse_count), due) and clock.now() < deadline_s:
        clock.sleep(1.0)
    return outputs


def keys_wrong(outputs: Sequence[kafka_output.Output], due: Mapping[str, int]) -> int:
    """Count the keys with a wrong last count; an unexpected key is wrong, too."""
    last = kafka_output.last_values(outputs)
    return sum(last.get(key) != due.get(key) for key in last.keys() | due.keys())
