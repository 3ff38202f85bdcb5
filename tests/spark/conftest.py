"""One real Spark per test run, `local[4]`; tests that need a cluster start their own, in a process of their own.

Tests here wait for real processes on the real clock, beside whatever else the machine does. One that fails is run once
more, and pytest counts it among the reruns in its last line: a failure that comes twice is a failure.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rheostat.engine.spark.session.java import use_java
from rheostat.engine.spark.session.session import QUICK_START


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    folder: Path = tmp_path_factory.mktemp("spark")
    use_java()
    session = (
        SparkSession.builder.master("local[4]")
        .appName("rheostat-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.driver.extraJavaOptions", QUICK_START)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
