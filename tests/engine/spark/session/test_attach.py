"""The refusal of `autoscale` ends with lines that make it accept: pasted into spark-submit, on a real cluster."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.find_spark_home import _find_spark_home

from rheostat.engine.spark.session.embedded import link_home
from rheostat.engine.spark.session.session import QUICK_START

pytestmark = pytest.mark.cluster

JOB = """
import sys
from pyspark.sql import SparkSession
import rheostat, rheostat.errors

spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate").load().writeStream.format("noop")
query = rows.option("checkpointLocation", sys.argv[1]).start()
try:
    with rheostat.autoscale(query, max_executors=2) as scaler:
        print("accepted:", scaler.status)
except rheostat.errors.InvalidValue as refusal:
    print(refusal)
query.stop()
spark.stop()
"""


def submit(folder: Path, name: str, lines: str) -> str:
    """Submit the job to a cluster on this machine, as a shell does, and return what it prints."""
    (folder / "job.py").write_text(JOB)
    home = folder / name
    home.mkdir()
    link_home(Path(_find_spark_home()), home)  # workers write into it
    command = [
        f"{home}/bin/spark-submit --master 'local-cluster[2,1,512]'",
        "--conf spark.executor.memory=512m --conf spark.driver.host=127.0.0.1 --conf spark.ui.enabled=false",
        f"--conf 'spark.driver.extraJavaOptions={QUICK_START}' --conf 'spark.executor.extraJavaOptions={QUICK_START}'",
        lines,
        f"{folder}/job.py {folder}/{name}-checkpoint",
    ]
    done = subprocess.run(
        ["bash", "-c", " \\\n".join(command)],
        env={**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_the_lines_of_the_refusal_make_the_next_application_acceptable(tmp_path: Path) -> None:
    refusal = submit(tmp_path, "refused", "--conf spark.task.maxFailures=2")
    assert "spark.task.maxFailures is '2', it must be 4 or more" in refusal
    lines = [line for line in refusal.splitlines() if line.startswith("--conf ")]
    assert refusal.rstrip().endswith("\n".join(lines))
    assert [line.split("=")[0] for line in lines] == [
        "--conf spark.stage.maxConsecutiveAttempts",
        "--conf spark.task.maxFailures",
        "--conf spark.executor.cores",
    ]
    assert "accepted: running" in submit(tmp_path, "accepted", "\n".join(lines))
