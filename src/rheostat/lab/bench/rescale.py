"""The downtime of a change in real-time mode, by keys in the state; and a storm of changes and kills.

Downtime is what a reader of the output topic sees: from the last result before a change to the first one after it.
The storm changes tasks at random under load while the driver and its JVM are killed at random moments. The next driver
continues from the journal. At the end every key's count is compared with what was sent.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rheostat.clock import WallClock
from rheostat.engine.spark.pipeline import Builder, Staged
from rheostat.engine.spark.session.log4j import quiet
from rheostat.engine.testbed.loads import Constant
from rheostat.engine.testbed.schedule import Schedule
from rheostat.errors import EngineError, PolicyError
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Reason
from rheostat.job.record import Intent, IntentEnd
from rheostat.journal import open_journal
from rheostat.kafka import client as kafka_client
from rheostat.kafka import output as kafka_output
from rheostat.kafka.broker import Broker
from rheostat.kafka.load import start_load
from rheostat.lab.bench.measure import Measure
from rheostat.lab.experiment.processes import Child, in_own_process
from rheostat.lab.experiment.realtime_run import SINK, SOURCE, await_output, keys_wrong, local_session, open_topics
from rheostat.lab.experiment.trial import Progress
from rheostat.lab.workload.realtime import numbers, record
from rheostat.ports import Policy, Situation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEYS = (100, 100_000, 1_000_000)
"""Numbers of keys in the state."""
LOAD_PER_S = 1000.0
SLOTS = 12
REST_S = 7.0
"""Seconds between two changes: a batch and some more."""
FILL_S = 300.0
"""Seconds for filling the state."""
DRAIN_S = 120.0
"""Seconds to wait for the last results."""
STORM_CHANGES, STORM_KILLS = 20, 3
STORM_KEYS = 1000
STORM_S = 900.0
"""Seconds for a storm."""


def downtime(quick: bool, progress: Progress) -> list[Measure]:
    """Measure the downtime of changes, by the keys in the state."""
    changes = 2 if quick else 6
    measures, wrong = [], 0
    for keys in KEYS[: 1 if quick else None]:
        progress(f"{keys:,} keys: {changes} changes of the state's partitions")
        result = in_own_process(downtimes, keys, changes)
        wrong += result.keys_wrong
        if keys == KEYS[0]:
            measures.append(_downtime("downtime_s_stateless", result.stateless_s, "<= 1.5"))
        goal = "<= 10" if keys == KEYS[-1] else ""
        measures.append(_downtime(f"downtime_s_stateful_{keys}", result.stateful_s, goal))
    return [*measures, _keys_wrong(wrong)]


def storm(quick: bool, progress: Progress) -> list[Measure]:
    """Measure a job under random changes and kills."""
    changes, kills = (4, 1) if quick else (STORM_CHANGES, STORM_KILLS)
    progress(f"a storm: {changes} changes, {kills} kills")
    result = run_storm(changes, kills)
    return [
        Measure(
            "rescale", "kills_tried", result.kills, "", "", "higher", "SIGKILL of driver and JVM, at random moments"
        ),
        Measure("rescale", "kills_survived", result.survived, "", f">= {result.kills}", "higher", result.note),
        _keys_wrong(result.keys_wrong),
        Measure("rescale", "results_twice", result.repeated, "", "", "lower", "Kafka as a sink is at-least-once"),
    ]


def _keys_wrong(count: int) -> Measure:
    return Measure("rescale", "keys_wrong", count, "", "<= 0", "lower", "against what was sent")


def _downtime(name: str, seconds: tuple[float, ...], goal: str) -> Measure:
    note = f"median of {len(seconds)}, the worst {max(seconds):.1f}; at {LOAD_PER_S:,.0f} records/s"
    return Measure("rescale", name, median(seconds), "s", goal, "lower", note)


# -- downtime ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Downtimes:
    """Downtimes as a reader of the output topic sees them."""

    stateless_s: tuple[float, ...]
    stateful_s: tuple[float, ...]
    keys_wrong: int


def counting(servers: str, checkpoint: str, keys: int) -> Staged:
    """Return a pipeline that counts numbers by key."""

    def by_key(rows: DataFrame) -> DataFrame:
        from pyspark.sql.functions import expr

        return rows.withColumn("key", expr(f"pmod(value, {keys})"))

    def count(rows: DataFrame) -> DataFrame:
        from pyspark.sql import functions as sql

        return rows.groupBy("key").agg(sql.count("*").alias("count"), sql.max("timestamp").alias("timestamp"))

    p = Builder("counting")
    p.kafka("numbers", servers=servers, topic=SOURCE, parse=numbers, options={"startingOffsets": "earliest"})
    p.stage("key", by_key)
    p.keyed("count", count)
    p.to_kafka("counts", servers=servers, topic=SINK, columns=record, checkpoint=checkpoint, event_time="timestamp")
    return p.built


def due(keys: int, sent: Mapping[str, int]) -> dict[str, int]:
    """Return every key's count after the numbers from 0 up to each of these counts were sent."""
    totals = np.zeros(keys, dtype=np.int64)
    for count in sent.values():
        whole, rest = divmod(count, keys)
        totals += whole
        totals[:rest] += 1
    return {str(key): int(total) for key, total in enumerate(totals) if total}


