"""The jars of a Kafka broker and of Spark's Kafka connector, for development and tests: fetched once, into a cache.

`engine/spark/session/ivy.py` fetches them, and checks each against the SHA-256 that `pins.py` names.

In production the broker is your own, and the connector is that of your Spark version, in `spark.jars.packages`. The
connector here is the one for the PySpark that is installed, in the newest version that partial mirrors of Maven Central
have; that of 4.2 works with Spark 4.3.
"""

from __future__ import annotations

from importlib.metadata import version
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
OLDER = {
    "3.5": (
        ("org.apache.spark", "spark-sql-kafka-0-10_2.12", "3.5.7"),
        ("org.apache.spark", "spark-token-provider-kafka-0-10_2.12", "3.5.7"),
        ("org.apache.kafka", "kafka-clients", "3.4.1"),
        ("org.apache.commons", "commons-pool2", "2.11.1"),
    ),
    "4.0": (
        ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.0.4"),
        ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
        *CONNECTOR[2:],
    ),
    "4.1": (("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.1.3"), *CONNECTOR[1:]),
}
"""Minor version of Spark -> the jars of its connector. PySpark 3.5 is built for Scala 2.12."""


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


def connector_jars(notify: Notify = ignore, spark: str | None = None) -> list[Path]:
    """Return the connector's jars for `spark.jars`, and fetch them first if the cache has none.

    `spark` is the version of Spark; by default that of the PySpark that is installed.
    """
    minor = ".".join((spark or version("pyspark")).split(".")[:2])
    return (older_connector(minor) if minor in OLDER else jar_set()).jars("connector", notify)


def older_connector(minor: str) -> JarSet:
    """Return the connector for an older Spark."""
    jars = OLDER[minor]
    names = {f"connector/{name}-{release}.jar" for _, name, release in jars}
    return JarSet(
        name=f"kafka-connector-{minor}",
        version=jars[0][2],
        whose="Kafka's",
        contents=f"the Kafka connector of Spark {minor} (about 6 MB)",
        remedy="run `rheostat kafka fetch`",
        dependencies=tuple(Dependency(*one, group="connector") for one in jars),
        sha256={name: digest for name, digest in pins.OLDER_CONNECTORS.items() if name in names},
    )
