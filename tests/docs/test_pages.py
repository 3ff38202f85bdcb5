"""What the pages tell a newcomer to type really runs, from a folder with nothing but what the page made."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from page_blocks import blocks, run_all
from project import ROOT


def run_code(code: str, folder: Path) -> str:
    """Run a Python block in a folder; return what it printed."""
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_readme(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    assert "oracle" in run_all("README.md", tmp_path)
    assert (tmp_path / "wordcount.html").stat().st_size > 100_000


def test_journal(tmp_path: Path) -> None:
    assert ", 0 differences" in run_all("docs/journal.md", tmp_path)
    assert (tmp_path / "wordcount.html").exists()
    (code,) = blocks("docs/journal.md", "python")
    assert "ds2: " in run_code(code, tmp_path)


def test_planning(tmp_path: Path) -> None:
    printed = run_all("docs/planning.md", tmp_path)
    assert "next worth measuring" in printed
    assert (tmp_path / "q1.html").exists()


def test_simulator(tmp_path: Path) -> None:
    (code,) = blocks("docs/simulator.md", "python")
    assert "1200.0" in run_code(code, tmp_path)


def test_forecasting(tmp_path: Path) -> None:
    printed = run_all("docs/forecasting.md", tmp_path)
    assert "ds2: caught up after" in printed
    assert "conttune: caught up after" in printed


def test_every_link_between_pages_leads_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} -> {target}"