def downtimes(keys: int, changes: int) -> Downtimes:
    """Change the tasks of a pipeline under load repeatedly, in this process."""
    from rheostat.engine.spark.executors.slots import FixedSlots
    from rheostat.engine.spark.realtime import RealTimeEngine

    clock = WallClock()
    with TemporaryDirectory(prefix="rheostat-rescale-") as folder, Broker() as broker:
        open_topics(broker, 2)
        fill(broker.bootstrap, keys)
        spark = local_session(SLOTS, quiet(Path(folder)))
        try:
            staged = counting(broker.bootstrap, f"{folder}/checkpoint", keys)
            engine = RealTimeEngine(spark, staged, FixedSlots(SLOTS), clock)
            engine.begin(Allocation({"key": 2, "count": 3}))
            _await_filled(engine, keys, clock)
            changed: list[tuple[float, bool]] = []
            with start_load(broker.bootstrap, SOURCE, Schedule(Constant(1.0), LOAD_PER_S, 3600)) as load:
                clock.sleep(2 * REST_S)
                for number in range(changes):
                    for stateful in (False, True) if keys == KEYS[0] else (True,):
                        changed.append((_change(engine, stateful, number, clock), stateful))
                        clock.sleep(REST_S)
                end_s = clock.now()
                sent = load.stop()
            wanted = due(keys, {"filled": keys, "load": sent.delivered})
            outputs = await_output(broker.bootstrap, wanted, clock, DRAIN_S)
            for query in engine.queries:
                query.stop()
            engine.close()
        finally:
            spark.stop()
    silent = kafka_output.downtimes_s(outputs, [at_s for at_s, _ in changed], end_s)
    pairs = list(zip(silent, (stateful for _, stateful in changed), strict=True))
    return Downtimes(
        tuple(seconds for seconds, stateful in pairs if not stateful),
        tuple(seconds for seconds, stateful in pairs if stateful),
        keys_wrong(outputs, wanted),
    )


def fill(servers: str, keys: int) -> None:
    """Write every number once."""
    producer = kafka_client.producer(servers, {"linger.ms": 50, "queue.buffering.max.messages": 1_000_000})
    for number in range(keys):
        while True:
            try:
                producer.produce(SOURCE, str(number).encode())
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()


def _await_filled(engine: Any, keys: int, clock: WallClock) -> None:
    deadline_s = clock.now() + FILL_S
    while True:
        window = engine.observe()
        if window.usable and window.backlog == 0:
            return
        if clock.now() > deadline_s:
            raise EngineError(f"the state of {keys:,} keys was not filled within {FILL_S:g} s: {window.problem}")
        clock.sleep(1.0)


def _change(engine: Any, stateful: bool, number: int, clock: WallClock) -> float:
    """Change one stage's tasks back or forth; return when the change began."""
    was = engine.pipeline.allocation
    name, sizes = ("count", (5, 2)) if stateful else ("key", (3, 2))
    target = was.with_tasks({name: sizes[number % 2]})
    engine.observe()  # so that the engine knows the progress of the running batch
    at_s = clock.now()
    engine.apply(Intent(f"{name}-{number}", number, at_s, target, was), lambda _: None)
    engine.pipeline.wait()
    if engine.pipeline.failure is not None:
        raise engine.pipeline.failure
    return at_s


# -- the storm ---------------------------------------------------------------------------------------------------------


