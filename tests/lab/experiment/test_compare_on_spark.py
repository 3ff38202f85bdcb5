"""`rheostat compare --engine spark`, as a user runs it: two ways on a real cluster each, and a row for both."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.cluster


def test_ways_are_compared_on_real_clusters(tmp_path: Path) -> None:
    page, rows = tmp_path / "spark.html", tmp_path / "rows.json"
    command = "compare --engine spark --job wordcount --policy dynamic-allocation,ds2 --duration 30"
    told = subprocess.run(
        [sys.executable, "-m", "rheostat", *command.split(), "--json", str(rows), "--html", str(page)],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert told.returncode == 0, told.stderr[-3000:]
    found = {row["policy"]: row for row in json.loads(rows.read_text())}
    assert list(found) == ["dynamic-allocation", "ds2"]
    for row in found.values():
        assert row["failed"] == ""
        assert (row["rows_lost"], row["rows_repeated"]) == (0, 0)
        assert row["rows_checked"] > 0
        assert 0 < row["slot_seconds"] <= 6 * 60
    assert "wordcount on Spark: dynamic-allocation, ds2" in page.read_text()
