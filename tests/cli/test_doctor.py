from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest

from rheostat.cli import doctor

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


@pytest.mark.parametrize(
    ("told", "state"),
    [('openjdk version "17.0.15" 2025-04-15', "ok"), ('java version "1.8.0_402"', "optional"), ("what?", "optional")],
)
def test_javas_version_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str, state: str) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho '{told}' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    (check,) = [check for check in doctor.checks() if check.what == "Java"]
    assert check.state == state


def test_no_java_is_no_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    (check,) = [check for check in doctor.checks() if check.what == "Java"]
    assert check.state == "optional"


def test_the_core_is_what_the_package_depends_on() -> None:
    needed = {line.partition(">")[0] for line in metadata.requires("rheostat") or () if "extra ==" not in line}
    assert set(doctor.CORE) == needed