class Restless(Policy[None]):
    """Requests random tasks in every window."""

    name: ClassVar[str] = "restless"

    def decide(self, situation: Situation[None]) -> Decision:
        """Draw a number of tasks for every stage."""
        drawn = {name: int(situation.rng().integers(1, 5)) for name in situation.spec.tunable_names}
        drawn["key"] = 1 + (drawn["key"] + situation.step) % 4
        target = Allocation(drawn)
        if target == situation.running:
            return Decision.hold(Reason.STEADY, "restless: the drawn tasks run already")
        return Decision(target, Reason.MIXED, f"restless: {target}")


@dataclass(frozen=True)
class Storm:
    """The result of a storm."""

    changes: int
    kills: int
    survived: int
    keys_wrong: int
    repeated: int
    note: str


def run_storm(changes: int, kills: int, seed: int = 0) -> Storm:
    """Start a driver, kill it at random moments and start the next one, until all changes are made."""
    rng, clock = np.random.default_rng(seed), WallClock()
    with TemporaryDirectory(prefix="rheostat-storm-") as folder, Broker() as broker:
        open_topics(broker, 2)
        fill(broker.bootstrap, STORM_KEYS)
        deadline_s, tried, survived = clock.now() + STORM_S, 0, 0
        with start_load(broker.bootstrap, SOURCE, Schedule(Constant(1.0), LOAD_PER_S / 2, 3600)) as load:
            driver = Child(drive, broker.bootstrap, folder)
            # Each kill comes after some of the changes, at a random moment of the next one.
            due_at = sorted(rng.choice(np.arange(1, changes), size=kills, replace=False).tolist())
            while (done := _finished_changes(folder)) < changes and clock.now() < deadline_s:
                if driver.exitcode is not None:
                    raise EngineError(f"the driver of the storm ended with exit code {driver.exitcode}")
                if due_at and done >= due_at[0]:
                    due_at.pop(0)
                    clock.sleep(float(rng.uniform(0.0, 8.0)))
                    driver.kill()
                    tried += 1
                    before = _finished_changes(folder)
                    driver = Child(drive, broker.bootstrap, folder)
                    while _finished_changes(folder) == before and clock.now() < deadline_s and driver.exitcode is None:
                        time.sleep(0.5)
                    survived += _finished_changes(folder) > before
                time.sleep(0.2)
            sent = load.stop()
        wanted = due(STORM_KEYS, {"filled": STORM_KEYS, "load": sent.delivered})
        outputs = await_output(broker.bootstrap, wanted, clock, DRAIN_S)
        driver.end()
        _raise_failure(folder)
        made = _finished_changes(folder)
    wrong = keys_wrong(outputs, wanted)
    note = f"{made} random changes under {LOAD_PER_S / 2:,.0f} records/s, {sent.delivered:,} records"
    return Storm(made, tried, survived, wrong, kafka_output.repetitions(outputs), note)


def _finished_changes(folder: str) -> int:
    """Count the finished changes in the journal."""
    if not (Path(folder) / "journal.db").exists():
        return 0
    journal = open_journal(f"{folder}/journal.db")
    try:
        return sum(
            isinstance(entry.record, IntentEnd) and str(entry.record.ending) == "done"
            for entry in journal.read("counting", kinds=("intent_end",))
        )
    finally:
        journal.close()


def _raise_failure(folder: str) -> None:
    """Raise the first failure of the policy in the journal."""
    journal = open_journal(f"{folder}/journal.db")
    try:
        for entry in journal.read("counting", kinds=("decision",)):
            if isinstance(entry.record, Decision) and entry.record.reason is Reason.NO_POLICY:
                raise PolicyError(f"{entry.record.sentence} (step {entry.step})")
    finally:
        journal.close()


def drive(servers: str, folder: str) -> None:
    """Run a driver of the storm until SIGTERM."""
    from rheostat.api.options import Options
    from rheostat.api.start import start
    from rheostat.job.guards import UNGUARDED

    # A killed driver and its JVM log much.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    spark = local_session(SLOTS, quiet(Path(folder)))
    staged = counting(servers, f"{folder}/checkpoint", STORM_KEYS)
    ending: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ending.append(number))
    restless = Options(interval_s=1.0, window_s=10.0, guards=UNGUARDED)
    with start(staged, mode="realtime", policy=Restless(), journal=f"{folder}/journal.db", options=restless) as scaler:
        while not ending and scaler.holds:
            time.sleep(0.2)
    for query in scaler.queries:
        query.stop()
    spark.stop()
