"""Jars and Hadoop settings for a local Spark that runs already, so that tests share one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def add_jars(spark: SparkSession, jars: Iterable[Path], hadoop_conf: Mapping[str, str | None]) -> None:
    """Add jars to the class path of the JVM, and set these Hadoop settings; None unsets one."""
    jvm: Any = spark._jvm
    # spark-submit gives its main thread a class loader that can grow, and all threads inherit it.
    loader: Any = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    present = {str(url) for url in loader.getURLs()}
    for jar in jars:
        url = jvm.java.net.URI(jar.as_uri()).toURL()
        if str(url) not in present:
            loader.addURL(url)
    conf: Any = spark.sparkContext._jsc.hadoopConfiguration()
    for key, value in hadoop_conf.items():
        if value is None:
            conf.unset(key)
        else:
            conf.set(key, value)


@contextmanager
def without_added_jars(spark: SparkSession) -> Iterator[None]:
    """Hide jars that were added, and those of `spark.jars`, from calls of this thread."""
    thread = spark._jvm.java.lang.Thread.currentThread()  # type: ignore[union-attr]
    loader: Any = thread.getContextClassLoader()
    thread.setContextClassLoader(loader.getParent())
    try:
        yield
    finally:
        thread.setContextClassLoader(loader)
