"""The demo, as a user starts it, only shorter: a real cluster, a real load, an executor killed, a page at the end."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.cluster


def test_the_demo_scales_a_real_query_and_writes_its_page(tmp_path: Path) -> None:
    page, told = tmp_path / "demo.html", tmp_path / "demo.json"
    command = [sys.executable, "-m", "rheostat", "demo", "--seconds", "80", "--html", str(page), "--json", str(told)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert re.search(r"^Changes\s*$", done.stdout, re.MULTILINE)
    assert "an executor was killed" in done.stdout
    scaled, least, most = json.loads(told.read_text())
    assert scaled["measured"]
    assert least["executor_seconds"] < most["executor_seconds"]
    assert "ysb" in page.read_text()


def test_too_short_a_demo_is_refused() -> None:
    command = [sys.executable, "-m", "rheostat", "demo", "--seconds", "5"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "at least 60" in done.stderr
