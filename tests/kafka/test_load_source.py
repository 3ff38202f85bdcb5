"""The load that goes through Kafka has the very rows of the source that goes without."""

import pytest
from pyspark.sql import SparkSession

from rheostat.engine.testbed.loads import Steps
from rheostat.engine.testbed.schedule import Schedule
from rheostat.engine.testbed.source import batch
from rheostat.kafka.load import rows

pytestmark = pytest.mark.cluster


def test_rows_and_times_are_those_of_the_source(spark: SparkSession) -> None:
    schedule = Schedule(Steps((1.0, 3.0, 0.0, 0.7), hold_s=2.0), 37.0, seconds=8, step_s=2)
    expected = [
        (row["value"], row["us"])
        for row in batch(spark, schedule, first_s=1, last_s=11, start_s=0.0)
        .selectExpr("value", "unix_micros(timestamp) as us")
        .collect()
    ]
    counts = {second: schedule.due(second + 1) - schedule.due(second) for second in range(1, 11)}
    assert sorted(expected) == [row for second, count in counts.items() for row in rows(schedule, second, 0, count)]
