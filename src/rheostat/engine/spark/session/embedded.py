"""Keeps an embedded cluster off the network, and removes its files at its end.

Workers of `local-cluster` write the logs and jars of every executor to `$SPARK_HOME/work`; SPARK_WORKER_DIR is only
read by workers that are started by hand. That fills the installed package, or fails where the package is read-only.
So the JVM gets its own SPARK_HOME, a folder of links to the real one, and deletes it when it exits.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LOCALHOST = "127.0.0.1"
WORK = "work"


@contextmanager
def embedded_cluster() -> Iterator[None]:
    """Start a `local-cluster` session inside; its workers listen on SPARK_LOCAL_IP only, by default on loopback."""
    from pyspark import SparkContext
    from pyspark.find_spark_home import _find_spark_home

    address = {"SPARK_LOCAL_IP": os.environ.get("SPARK_LOCAL_IP", LOCALHOST)}
    if SparkContext._gateway is not None:
        # A running JVM keeps the SPARK_HOME that it was started with.
        with environment(address):
            yield
        context: Any = SparkContext._active_spark_context
        home = context._jvm.System.getenv("SPARK_HOME") or "."
        _delete_at_exit(context, Path(home) / WORK / context.applicationId)
        return
    folder = Path(tempfile.mkdtemp(prefix="rheostat-spark-"))
    try:
        link_home(Path(_find_spark_home()), folder)
        with environment({**address, "SPARK_HOME": str(folder)}):
            yield
        _delete_at_exit(SparkContext._active_spark_context, folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def link_home(spark_home: Path, folder: Path) -> None:
    """Fill a folder with links to everything in a Spark installation except the files of its workers."""
    for entry in spark_home.iterdir():
        if entry.name != WORK:
            (folder / entry.name).symlink_to(entry.absolute())


@contextmanager
def environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for the processes that are started inside."""
    before = {key: os.environ.get(key) for key in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                del os.environ[key]
            else:
                os.environ[key] = value


def _delete_at_exit(context: Any, folder: Path) -> None:
    """Let the JVM delete a folder when it exits: executors write until then, and the driver's Python may be killed."""
    jvm = context._jvm
    jvm.org.apache.spark.util.ShutdownHookManager.registerShutdownDeleteDir(jvm.java.io.File(str(folder)))
