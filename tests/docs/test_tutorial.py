"""The tutorial: its policy is short, good on the page's own comparison, and its steps make it part of the package."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from page_blocks import blocks, run_all
from project import ROOT

PAGE = "docs/tutorial.md"
TREE = ("src", "tests", "docs", "pyproject.toml", "ARCHITECTURE.md")


@pytest.fixture(scope="module")
def code() -> str:
    return blocks(PAGE, "python")[0]


def test_the_policy_is_short_and_has_one_import_line_of_rheostat(code: str) -> None:
    assert len(code.splitlines()) < 40
    imports = [line for line in code.splitlines() if line.startswith(("import ", "from "))]
    assert sum("rheostat" in line for line in imports) == 1
    assert imports[-1].startswith("from rheostat import ")


def test_every_command_runs_and_the_policy_beats_static_and_ds2(code: str, tmp_path: Path) -> None:
    (tmp_path / "steady.py").write_text(code)
    printed = run_all(PAGE, tmp_path)
    assert "the load needs" in printed
    assert (tmp_path / "steady.html").exists()
    rows: dict[str, dict[str, Any]] = {row["policy"]: row for row in json.loads((tmp_path / "steady.json").read_text())}
    static, ds2, steady = rows["static"], rows["ds2"], rows["./steady.py"]
    assert steady["slot_seconds"] < 0.6 * static["slot_seconds"]
    assert steady["slot_seconds"] <= ds2["slot_seconds"]
    assert steady["slo_seconds_over"] <= ds2["slo_seconds_over"]
    assert steady["reconfigurations"] <= ds2["reconfigurations"]
    text = (ROOT / PAGE).read_text()
    for name, row in (("static", static), ("ds2", ds2), ("steady", steady)):
        shown = next(line for line in text.splitlines() if line.startswith(f"| {name} |"))
        values = [float(cell.replace(",", "")) for cell in shown.split("|")[2:-1]]
        assert values == pytest.approx(
            [
                row["reconfigurations"],
                row["slot_seconds"] / 1000,
                row["slo_seconds_over"],
                row["cost_over_oracle"],
            ],
            rel=0.02,
            abs=0.06,
        )


def test_the_steps_make_it_one_of_rheostats_own(code: str, tmp_path: Path) -> None:
    """Do what the page says in a copy of the tree, and run there what a new policy can break.

    The whole of `make test` would start Spark and Kafka for many minutes. A new policy touches the linter, the types,
    the import contracts, the list of files, the reference page, and the tests that go through all policies by name.
    """
    for name in TREE:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    _, line, tests = blocks(PAGE, "python")
    (row,) = blocks(PAGE, "markdown")
    policies = tmp_path / "src" / "rheostat" / "policy"
    (policies / "steady.py").write_text(code)
    add_after(policies / "registry.py", '    "static": "rheostat.policy.static:Static",\n', line)
    add_after(policies / "__init__.py", "| `registry.py` | policies by name or file |\n", row)
    (tmp_path / "tests" / "policy" / "test_steady.py").write_text(tests)

    new = ["src/rheostat/policy/steady.py", "tests/policy/test_steady.py"]
    run(tmp_path, "rheostat.cli.reference", "docs/configuration.md")
    run(tmp_path, "ruff", "check", "src/rheostat/policy", "tests/policy")
    run(tmp_path, "ruff", "format", "--check", "src/rheostat/policy", "tests/policy")
    run(tmp_path, "mypy", *new)
    contracts = "from importlinter.cli import lint_imports_command as check; check()"
    run(tmp_path, "-c", contracts, "--no-logo", "--no-cache")
    by_name = ["tests/control/test_unsettled.py", "tests/cli/test_reference.py"]
    passed = run(tmp_path, "pytest", "-p", "no:cacheprovider", "-vv", new[1], "tests/docs/test_folders.py", *by_name)
    assert "TestSteady::test_decisions_survive_json PASSED" in passed
    assert "[steady] PASSED" in passed


def add_after(file: Path, anchor: str, line: str) -> None:
    text = file.read_text()
    assert text.count(anchor) == 1
    file.write_text(text.replace(anchor, anchor + line))


def run(tree: Path, module: str, *arguments: str) -> str:
    how = [module] if module == "-c" else ["-m", module]
    done = subprocess.run(
        [sys.executable, *how, *arguments],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": f"{tree / 'src'}:{tree}", "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{module} {' '.join(arguments)}\n{done.stdout}{done.stderr}"
    return done.stdout
