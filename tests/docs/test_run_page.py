"""The file that the page of `rheostat run` shows is a file that `rheostat run` reads."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest
import yaml
from project import ROOT

from rheostat.cli.run import _overrides
from rheostat.config.run_file import RunFile, read_run
from rheostat.policy.registry import resolve_policy

PAGE = (ROOT / "docs" / "run.md").read_text()


@pytest.fixture
def file(tmp_path: Path) -> str:
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    path = tmp_path / "clicks.yaml"
    path.write_text(text)
    return str(path)


def test_the_file_has_every_key(file: str) -> None:
    assert set(yaml.safe_load(Path(file).read_text())) == {field.name for field in fields(RunFile)}


def test_the_file_says_what_it_seems_to_say(file: str) -> None:
    run = read_run(file, {})
    assert (run.min_executors, run.max_executors, run.cores) == (2, 40, 2)
    assert run.slo.max_lag_s == 60
    assert run.slo.budget is not None
    assert run.slo.budget.max_slots == 60
    assert [period.every_s for period in run.guards.frozen] == [86_400, None]
    assert run.conf == {"spark.sql.shuffle.partitions": "160"}
    assert resolve_policy(run.policy).options()["activation_windows"] == 2


def test_the_command_line_overrides_the_file(file: str) -> None:
    """As in the page's example; a named option goes above --set."""
    settings = ["guards.cooldown_down_s=60", "slo.max_lag_s=30", "max_executors=9"]
    run = read_run(file, _overrides({}, {"max_executors": "8"}, settings, [], ["spark.ui.enabled=false"]))
    assert (run.guards.cooldown_down_s, run.guards.shrink_after_s) == (60, 900)
    assert (run.slo.max_lag_s, run.slo.max_recovery_s) == (30, 180)
    assert run.max_executors == 8
    assert run.conf == {"spark.sql.shuffle.partitions": "160", "spark.ui.enabled": "false"}
