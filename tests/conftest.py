"""What tests share: the examples that hypothesis tries, one real Spark, and one real Kafka broker per worker.

Every run tries the same examples; `HYPOTHESIS_PROFILE=explore` tries others, and more. Tests marked `cluster` wait for
real processes on the real clock, beside whatever else the machine does. Their files begin first, because they take
longest, and a failed one is run once more: a failure that comes twice is a failure.
"""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rheostat.kafka.broker import Broker

settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("cluster"):
            item.add_marker(pytest.mark.flaky(reruns=1))
    items.sort(key=lambda item: item.get_closest_marker("cluster") is None)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator["SparkSession"]:
    """A Spark in this process, `local[4]`; a test that needs a cluster starts its own, in a process of its own."""
    from rheostat.engine.spark.session.session import QUICK_START, start_session

    session = start_session(
        {
            "spark.master": "local[4]",
            "spark.app.name": "rheostat-tests",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "4",
            "spark.executor.heartbeatInterval": "1s",
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("spark") / "warehouse"),
            "spark.driver.extraJavaOptions": QUICK_START,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.session.timeZone": "UTC",
            "spark.ui.showConsoleProgress": "false",
        }
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def broker() -> Iterator["Broker"]:
    """A Kafka broker."""
    from kafka_world import running_broker

    with running_broker() as started:
        yield started
