from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest
from project import ROOT

from rheostat.cli import doctor
from rheostat.engine.spark.session.archive import archive_folder, spark_home
from rheostat.engine.spark.session.java import find_java
from rheostat.kafka.jars import jars_folder

from .conftest import Command


def test_here_the_core_works(rheostat: Command) -> None:
    ended = rheostat("doctor")
    assert ended.code == 0
    for word in ("Python", "numpy", "write-ahead", "cores", "Java", "extra spark"):
        assert word in ended.out


def test_a_missing_package_ends_with_1(rheostat: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "CORE", ("no-such-package",))
    ended = rheostat("doctor")
    assert ended.code == 1
    assert "pip install no-such-package" in ended.out


def test_a_missing_extra_is_a_hint(rheostat: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "EXTRAS", {"moon": ("no_such_module",)})
    ended = rheostat("doctor")
    assert ended.code == 0
    assert "pip install 'rheostat[moon]'" in " ".join(ended.out.replace("│", " ").split())


def java(folder: Path, version: str) -> None:
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "java").write_text(f"""#!/bin/sh\necho 'openjdk version "{version}"' >&2\n""")
    (folder / "bin" / "java").chmod(0o755)


def test_the_java_that_spark_will_start_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java(tmp_path / "old", "1.8.0_402")
    java(tmp_path / "new", "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    monkeypatch.setenv("PATH", str(tmp_path / "new" / "bin"))
    (check,) = [check for check in doctor.checks() if check.what == "Java"]
    assert check.state == "ok"
    assert check.found.startswith(f"Java 21.0.1 from PATH ({tmp_path / 'new' / 'bin' / 'java'}); passed over: ")
    assert "is Java 8" in check.found


def test_no_java_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rheostat.engine.spark.session.java.PLACES", {})
    (check,) = [check for check in doctor.checks() if check.what == "Java"]
    assert check.state == "optional"
    assert "JAVA_HOME" in check.found


def test_the_core_is_what_the_package_depends_on() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(doctor.CORE) == {line.partition(">")[0] for line in project["dependencies"]}


def test_archives_of_classes_are_shown_or_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    check = doctor._archives()
    assert check.state == "optional"
    assert "archive_writer" in check.found
    archive_folder(spark_home(), find_java()).mkdir(parents=True)
    assert doctor._archives().state == "ok"


def test_kafka_is_told_with_what_is_lacking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RHEOSTAT_CACHE", str(tmp_path))
    (check,) = [check for check in doctor.checks() if check.what == "Kafka"]
    assert check.state == "optional"
    assert "rheostat kafka fetch" in check.found
    jars_folder().mkdir()
    (check,) = [check for check in doctor.checks() if check.what == "Kafka"]
    assert (check.state, check.found) == ("ok", f"jars in {jars_folder()}; confluent-kafka installed")
