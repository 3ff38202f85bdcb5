"""Parts of suites as the tasks of one Spark job: as many cores as the cluster has, and the numbers of a local run.

The driver ships its own code, so that executors run the same. They need numpy, and the papers' measured data at the
same path ($RHEOSTAT_DATA on a shared disk) where a suite reads them.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import rheostat
from rheostat.errors import EngineError, InvalidValue, first_line
from rheostat.lab.papers.parallel import Outcome, Runner, Task, run_part

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

POLL_S = 0.5
"""Seconds between two looks at the finished tasks."""
Tick = Callable[[int, int], None]
"""Takes the number of finished tasks, and of all."""


def spark_runner(master: str, tick: Tick) -> Runner:
    """Return a runner on a Spark master, for example `spark://host:7077`, `yarn` or `local-cluster[2,1,1024]`."""

    def run(tasks: Sequence[Task]) -> Iterator[Outcome]:
        spark = _start(master)
        try:
            yield from run_job(spark.sparkContext, tasks, tick)
        finally:
            spark.stop()

    return run


def run_job(context: SparkContext, tasks: Sequence[Task], tick: Tick) -> list[Outcome]:
    """Run all tasks as one job and return their outcomes in order."""
    if not tasks:
        return []
    with tempfile.TemporaryDirectory(prefix="rheostat-") as folder:
        context.addPyFile(_package(Path(folder)))
        job = context.parallelize(list(tasks), len(tasks)).map(run_part)
        with ThreadPoolExecutor(1) as pool:
            collected = pool.submit(job.collect)
            while not wait([collected], POLL_S).done:
                tick(_finished(context), len(tasks))
        if (error := collected.exception()) is not None:
            raise EngineError(f"the Spark job failed: {first_line(error)}; do executors have numpy?") from error
        return collected.result()


def _finished(context: SparkContext) -> int:
    tracker = context.statusTracker()
    stages = (tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds())
    return sum(stage.numCompletedTasks for stage in stages if stage is not None)


def _package(folder: Path) -> str:
    """Return a zip file of the driver's own package."""
    package = Path(rheostat.__file__).parent
    source = folder / "source"
    shutil.copytree(package, source / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    # A context takes every name once.
    return shutil.make_archive(str(folder / f"{package.name}-{uuid4().hex}"), "zip", source)


def _start(master: str) -> SparkSession:
    from rheostat.engine.spark.session.embedded import LOCALHOST
    from rheostat.engine.spark.session.session import start_session
    from rheostat.engine.spark.session.settings import on_this_machine

    settings = {
        "spark.app.name": "rheostat reproduce",
        "spark.master": master,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # The matrices are small: more BLAS threads only get in each other's way.
        "spark.executorEnv.OPENBLAS_NUM_THREADS": "1",
    }
    if on_this_machine(master):
        settings |= {"spark.driver.host": LOCALHOST, "spark.driver.bindAddress": LOCALHOST}
    try:
        spark = start_session(settings)
    except ImportError as error:
        raise EngineError(f"{error}: Spark is not installed; pip install 'rheostat[spark]'") from error
    except InvalidValue:
        raise
    except Exception as error:
        raise EngineError(f"--on {master!r}: Spark did not start: {first_line(error)}") from error
    spark.sparkContext.setLogLevel("ERROR")
    return spark
