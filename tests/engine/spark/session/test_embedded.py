"""What is put around the start of an embedded cluster; that nothing is left of it is in `test_failures.py`."""

import os
from pathlib import Path

import pytest

from rheostat.engine.spark.session.embedded import environment, link_home

pytestmark = pytest.mark.cluster


def test_a_home_of_links_has_all_but_what_workers_wrote(tmp_path: Path) -> None:
    installed, home = tmp_path / "installed", tmp_path / "home"
    for name in ("jars", "bin", "work"):
        (installed / name).mkdir(parents=True)
    (installed / "jars" / "spark.jar").touch()
    home.mkdir()
    link_home(installed, home)
    assert sorted(entry.name for entry in home.iterdir()) == ["bin", "jars"]
    assert (home / "jars" / "spark.jar").exists()


def test_variables_are_as_before_afterwards_also_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)

    def fails() -> None:
        with environment({"SPARK_HOME": "/tmp/home", "SPARK_LOCAL_IP": "::1"}):
            assert os.environ["SPARK_HOME"] == "/tmp/home"
            raise OSError("no Java")

    with pytest.raises(OSError, match="no Java"):
        fails()
    assert os.environ["SPARK_HOME"] == "/opt/spark"
    assert "SPARK_LOCAL_IP" not in os.environ
