"""The jars of a Kafka broker and of Spark's Kafka connector, for development and tests: fetched once, into a cache.

PySpark ships Apache Ivy, so Java is all that this needs. Ivy takes the jars from Maven Central, or from where the
ivysettings.xml that `RHEOSTAT_IVY_SETTINGS` names sends it (a mirror), and checks their checksums.

In production the broker is the user's own, and so is the connector: the one of their Spark version, in
`spark.jars.packages`. The connector named here is the newest one that a registry which mirrors only part of Maven
Central was found to have; it works with Spark 4.3.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rheostat.engine.spark.session.java_process import SMALL, end_process, start_java
from rheostat.errors import EngineError, InvalidValue

KAFKA = "4.1.0"
BROKER = (
    ("org.apache.kafka", "kafka_2.13", KAFKA),
    ("org.slf4j", "slf4j-simple", "1.7.36"),
)
"""With all that they need."""
CONNECTOR = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.1.0-preview1"),
    ("org.apache.kafka", "kafka-clients", "3.9.2"),
    ("org.apache.commons", "commons-pool2", "2.12.1"),
)
"""Alone: the rest of what they need comes with Spark."""
SETTINGS = "RHEOSTAT_IVY_SETTINGS"
SIGNS = {"\tfound ": "found", "[SUCCESSFUL ]": "fetched"}
"""What Ivy says about a jar, and what that means."""
JARS_ABOUT = 50
"""How many there are in all, for the progress that is told."""

Tell = Callable[[str], None]


def quiet(_: str) -> None:
    """Tell nobody."""


def cache_folder() -> Path:
    """Return where Rheostat keeps what it fetched: `$RHEOSTAT_CACHE`, else in the user's cache."""
    if given := os.environ.get("RHEOSTAT_CACHE"):
        return Path(given).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "rheostat"


def jars_folder() -> Path:
    """Return where these very jars are, or would be: another choice of versions is another folder."""
    return cache_folder() / f"kafka-{KAFKA}-{hashlib.sha256(ivy_xml().encode()).hexdigest()[:8]}"


def is_cached() -> bool:
    """Tell whether everything is there."""
    return jars_folder().is_dir()


def broker_jars(tell: Tell = quiet) -> list[Path]:
    """Return the broker's jars, fetched when they are not there."""
    return sorted((fetch(tell) / "broker").glob("*.jar"))


def connector_jars(tell: Tell = quiet) -> list[Path]:
    """Return the connector's jars for `spark.jars`, fetched when they are not there."""
    return sorted((fetch(tell) / "connector").glob("*.jar"))


def fetch(tell: Tell = quiet) -> Path:
    """Make sure that the jars are in the cache, all or none; return their folder. Done before: done at once."""
    folder = jars_folder()
    if folder.is_dir():
        return folder
    # What a killed fetch left is deleted by the next one, which alone may be here.
    draft = folder.with_name(f"{folder.name}.fetching")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _alone(folder.with_name(f"{folder.name}.lock"), tell):
            if not folder.is_dir():
                shutil.rmtree(draft, ignore_errors=True)
                try:
                    (draft / "jars").mkdir(parents=True)
                    _retrieve(draft, tell)
                    (draft / "jars").rename(folder)
                finally:
                    shutil.rmtree(draft, ignore_errors=True)
    except OSError as error:
        raise EngineError(
            f"Kafka's jars cannot be kept in {folder.parent} ({error}): set RHEOSTAT_CACHE to another folder"
        ) from error
    return folder


@contextmanager
def _alone(lock: Path, tell: Tell) -> Iterator[None]:
    with lock.open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell("another process fetches Kafka's jars: waiting for it")
            fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _retrieve(draft: Path, tell: Tell) -> None:
    """Let Ivy fetch into `draft/jars`."""
    tell(f"fetching the jars of Kafka and of Spark's connector into {draft.parent} (about 50 MB, once)")
    (draft / "ivy.xml").write_text(ivy_xml())
    told: list[str] = []
    child = start_java(
        [
            *SMALL,
            *("-jar", str(_ivy())),
            *_settings(),
            *("-ivy", str(draft / "ivy.xml")),
            *("-cache", str(draft / "ivy")),
            *("-retrieve", f"{draft}/jars/[conf]/[artifact]-[revision].[ext]"),
        ],
        -1,
    )
    try:
        assert child.stdout is not None
        counts = dict.fromkeys(SIGNS, 0)
        for line in child.stdout:
            told.append(line.rstrip())
            for sign in SIGNS:
                counts[sign] += sign in line
                if sign in line and counts[sign] % 10 == 0:
                    tell(f"{counts[sign]} of about {JARS_ABOUT} jars {SIGNS[sign]}")
        code = child.wait()
    finally:
        end_process(child)
        if child.stdout is not None:
            child.stdout.close()
    lacking = [name for _, name, version in CONNECTOR if not (draft / f"jars/connector/{name}-{version}.jar").exists()]
    lacking += [name for _, name, version in BROKER if not (draft / f"jars/broker/{name}-{version}.jar").exists()]
    if code != 0 or lacking:
        log = draft.with_suffix(".log")
        log.write_text("\n".join(told))
        raise EngineError(
            f"Kafka's jars could not be fetched ({_cause(told)}): check that this machine reaches Maven Central, "
            f"or name the ivysettings.xml of a mirror in {SETTINGS}; all that Ivy said is in {log}"
        )


def _cause(told: list[str]) -> str:
    """Return the line of Ivy's report that says most."""
    for sign in ("UnknownHostException", "Connection", "timed out", "PKIX", "SERVER ERROR", "UNRESOLVED", "rror"):
        for line in told:
            if sign in line:
                return line.strip()[:300]
    return told[-1].strip()[:300] if told else "Ivy said nothing"


def _settings() -> list[str]:
    """Return Ivy's option for the user's own settings."""
    given = os.environ.get(SETTINGS)
    if not given:
        return []
    if not Path(given).is_file():
        raise InvalidValue(f"{SETTINGS} is {given!r}, which is no file")
    return ["-settings", given]


def _ivy() -> Path:
    try:
        from pyspark.find_spark_home import _find_spark_home
    except ImportError as error:
        raise EngineError(f"{error}: Ivy comes with Spark; pip install 'rheostat[spark]'") from error
    home = Path(_find_spark_home())
    found = sorted((home / "jars").glob("ivy-*.jar"))
    if not found:
        raise EngineError(f"{home / 'jars'} has no ivy-*.jar: pip install 'rheostat[spark]', or point SPARK_HOME at it")
    return found[-1]


def ivy_xml() -> str:
    """Return what to fetch, in Ivy's words."""
    wanted = [(*one, "broker->default(runtime)", "true") for one in BROKER]
    wanted += [(*one, "connector->default", "false") for one in CONNECTOR]
    lines = "\n".join(
        f'    <dependency org="{org}" name="{name}" rev="{version}" conf="{conf}" transitive="{transitive}"/>'
        for org, name, version, conf, transitive in wanted
    )
    return f"""<ivy-module version="2.0">
  <info organisation="rheostat" module="kafka"/>
  <configurations><conf name="broker"/><conf name="connector"/></configurations>
  <dependencies>
{lines}
  </dependencies>
</ivy-module>
"""
