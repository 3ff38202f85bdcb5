"""The jars of a Kafka broker and of Spark's Kafka connector, for development and tests: fetched once, into a cache.

PySpark ships Apache Ivy, so this needs only Java. Ivy takes the jars from Maven Central, or from the mirror of the
ivysettings.xml that `RHEOSTAT_IVY_SETTINGS` names. Each jar must have the SHA-256 that `pins.py` names, when it is
fetched and whenever it is used from the cache.

In production the broker is your own, and the connector is that of your Spark version, in `spark.jars.packages`. The
connector here is the newest one that partial mirrors of Maven Central have; it works with Spark 4.3.
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
SETTINGS = "RHEOSTAT_IVY_SETTINGS"
"""Environment variable with the path of an ivysettings.xml."""
SIGNS = {"\tfound ": "found", "[SUCCESSFUL ]": "fetched"}
"""Mark in a line of Ivy's output -> what it did with a jar."""
JARS_ABOUT = 50
"""Approximate number of jars, for progress messages."""

Notify = Callable[[str], None]
"""Takes a progress message."""


def ignore(_: str) -> None:
    """Drop a progress message."""


def cache_folder() -> Path:
    """Return Rheostat's cache: `$RHEOSTAT_CACHE`, else a folder in the user's cache."""
    if folder := os.environ.get("RHEOSTAT_CACHE"):
        return Path(folder).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "rheostat"


def jars_folder() -> Path:
    """Return the folder of these versions of the jars; other versions have another folder."""
    return cache_folder() / f"kafka-{KAFKA}-{hashlib.sha256(ivy_xml().encode()).hexdigest()[:8]}"


def is_cached() -> bool:
    """Return whether all jars are in the cache."""
    return jars_folder().is_dir()


def broker_jars(notify: Notify = ignore) -> list[Path]:
    """Return the broker's jars, and fetch them first if the cache has none."""
    return sorted((fetch(notify) / "broker").glob("*.jar"))


def connector_jars(notify: Notify = ignore) -> list[Path]:
    """Return the connector's jars for `spark.jars`, and fetch them first if the cache has none."""
    return sorted((fetch(notify) / "connector").glob("*.jar"))


def fetch(notify: Notify = ignore) -> Path:
    """Fetch the jars into the cache if they are not there, all or none; check them, and return their folder."""
    folder = jars_folder()
    try:
        if not folder.is_dir():
            folder.parent.mkdir(parents=True, exist_ok=True)
            with _locked(folder.with_name(f"{folder.name}.lock"), notify):
                _fetch_missing(folder, notify)
        _check_jars(folder)
    except OSError as error:
        raise EngineError(
            f"Kafka's jars cannot be stored in {folder.parent} ({error}): set RHEOSTAT_CACHE to another folder"
        ) from error
    return folder


def _fetch_missing(folder: Path, notify: Notify) -> None:
    """Fetch the jars, unless another process has done so meanwhile."""
    if folder.is_dir():
        return
    # The lock holder deletes what a killed fetch left.
    draft = folder.with_name(f"{folder.name}.fetching")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        (draft / "jars").mkdir(parents=True)
        _retrieve(draft, notify)
        (draft / "jars").rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _check_jars(folder: Path) -> None:
    """Delete the folder and raise unless it holds exactly the pinned jars."""
    actual = {str(jar.relative_to(folder)): _sha256(jar) for jar in sorted(folder.rglob("*")) if not jar.is_dir()}
    for name in sorted({*pins.SHA256, *actual}):
        found, pinned = actual.get(name, "missing"), pins.SHA256.get(name, "missing")
        if found != pinned:
            shutil.rmtree(folder, ignore_errors=True)
            raise EngineError(
                f"{folder / name} is not the jar that Rheostat was tested with: its SHA-256 is {found}, expected "
                f"{pinned}. All jars were deleted: find out what changed it, then run `rheostat kafka fetch`"
            )


def _sha256(jar: Path) -> str:
    with jar.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _locked(lock: Path, notify: Notify) -> Iterator[None]:
    """Hold the lock file; wait while another process holds it."""
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            notify("waiting: another process fetches Kafka's jars")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _retrieve(draft: Path, notify: Notify) -> None:
    """Run Ivy, which fetches into `draft/jars`."""
    notify(f"fetching the jars of Kafka and of Spark's connector into {draft.parent} (about 50 MB, once)")
    (draft / "ivy.xml").write_text(ivy_xml())
    lines: list[str] = []
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
            lines.append(line.rstrip())
            for sign in SIGNS:
                counts[sign] += sign in line
                if sign in line and counts[sign] % 10 == 0:
                    notify(f"{counts[sign]} of about {JARS_ABOUT} jars {SIGNS[sign]}")
        code = child.wait()
    finally:
        end_process(child)
        if child.stdout is not None:
            child.stdout.close()
    missing = [name for _, name, version in CONNECTOR if not (draft / f"jars/connector/{name}-{version}.jar").exists()]
    missing += [name for _, name, version in BROKER if not (draft / f"jars/broker/{name}-{version}.jar").exists()]
    if code != 0 or missing:
        log = draft.with_suffix(".log")
        log.write_text("\n".join(lines))
        raise EngineError(
            f"Kafka's jars could not be fetched ({_cause(lines)}): check that this machine reaches Maven Central, "
            f"or set {SETTINGS} to the ivysettings.xml of a mirror; Ivy's output is in {log}"
        )


def _cause(lines: list[str]) -> str:
    """Return the most telling line of Ivy's output."""
    for sign in ("UnknownHostException", "Connection", "timed out", "PKIX", "SERVER ERROR", "UNRESOLVED", "rror"):
        for line in lines:
            if sign in line:
                return line.strip()[:300]
    return lines[-1].strip()[:300] if lines else "Ivy printed nothing"


def _settings() -> list[str]:
    """Return Ivy's option for the user's own settings."""
    file = os.environ.get(SETTINGS)
    if not file:
        return []
    if not Path(file).is_file():
        raise InvalidValue(f"{SETTINGS} is {file!r}, which is not a file: set it to the path of an ivysettings.xml")
    return ["-settings", file]


def _ivy() -> Path:
    try:
        from pyspark.find_spark_home import _find_spark_home
    except ImportError as error:
        raise EngineError(
            f"Ivy comes with Spark, which is not installed ({error}): pip install 'rheostat[spark]'"
        ) from error
    home = Path(_find_spark_home())
    jars = sorted((home / "jars").glob("ivy-*.jar"))
    if not jars:
        raise EngineError(
            f"{home / 'jars'} has no ivy-*.jar: pip install 'rheostat[spark]', or set SPARK_HOME to a full Spark"
        )
    return jars[-1]


def ivy_xml() -> str:
    """Return the dependencies as an ivy.xml."""
    jars = [(*one, "broker->default(runtime)", "true") for one in BROKER]
    jars += [(*one, "connector->default", "false") for one in CONNECTOR]
    lines = "\n".join(
        f'    <dependency org="{org}" name="{name}" rev="{version}" conf="{conf}" transitive="{transitive}"/>'
        for org, name, version, conf, transitive in jars
    )
    return f"""<ivy-module version="2.0">
  <info organisation="rheostat" module="kafka"/>
  <configurations><conf name="broker"/><conf name="connector"/></configurations>
  <dependencies>
{lines}
  </dependencies>
</ivy-module>
"""
