"""A Spark that is too old, and jars of another Scala."""

import pytest

from rheostat.engine.spark.session.versions import refuse_old, refuse_other_scala
from rheostat.errors import InvalidValue


@pytest.mark.parametrize("version", ["3.4.4", "2.4.8", "3.0.0-preview2"])
def test_an_old_spark_is_refused(version: str) -> None:
    with pytest.raises(InvalidValue, match=f"Spark {version} is too old: 3.5 is the oldest"):
        refuse_old(version)


@pytest.mark.parametrize("version", ["3.5.0", "3.5.6-amzn-1", "4.0.5", "4.3.0", "5.0.0.dev1", "10.0", "nightly"])
def test_a_newer_or_unknown_spark_is_not(version: str) -> None:
    refuse_old(version)


def test_jars_of_another_scala_are_named() -> None:
    jars = ["/opt/spark-sql-kafka-0-10_2.13-4.0.4.jar", "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.4", "a.jar", ""]
    refuse_other_scala(jars, "2.13.16")
    with pytest.raises(
        InvalidValue, match=r"0-10_2\.13-4\.0\.4\.jar is built for Scala 2\.13, and this Spark for Scala 2\.12"
    ):
        refuse_other_scala(jars, "2.12.18")
