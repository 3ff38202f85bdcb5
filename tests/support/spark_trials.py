"""Trials on a real cluster, for a separate process."""

from rheostat.engine.testbed.spark import SparkTestbed
from rheostat.job.decision import Measurement, Trial
from rheostat.lab.workload.injection import pipeline_starter


def measure_all(trials: list[Trial]) -> list[Measurement]:
    testbed = SparkTestbed(
        "trials", pipeline_starter("ysb", slot_per_s=400.0), 2, conf={"spark.sql.shuffle.partitions": "2"}
    )
    try:
        return [testbed.measure(trial) for trial in trials]
    finally:
        testbed.close()
