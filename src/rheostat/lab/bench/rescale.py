"""The downtime of a change in real-time mode, by keys in the state; a storm of changes and kills; kills over moves.

Downtime is what a reader of the output topic sees: from the last result before a change to the first one after it.
The storm changes tasks at random under load while the driver and its JVM are killed at random moments. The next driver
continues from the journal. At the end every key's count is compared with what was sent.

Part `kills` aims: drivers are killed while they repartition state, and others while they undo what those have left
(`lab/kills/run.py`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from rheostat.clock import WallClock
from rheostat.engine.spark.session.log4j import quiet
from rheostat.engine.testbed.loads import Constant
from rheostat.engine.testbed.schedule import Schedule
from rheostat.errors import EngineError
from rheostat.job.allocation import Allocation
from rheostat.job.record import Intent
from rheostat.kafka import output as kafka_output
from rheostat.kafka.broker import Broker
from rheostat.kafka.load import start_load
from rheostat.lab.bench.measure import Measure
from rheostat.lab.experiment.processes import Child, in_own_process
from rheostat.lab.experiment.realtime_run import SINK, SOURCE, await_output, keys_wrong, local_session, open_topics
from rheostat.lab.experiment.trial import Progress
from rheostat.lab.kills.run import FORMATS, QUICK_FORMATS, Kills, run_kills
from rheostat.lab.soak import realtime as job
from rheostat.lab.soak.changes import count_changes, raise_failure
from rheostat.lab.soak.restless import Restless
from rheostat.lab.workload.counting import counting, due, fill

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
STORM_S = 900.0
"""Seconds for a storm."""
KILLS, QUICK_KILLS = 20, 2
"""Kills over the move, and as many over the roll-back."""


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


def kills(quick: bool, progress: Progress) -> list[Measure]:
    """Kill drivers while they repartition state, and while they undo what a killed driver has left."""
    count, formats = (QUICK_KILLS, QUICK_FORMATS) if quick else (KILLS, FORMATS)
    return kill_measures(run_kills(count, formats, progress), count)


def kill_measures(result: Kills, wanted: int) -> list[Measure]:
    """Return what the kills come to."""
    stages = ", ".join(f"{stage} {count}" for stage, count in sorted(result.stages.items()))
    continued = "; ".join(result.problems[:3]) or "all continued, and again in a new application"
    kill = "SIGKILL of driver and JVM"
    return [
        Measure("rescale", "kills_move", result.move, "", f">= {wanted}", "higher", f"{kill} inside a repartition"),
        Measure("rescale", "kills_undo", result.undo, "", f">= {wanted}", "higher", f"{kill} inside its roll-back"),
        _keys_wrong(result.keys_wrong),
        Measure("rescale", "stages_hit", len(result.stages), "", "", "higher", stages),
        Measure("rescale", "undone", result.undone, "", "", "higher", continued),
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


def downtimes(keys: int, changes: int) -> Downtimes:
    """Change the tasks of a pipeline under load repeatedly, in this process."""
    from rheostat.engine.spark.executors.slots import FixedSlots
    from rheostat.engine.spark.realtime import RealTimeEngine

    clock = WallClock()
    with TemporaryDirectory(prefix="rheostat-rescale-") as folder, Broker() as broker:
        open_topics(broker, 2)
        fill(broker.bootstrap, SOURCE, keys)
        spark = local_session(SLOTS, quiet(Path(folder)))
        try:
            staged = counting(broker.bootstrap, SOURCE, SINK, f"{folder}/checkpoint", keys)
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
    with TemporaryDirectory(prefix="rheostat-storm-", ignore_cleanup_errors=True) as folder, Broker() as broker:
        journal = Path(folder) / "journal.db"

        def finished() -> int:
            return count_changes(journal, job.JOB).done

        open_topics(broker, 2)
        fill(broker.bootstrap, SOURCE, job.KEYS)
        deadline_s, tried, survived = clock.now() + STORM_S, 0, 0
        with start_load(broker.bootstrap, SOURCE, Schedule(Constant(1.0), LOAD_PER_S / 2, 3600)) as load:
            driver = Child(job.drive, broker.bootstrap, folder, Restless())
            # Each kill comes after some of the changes, at a random moment of the next one.
            due_at = sorted(rng.choice(np.arange(1, changes), size=kills, replace=False).tolist())
            while (done := finished()) < changes and clock.now() < deadline_s:
                if driver.exitcode is not None:
                    raise EngineError(f"the driver of the storm ended with exit code {driver.exitcode}")
                if due_at and done >= due_at[0]:
                    due_at.pop(0)
                    clock.sleep(float(rng.uniform(0.0, 8.0)))
                    driver.kill()
                    tried += 1
                    before = finished()
                    driver = Child(job.drive, broker.bootstrap, folder, Restless())
                    while finished() == before and clock.now() < deadline_s and driver.exitcode is None:
                        time.sleep(0.5)
                    survived += finished() > before
                time.sleep(0.2)
            sent = load.stop()
        wanted = due(job.KEYS, {"filled": job.KEYS, "load": sent.delivered})
        outputs = await_output(broker.bootstrap, wanted, clock, DRAIN_S)
        driver.end()
        raise_failure(journal, job.JOB)
        made = finished()
    wrong = keys_wrong(outputs, wanted)
    note = f"{made} random changes under {LOAD_PER_S / 2:,.0f} records/s, {sent.delivered:,} records"
    return Storm(made, tried, survived, wrong, kafka_output.repetitions(outputs), note)
