"""The engine conformance class over a real MicroBatchEngine, on an embedded cluster.

Spark allows one cluster per process, so `tests/engine/spark/test_conformance.py` runs this file in its own process:

    python -m pytest spark_engine_conformance.py
"""

import tempfile
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

import rheostat
from rheostat.clock import WallClock
from rheostat.engine.spark.microbatch import MicroBatchEngine
from rheostat.engine.testbed.loads import Constant
from rheostat.engine.testbed.schedule import Schedule
from rheostat.engine.testbed.source import ScheduleCounter, stream
from rheostat.job.observation import Change
from rheostat.lab.workload.pacing import paced
from rheostat.ports import Clock, Engine
from rheostat.testing.engine import EngineConformance

EXECUTORS = (1, 2)
PARTITIONS = 4
SCHEDULE = Schedule(Constant(1.0), 50.0, 600)


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    """Start the cluster, and the query that every engine observes."""
    with tempfile.TemporaryDirectory() as folder:
        spark = rheostat.session("conformance", max_executors=EXECUTORS[1], conf={"spark.ui.enabled": "false"})
        spark.sparkContext.setLogLevel("OFF")
        query = (
            paced(stream(spark, SCHEDULE, partitions=PARTITIONS), 200.0, tasks=PARTITIONS)
            .writeStream.format("noop")
            .queryName("conformance")
            .option("checkpointLocation", folder)
            .trigger(processingTime="500 milliseconds")
            .start()
        )
        TestMicroBatchEngine.running = spark, query
        yield
        query.stop()
        spark.stop()


class TestMicroBatchEngine(EngineConformance):
    settle_s = 60.0
    running: ClassVar[tuple[Any, Any]]
    engines: ClassVar[list[MicroBatchEngine]] = []

    @pytest.fixture(autouse=True)
    def closing(self) -> Iterator[None]:
        """Close every engine before the next one observes."""
        yield
        while self.engines:
            self.engines.pop().close()

    def make_engine(self) -> tuple[Engine, Clock]:
        spark, query = self.running
        clock, counters = WallClock(), {"conformance": ScheduleCounter(SCHEDULE)}
        engine = MicroBatchEngine(spark, [query], EXECUTORS, clock, window_s=3.0, counters=counters)
        self.engines.append(engine)
        return engine, clock

    def settle(self, engine: Engine, clock: Clock) -> None:
        """Wait for a usable window, at most for `settle_s`; the tests check its content."""
        deadline_s = clock.now() + self.settle_s
        while clock.now() < deadline_s:
            clock.sleep(0.2)
            window = engine.observe()
            if window.usable and window.change is Change.NONE:
                return
