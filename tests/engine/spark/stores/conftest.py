"""The stores on which a checkpoint is tested, in a Spark that reaches all of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import s3a_jars
import stateful_query
from bad_store import Access, add_to
from lifecycle_stores import COPYING, S3, Bad, Store
from pyspark.sql import SparkSession
from s3_server import S3Server
from spark_jars import add_jars

from rheostat.engine.spark.lifecycle.application import temporary_settings
from rheostat.errors import EngineError


@pytest.fixture(scope="session")
def server() -> Iterator[S3Server]:
    """One server for all: Hadoop keeps the file system of a bucket, with its address, as long as the JVM lives."""
    with S3Server("bucket") as started:
        yield started


@pytest.fixture
def s3_spark(spark: SparkSession, server: S3Server) -> Iterator[SparkSession]:
    """A Spark that reaches the server as s3a://bucket."""
    try:
        jars = s3a_jars.S3A.jars("s3a") + s3a_jars.S3A.jars("cloud")
    except EngineError as error:
        pytest.skip(f"S3A is not tested: {error}")
    add_jars(spark, jars, s3a_jars.hadoop_conf(server.url))
    with temporary_settings(spark, stateful_query.SETTINGS):
        yield spark
    server.before = server.after = lambda request: None


@pytest.fixture(params=["context", "copying", "s3a"])
def store(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[Store]:
    """A store that is as good as HDFS, one whose renames copy and are slow, or S3."""
    if request.param == "s3a":
        request.getfixturevalue("s3_spark")
        server: S3Server = request.getfixturevalue("server")
        jars = ":".join(map(str, s3a_jars.S3A.jars("s3a")))
        hadoop = {f"spark.hadoop.{key}": value for key, value in s3a_jars.hadoop_conf(server.url).items()}
        yield S3(server, tmp_path.name, {"spark.driver.extraClassPath": jars, **hadoop})
        return
    access: Access = "FileContext" if request.param == "context" else "FileSystem"
    add_to(spark, access)
    with temporary_settings(spark, stateful_query.SETTINGS):
        yield Bad(tmp_path, *(COPYING if request.param == "copying" else ()), access=access)
