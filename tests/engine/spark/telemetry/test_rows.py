"""Rows of Spark's status API: only the fields that are needed, also those that are empty in the first row."""

from typing import Any

from pyspark.sql import SparkSession

from rheostat.engine.spark.telemetry.rows import ANSWER, Rows
from rheostat.engine.spark.telemetry.stages import API, FIELDS


def test_rows_have_the_fields_that_are_needed_and_no_others(spark: SparkSession) -> None:
    # The third stage reports the peak of its memory, the others may not.
    for size in (1, 10, 100_000):
        spark.range(size).repartition(3).selectExpr("sum(id)").collect()
    context: Any = spark.sparkContext
    store, gateway = context._jsc.sc().statusStore(), context._gateway
    no_states = gateway.jvm.java.util.ArrayList()
    listed = store.stageList(None, False, False, gateway.new_array(gateway.jvm.double, 0), no_states)
    rows = Rows(gateway, API, {"StageData": FIELDS})
    read = rows.read(listed, 6)
    assert len(read) == 6
    assert all(set(row) <= FIELDS for row in read)
    assert {"stageId", "status", "executorRunTime", "numTasks"} <= set(read[0])
    assert rows.read_one(listed.apply(0)) == read[0]
    assert len(rows._mapper.writeValueAsString(listed.slice(0, rows._piece))) <= 1.3 * ANSWER
