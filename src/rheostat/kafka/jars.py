"""The jars of a Kafka broker and of Spark's Kafka connector, for development and tests: fetched once, into a cache.

`engine/spark/session/ivy.py` fetches them, and checks each against the SHA-256 that `pins.py` names.

In production the broker is your own, and the connector is that of your Spark version, in `spark.jars.packages`. The
connector here is the newest one that partial mirrors of Maven Central have; it works with Spark 4.3.
"""

from __future__ import annotations

from pathlib import Path

from rheostat.engine.spark.session.ivy import Dependency, JarSet, Notify, ignore
from rheostat.kafka import pins

KAFKA = "4.1.0"
BROKER = (
    ("org.apache.kafka", "kafka_2.13", KAFKA),
    ("org.slf4j", "slf4j-simple", "1.7.36"),
)
"""The broker's jars, fetched with their dependencies."""
CONNECTOR = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.1.0-preview1"),
    ("org.apache.kafka", "kafka-clients", "3.9.2"),
    ("org.apache.commons", "commons-pool2", "2.12.1"),
)
"""The connector's jars, fetched without dependencies: Spark has the others."""


def jar_set() -> JarSet:
    """Return the jars of these versions."""
    return JarSet(
        name="kafka",
        version=KAFKA,
        whose="Kafka's",
        contents="Kafka and of Spark's connector (about 50 MB)",
        remedy="run `rheostat kafka fetch`",
        dependencies=(
            *(Dependency(*one, group="broker", transitive=True) for one in BROKER),
            *(Dependency(*one, group="connector") for one in CONNECTOR),
        ),
        sha256=pins.SHA256,
    )


def jars_folder() -> Path:
    """Return the folder of these versions of the jars; other versions have another folder."""
    return jar_set().folder


def is_cached() -> bool:
    """Return whether all jars are in the cache."""
    return jar_set().is_cached()


def broker_jars(notify: Notify = ignore) -> list[Path]:
    """Return the broker's jars, and fetch them first if the cache has none."""
    return jar_set().jars("broker", notify)


def connector_jars(notify: Notify = ignore) -> list[Path]:
    """Return the connector's jars for `spark.jars`, and fetch them first if the cache has none."""
    return jar_set().jars("connector", notify)
