"""Sets of jars that PySpark does not ship, for development and tests: fetched once, into a cache.

PySpark ships Apache Ivy, so this needs only Java. Ivy takes the jars from Maven Central, or from the mirror of the
ivysettings.xml that `RHEOSTAT_IVY_SETTINGS` names. Each jar must have its pinned SHA-256, when it is fetched and
whenever it is used from the cache.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rheostat.engine.spark.session.java_process import SMALL, end_process, start_java
from rheostat.errors import EngineError, InvalidValue

SETTINGS = "RHEOSTAT_IVY_SETTINGS"
"""Environment variable with the path of an ivysettings.xml."""
SIGNS = {"\tfound ": "found", "[SUCCESSFUL ]": "fetched"}
"""Mark in a line of Ivy's output -> what it did with a jar."""

Notify = Callable[[str], None]
"""Takes a progress message."""


def ignore(_: str) -> None:
    """Drop a progress message."""


def cache_folder() -> Path:
    """Return Rheostat's cache: `$RHEOSTAT_CACHE`, else a folder in the user's cache."""
    if folder := os.environ.get("RHEOSTAT_CACHE"):
        return Path(folder).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "rheostat"


@dataclass(frozen=True, slots=True)
class Dependency:
    """A jar that is fetched by name."""

    org: str
    name: str
    version: str
    group: str
    """The folder of the set that gets it."""
    transitive: bool = False
    """Whether the jars that it needs at run time are fetched, too."""


@dataclass(frozen=True, slots=True)
class JarSet:
    """Jars that are fetched together, all or none."""

    name: str
    version: str
    whose: str
    """Whose jars they are, in messages: "Kafka's"."""
    contents: str
    """What the jars are of, in messages, with their size."""
    remedy: str
    """What a user does to fetch them again."""
    dependencies: tuple[Dependency, ...]
    sha256: Mapping[str, str]
    """Folder and name of a jar -> its SHA-256."""
    excluded: tuple[str, ...] = ()
    """Organisations whose jars are not fetched: Spark has them."""

    @property
    def folder(self) -> Path:
        """The folder of these versions of the jars; other versions have another folder."""
        return cache_folder() / f"{self.name}-{self.version}-{hashlib.sha256(self.ivy_xml().encode()).hexdigest()[:8]}"

    def is_cached(self) -> bool:
        """Return whether all jars are in the cache."""
        return self.folder.is_dir()

    def jars(self, group: str, notify: Notify = ignore) -> list[Path]:
        """Return the jars of a group, and fetch all groups first if the cache has none."""
        return sorted((self.fetch(notify) / group).glob("*.jar"))

    def fetch(self, notify: Notify = ignore) -> Path:
        """Fetch the jars into the cache if they are not there, all or none; check them, and return their folder."""
        folder = self.folder
        try:
            if not folder.is_dir():
                folder.parent.mkdir(parents=True, exist_ok=True)
                with self._locked(folder.with_name(f"{folder.name}.lock"), notify):
                    self._fetch_missing(folder, notify)
            self._check(folder)
        except OSError as error:
            raise EngineError(
                f"{self.whose} jars cannot be stored in {folder.parent} ({error}): set RHEOSTAT_CACHE to another folder"
            ) from error
        return folder

    def ivy_xml(self) -> str:
        """Return the dependencies as an ivy.xml."""
        groups = "".join(f'<conf name="{group}"/>' for group in dict.fromkeys(one.group for one in self.dependencies))
        lines = [
            f'    <dependency org="{one.org}" name="{one.name}" rev="{one.version}" '
            f'conf="{one.group}->default{"(runtime)" if one.transitive else ""}" '
            f'transitive="{str(one.transitive).lower()}"/>\n'
            for one in self.dependencies
        ]
        lines += [f'    <exclude org="{org}"/>\n' for org in self.excluded]
        return f"""<ivy-module version="2.0">
  <info organisation="rheostat" module="{self.name}"/>
  <configurations>{groups}</configurations>
  <dependencies>
{"".join(lines)}  </dependencies>
</ivy-module>
"""

    def _fetch_missing(self, folder: Path, notify: Notify) -> None:
        """Fetch the jars, unless another process has done so meanwhile."""
        if folder.is_dir():
            return
        # The lock holder deletes what a killed fetch left.
        draft = folder.with_name(f"{folder.name}.fetching")
        shutil.rmtree(draft, ignore_errors=True)
        try:
            (draft / "jars").mkdir(parents=True)
            self._retrieve(draft, notify)
            (draft / "jars").rename(folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    def _check(self, folder: Path) -> None:
        """Delete the folder and raise unless it holds exactly the pinned jars."""
        actual = {str(jar.relative_to(folder)): _sha256(jar) for jar in sorted(folder.rglob("*")) if not jar.is_dir()}
        for name in sorted({*self.sha256, *actual}):
            found, pinned = actual.get(name, "missing"), self.sha256.get(name, "missing")
            if found != pinned:
                shutil.rmtree(folder, ignore_errors=True)
                raise EngineError(
                    f"{folder / name} is not the jar that Rheostat was tested with: its SHA-256 is {found}, expected "
                    f"{pinned}. All jars were deleted: find out what changed it, then {self.remedy}"
                )

    @contextmanager
    def _locked(self, lock: Path, notify: Notify) -> Iterator[None]:
        """Hold the lock file; wait while another process holds it."""
        with lock.open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                notify(f"waiting: another process fetches {self.whose} jars")
                fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _retrieve(self, draft: Path, notify: Notify) -> None:
        """Run Ivy, which fetches into `draft/jars`."""
        notify(f"fetching the jars of {self.contents} into {draft.parent}, once")
        (draft / "ivy.xml").write_text(self.ivy_xml())
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
                        notify(f"{counts[sign]} of about {len(self.sha256)} jars {SIGNS[sign]}")
            code = child.wait()
        finally:
            end_process(child)
            if child.stdout is not None:
                child.stdout.close()
        files = [draft / f"jars/{one.group}/{one.name}-{one.version}.jar" for one in self.dependencies]
        if code != 0 or not all(file.exists() for file in files):
            log = draft.with_suffix(".log")
            log.write_text("\n".join(lines))
            raise EngineError(
                f"{self.whose} jars could not be fetched ({_cause(lines)}): check that this machine reaches Maven "
                f"Central, or set {SETTINGS} to the ivysettings.xml of a mirror; Ivy's output is in {log}"
            )


def _sha256(jar: Path) -> str:
    with jar.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
