"""Parts as a Spark job: the numbers of a local run, and failures by name."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rheostat.lab.papers.dragster.runs import run_split
from rheostat.lab.papers.on_spark import run_job
from rheostat.lab.papers.parallel import Outcome, PartFailed, Task, run_part

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASKS: list[Task] = [("4 slots", run_split, (4, 1)), ("5 slots", run_split, (5, 1))]

ON_A_CLUSTER = """
import pickle, sys
from rheostat.lab.papers.on_spark import spark_runner
from rheostat.lab.papers.dragster.runs import run_split

if __name__ == "__main__":
    tasks = [("4 slots", run_split, (4, 1)), ("5 slots", run_split, (5, 1))]
    outcomes = list(spark_runner(sys.argv[1], lambda *_: None)(tasks))
    with open(sys.argv[2], "wb") as file:
        pickle.dump(outcomes, file)
"""


@pytest.mark.cluster
def test_a_failure_on_spark_names_its_part(spark: SparkSession) -> None:
    tasks: list[Task] = [("divides", divmod, (1, 0)), ("adds", sum, ([1, 2],))]
    failed, done = run_job(spark.sparkContext, tasks, lambda *_: None)
    assert failed.name == "divides"
    assert isinstance(failed.result, PartFailed)
    assert str(failed.result).startswith("divides failed: ZeroDivisionError")
    assert done == Outcome("adds", 3)


@pytest.mark.cluster
@pytest.mark.parametrize("master", ["local[2]", "local-cluster[2,1,1024]"])
def test_a_spark_job_has_the_numbers_of_a_local_run(master: str, tmp_path: Path) -> None:
    """Executors get the package from the driver."""
    script, file = tmp_path / "run.py", tmp_path / "outcomes.pickle"
    script.write_text(ON_A_CLUSTER)
    subprocess.run([sys.executable, str(script), master, str(file)], check=True, timeout=600)
    with file.open("rb") as stored:
        assert pickle.load(stored) == [run_part(task) for task in TASKS]
