"""What the pages tell a newcomer to type really runs, from a folder with nothing but what the page made."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from page_blocks import blocks, run_all
from project import ROOT

MATHEMATICS = (
    "tutorial",
    "simulator",
    "planning",
    "forecasting",
    "conttune",
    "dragster",
    "autrascale",
    "phoebe",
    "journal",
)
"""Pages about the mathematics and the tools around it."""
TO_BE_WRITTEN = ("src/rheostat/policy/steady.py", "tests/policy/test_steady.py")
"""Files that the tutorial's reader makes."""


def run_code(code: str, folder: Path) -> str:
    """Run a Python block in a folder; return what it printed."""
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_readme(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    assert "oracle" in run_all("README.md", tmp_path)
    page = (tmp_path / "wordcount.html").read_text()
    assert "<svg" in page
    assert len(page) < 1_500_000


def test_journal(tmp_path: Path) -> None:
    assert ", 0 differences" in run_all("docs/journal.md", tmp_path)
    assert (tmp_path / "wordcount.html").exists()
    (code,) = blocks("docs/journal.md", "python")
    assert "ds2: " in run_code(code, tmp_path)


def test_planning(tmp_path: Path) -> None:
    printed = run_all("docs/planning.md", tmp_path)
    assert re.search(r"^next measurement +64 slots", printed, re.MULTILINE)
    assert (tmp_path / "q1.html").exists()


def test_simulator(tmp_path: Path) -> None:
    (config,) = blocks("docs/simulator.md", "yaml")
    (tmp_path / "clicks.yaml").write_text(config)
    assert "clicks, load sine" in run_all("docs/simulator.md", tmp_path)
    assert (tmp_path / "clicks.html").exists()
    (code,) = blocks("docs/simulator.md", "python")
    assert "1200.0" in run_code(code, tmp_path)


@pytest.mark.parametrize("policy", ["conttune", "dragster", "autrascale", "phoebe"])
def test_a_policys_page(policy: str, tmp_path: Path) -> None:
    assert policy in run_all(f"docs/{policy}.md", tmp_path)


def test_forecasting(tmp_path: Path) -> None:
    printed = run_all("docs/forecasting.md", tmp_path)
    assert "ds2: caught up after" in printed
    assert "conttune: caught up after" in printed


def test_every_link_between_pages_leads_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} -> {target}"


def test_the_pages_cite_nothing_that_is_not_in_the_project() -> None:
    for page in MATHEMATICS:
        text = (ROOT / "docs" / f"{page}.md").read_text()
        missing = [name for name in ("CALIBRATION.md", "SPARK.md", "DESIGN.md", "SEEDS.md", "STYLE.md") if name in text]
        assert missing == [], page


def test_the_files_that_the_pages_name_exist() -> None:
    for page in MATHEMATICS:
        for name in re.findall(r"`((?:[a-z_]+/)+[a-z_0-9]+\.py)`", (ROOT / "docs" / f"{page}.md").read_text()):
            where = ROOT / name if name.startswith(("src/", "tests/")) else ROOT / "src" / "rheostat" / name
            assert where.exists() or name in TO_BE_WRITTEN, f"{page}.md -> {name}"
