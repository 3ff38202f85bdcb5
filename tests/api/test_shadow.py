"""A dry run asks for nothing: it attaches beside dynamic allocation, and to `local[n]`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import spark_shadow

from rheostat.control.shadow import score_shadow
from rheostat.journal import open_journal

pytestmark = pytest.mark.cluster


def watched(folder: Path, way: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, spark_shadow.__file__, str(folder), way],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def test_beside_dynamic_allocation(tmp_path: Path) -> None:
    told = watched(tmp_path, "dynamic")
    assert told["active"]
    assert told["changes"] == 0
    assert any(need.startswith("spark.dynamicAllocation.enabled is 'true'") for need in told["needs"])
    assert any(need.startswith("spark.executor.cores is not set") for need in told["needs"])
    assert "would need" in told["text"]
    # Executors that dynamic allocation has taken away were not lost.
    assert not [problem for problem in told["problems"] if "lost executor" in problem]
    assert told["shadows"]
    journal = open_journal(str(tmp_path / "journal.db"))
    score = score_shadow(entry.record for entry in journal.read("stock"))
    journal.close()
    assert score.unit == "executor"
    assert score.real_unit_s > 0


def test_on_one_process(tmp_path: Path) -> None:
    told = watched(tmp_path, "local")
    assert told["active"]
    assert told["needs"][0].startswith("master 'local[4]' runs everything in the driver's process")
    assert set(told["sizes"]) == {4}
    assert told["shadows"][-1] < 4  # 400 rows/s need one core
