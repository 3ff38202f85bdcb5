"""A dry run beside dynamic allocation, and one on `local[4]`, without any setting of ours; prints one JSON line each.

python spark_shadow.py FOLDER dynamic|local
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from rheostat.engine.spark.session.embedded import embedded_cluster
from rheostat.engine.spark.session.java import use_java

CLUSTER = {
    "spark.master": "local-cluster[3,1,600]",
    "spark.executor.memory": "600m",
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.maxExecutors": "3",
    "spark.dynamicAllocation.executorIdleTimeout": "3s",
    "spark.dynamicAllocation.shuffleTracking.timeout": "3s",
}
LOCAL = {"spark.master": "local[4]"}
LEAST_S, MOST_S = 30.0, 180.0
"""Seconds of a run: on a busy machine the first batches take longer than the least."""


def main(folder: Path, way: str) -> None:
    use_java()
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("shadow").config("spark.ui.showConsoleProgress", "false")
    common = {"spark.driver.host": "127.0.0.1", "spark.sql.shuffle.partitions": "4"}
    for key, value in {**(LOCAL if way == "local" else CLUSTER), **common}.items():
        builder = builder.config(key, value)
    if way == "local":
        watch(builder.getOrCreate(), folder)
        return
    with embedded_cluster():
        spark = builder.getOrCreate()
    watch(spark, folder)


def watch(spark: Any, folder: Path) -> None:
    import rheostat

    spark.sparkContext.setLogLevel("OFF")
    rows = spark.readStream.format("rate").option("rowsPerSecond", 400).option("numPartitions", 4).load()
    counted = rows.selectExpr("value % 7 as key").groupBy("key").count()
    # A pause between batches lets dynamic allocation take executors away.
    query = (
        counted.writeStream.outputMode("update").format("noop").queryName("stock").trigger(processingTime="8 seconds")
    )
    running = query.option("checkpointLocation", str(folder / "checkpoint")).start()
    journal = str(folder / "journal.db")
    # By default a smaller size must have been enough for five minutes.
    options = rheostat.Options(interval_s=2.0, guards=rheostat.Guards(shrink_after_s=0.0, cooldown_down_s=0.0))
    with rheostat.autoscale(running, dry_run=True, journal=journal, options=options) as scaler:
        begun_s = time.monotonic()
        while time.monotonic() - begun_s < (LEAST_S if decided(scaler.steps) else MOST_S):
            time.sleep(1.0)
        steps, text, status, needs = scaler.steps, repr(scaler), scaler.status, scaler.needs
    told = {
        "status": status,
        "needs": needs,
        "text": text,
        "changes": scaler.changes,
        "sizes": [step.observation.running.slots for step in steps if step.observation.running is not None],
        "shadows": [step.decision.shadow.slots for step in steps if step.decision.shadow is not None],
        "problems": sorted({step.observation.problem for step in steps if step.observation.problem}),
        "active": running.isActive,
    }
    running.stop()
    spark.stop()
    print(json.dumps(told))


def decided(steps: Any) -> bool:
    """Whether a few decisions for less than everything have been made."""
    few = [step for step in steps if step.decision.shadow is not None and step.decision.shadow.slots < 3]
    return len(few) >= 3


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
