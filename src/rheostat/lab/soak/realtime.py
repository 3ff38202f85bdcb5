"""The real-time job of soaks and storms: Kafka, a stateless stage, counts by key, Kafka, on `local[N]`."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from rheostat.clock import WallClock
from rheostat.engine.spark.session.log4j import quiet
from rheostat.engine.testbed.loads import Constant
from rheostat.engine.testbed.schedule import Schedule
from rheostat.job.guards import UNGUARDED
from rheostat.kafka.broker import Broker
from rheostat.kafka.load import start_load
from rheostat.kafka.output import Follower
from rheostat.lab.experiment.processes import Child, enclose
from rheostat.lab.experiment.realtime_run import SINK, SOURCE, local_session, open_topics, parse_count
from rheostat.lab.query_checkpoint import CheckpointReader
from rheostat.lab.soak.driver import serve
from rheostat.lab.soak.faults import Kind
from rheostat.lab.soak.restless import Restless
from rheostat.lab.workload.counting import counting, due, fill

JOB = "counting"
"""The job's name in the journal."""
KEYS, SLOTS, PARTITIONS = 1000, 12, 2
LOAD_PER_S = 500.0
DRAIN_S = 120.0
"""Seconds to wait for the last results."""
REST = Restless(chance=0.2)
"""A change every few steps: a query lives for some batches, also between faults."""


class RealTimeCount:
    """The job with its broker and its load; results are folded as they arrive, so that a soak can be long."""

    job, name = JOB, "realtime"
    kinds: tuple[Kind, ...] = (Kind.DRIVER, Kind.JVM, Kind.STOP)

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder, self._seed, self._last = folder, seed, dict[str, int]()
        self._checkpoint = CheckpointReader(folder / "checkpoint")
        with ExitStack() as opened:
            self._broker = opened.enter_context(Broker())
            open_topics(self._broker, PARTITIONS)
            fill(self._broker.bootstrap, SOURCE, KEYS)
            self._results = opened.enter_context(Follower(self._broker.bootstrap, SINK, parse_count))
            schedule = Schedule(Constant(1.0), LOAD_PER_S, 3600)
            self._load = opened.enter_context(start_load(self._broker.bootstrap, SOURCE, schedule))
            self._opened = opened.pop_all()

    def close(self) -> None:
        """End the load and the broker."""
        self._opened.close()

    def start_driver(self, log_file: Path) -> Child:
        """Start a driver in its own process."""
        return Child(drive, self._broker.bootstrap, str(self._folder), REST, self._seed, str(log_file))

    def records_due(self) -> int:
        """Return the records that the broker has acknowledged."""
        return KEYS + self._load.sent.delivered

    def records_finished(self) -> int:
        """Return the records that finished batches have read."""
        return self._checkpoint.read_from_kafka(self._checkpoint.committed())

    def fold(self) -> None:
        """Fold the results that have arrived; a key has one partition, so its last one is its newest."""
        self._last.update((output.key, output.number) for output in self._results.drain())

    def compare(self, end_driver: Callable[[], None]) -> tuple[int, int]:
        """Stop the load, wait for the last results, and return the keys that are wrong and the records sent."""
        sent, clock = self._load.stop(), WallClock()
        wanted = due(KEYS, {"filled": KEYS, "load": sent.delivered})
        deadline_s = clock.monotonic() + DRAIN_S
        self.fold()
        while self._last != wanted and clock.monotonic() < deadline_s:
            clock.sleep(0.5)
            self.fold()
        end_driver()
        self.fold()
        wrong = sum(self._last.get(key) != wanted.get(key) for key in self._last.keys() | wanted.keys())
        return wrong, KEYS + sent.delivered


def drive(servers: str, folder: str, policy: Restless, seed: int = 0, log_file: str = os.devnull) -> None:
    """Run a driver until SIGTERM."""
    from rheostat.api.options import Options
    from rheostat.api.start import start

    enclose(Path(folder), log_file)
    spark = local_session(SLOTS, quiet(Path(folder)))
    staged = counting(servers, SOURCE, SINK, f"{folder}/checkpoint", KEYS)
    options = Options(interval_s=1.0, window_s=10.0, guards=UNGUARDED, seed=seed)
    scaler = start(staged, mode="realtime", policy=policy, journal=f"{folder}/journal.db", options=options)
    serve(scaler, spark, Path(folder))
    spark.stop()
