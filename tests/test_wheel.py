"""What a user installs: the built wheel, in a clean environment."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from project import ROOT

import rheostat
from rheostat.engine.spark.session.ivy import cache_folder
from rheostat.lab.clusters.sparks import OLDEST, VERSIONS, pyspark_folder

pytestmark = pytest.mark.cluster

MOST_MB = 2.0
"""The wheel is small: no data, no jars, no binaries."""
SMOKE = """
import rheostat
from rheostat.journal import open_journal
journal = open_journal(":memory:")
journal.release(journal.acquire("clicks", "test", 60.0))
print(rheostat.__version__)
"""
ATTACHED = """
import sys, time
import rheostat
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[2]").config("spark.driver.host", "127.0.0.1")
spark = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.ui.enabled", "false").getOrCreate()
query = spark.readStream.format("rate").load().writeStream.format("noop").queryName("clicks").start()
with rheostat.autoscale(query, dry_run=True, journal=sys.argv[1], options=rheostat.Options(interval_s=1.0)) as scaler:
    until_s = time.monotonic() + 120
    while time.monotonic() < until_s and not any(step.observation.load_per_s for step in scaler.steps):
        time.sleep(0.2)
    seen = any(step.observation.load_per_s for step in scaler.steps)
version = spark.version
query.stop()
spark.stop()
print(version, seen)
"""
"""A dry run on a query, until a window has seen its load."""
CLEAN = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
"""The environment variables of a process that finds only what is installed."""
WITH_SPARK = """
import pyspark, rheostat
for name in rheostat.__all__:
    getattr(rheostat, name)
print(pyspark.__version__)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(folder)]
    subprocess.run([*command, str(ROOT)], check=True, capture_output=True)
    [built] = folder.glob("*.whl")
    return built


def test_the_wheel_is_small_and_whole(wheel: Path) -> None:
    assert wheel.stat().st_size < MOST_MB * 2**20
    names = zipfile.ZipFile(wheel).namelist()
    assert "rheostat/py.typed" in names
    assert "rheostat/lab/clusters/kubernetes/server/main.go" in names
    assert any(name.startswith("rheostat/report/templates/") for name in names)
    assert not [name for name in names if name.endswith((".jar", ".db", ".csv"))]


def test_a_driver_installs_little(wheel: Path, tmp_path: Path) -> None:
    """Into an environment of its own, from the index: what a driver needs that attaches, and nothing of Spark."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "env")], check=True)
    python = tmp_path / "env" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", str(wheel)], check=True, capture_output=True)
    done = subprocess.run([python, "-c", SMOKE], check=True, capture_output=True, text=True, cwd=tmp_path, env=CLEAN)
    assert done.stdout.strip() == rheostat.__version__
    listed = subprocess.run(
        [python, "-m", "pip", "list", "--format=freeze"], check=True, capture_output=True, text=True
    )
    installed = {line.partition("==")[0].lower() for line in listed.stdout.split()}
    assert not installed & {"pyspark", "typer", "rich", "scipy", "scikit-learn", "pandas", "statsforecast"}
    command = subprocess.run([tmp_path / "env" / "bin" / "rheostat"], capture_output=True, text=True, check=False)
    assert "pip install 'rheostat[cli]'" in command.stderr
    # Every Spark that `make matrix` has installed, and the oldest one: the driver's own PySpark.
    for version in VERSIONS[:-1]:
        if version != OLDEST and not (cache_folder() / f"pyspark-{version}").is_dir():
            continue
        beside = {**CLEAN, "PYTHONPATH": str(pyspark_folder(version))}
        done = subprocess.run(
            [python, "-c", WITH_SPARK], capture_output=True, text=True, check=False, cwd=tmp_path, env=beside
        )
        assert (done.stdout.strip(), done.returncode) == (version, 0), done.stderr


@pytest.mark.skipif("RHEOSTAT_CLUSTERS" not in os.environ, reason="gets every Spark from the index: see `make matrix`")
@pytest.mark.parametrize("version", VERSIONS)
def test_the_extra_with_each_spark_attaches_to_a_query(wheel: Path, tmp_path: Path, version: str) -> None:
    """`pip install 'rheostat[spark]' pyspark==VERSION` into an environment of its own."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "env")], check=True)
    python = tmp_path / "env" / "bin" / "python"
    command = [str(python), "-m", "pip", "install", "--quiet", f"{wheel}[spark]", f"pyspark=={version}"]
    subprocess.run(command, check=True, capture_output=True)
    done = subprocess.run(
        [python, "-c", ATTACHED, str(tmp_path / "journal.db")],
        capture_output=True, text=True, check=False, cwd=tmp_path, env=CLEAN, timeout=600,
    )  # fmt: skip
    assert (done.stdout.strip(), done.returncode) == (f"{version} True", 0), done.stderr[-3000:]


def test_the_version_has_its_section_in_the_changelog() -> None:
    sections = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert sections[0] in ("Unreleased", rheostat.__version__)
    assert rheostat.__version__ in sections
