"""A standalone cluster: Spark's master and workers, each a process."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rheostat.engine.spark.session.embedded import LOCALHOST
from rheostat.engine.spark.session.session import QUICK_START
from rheostat.lab.clusters.cluster import CLIENT, Cluster, check_started, free_port, java_home, start_logged, stop_all
from rheostat.lab.experiment.processes import await_true

START_S = 60.0


@contextmanager
def standalone(
    folder: Path, spark_home: Path, workers: int = 2, cores: int = 2, memory_mb: int = 2048
) -> Iterator[Cluster]:
    """Start a master and its workers, and wait until all have registered."""
    port, page = free_port(), free_port()
    environment = {
        **os.environ,
        "SPARK_HOME": str(spark_home),
        "JAVA_HOME": java_home(),
        "SPARK_LOCAL_IP": LOCALHOST,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": QUICK_START,
    }
    runner, url = str(spark_home / "bin" / "spark-class"), f"spark://{LOCALHOST}:{port}"
    log = folder / "master.log"
    processes = []
    try:
        master = ("org.apache.spark.deploy.master.Master", "--host", LOCALHOST, "--port", str(port))
        processes.append(start_logged([runner, *master, "--webui-port", str(page)], log, environment))
        check_started(await_true(lambda: _workers(page) is not None, START_S), "the master", log)
        for number in range(workers):
            worker = ("org.apache.spark.deploy.worker.Worker", "--host", LOCALHOST, "--webui-port", "0")
            size = ("--cores", str(cores), "--memory", f"{memory_mb}m", "--work-dir", str(folder / f"worker-{number}"))
            processes.append(start_logged([runner, *worker, *size, url], folder / f"worker-{number}.log", environment))
        check_started(await_true(lambda: _workers(page) == workers, START_S), "a worker", folder / "worker-0.log")
        yield Cluster(url, CLIENT)
    finally:
        stop_all(processes[::-1])


def _workers(page: int) -> int | None:
    """Ask the master how many workers it has; None while it does not answer."""
    with suppress(OSError, ValueError), urllib.request.urlopen(f"http://{LOCALHOST}:{page}/json/", timeout=2) as answer:
        return int(json.load(answer)["aliveworkers"])
    return None
