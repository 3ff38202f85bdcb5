"""`rheostat run FILE.yaml`: everything that the API takes, and the command line above it."""

from __future__ import annotations

from dataclasses import fields
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

import rheostat
from rheostat.config.run_file import RunFile, read_run
from rheostat.errors import InvalidValue
from rheostat.job.guards import FrozenPeriod, Guards
from rheostat.job.slo import SLO, Budget

FILE = """
pipeline: clicks:start
mode: realtime
pipeline_options: {topic: clicks, partitions: 8}
initial: {parse: 2}
max_executors: 12
conf: {spark.sql.shuffle.partitions: 24, spark.ui.enabled: false}
slo: {max_lag_s: 20, max_recovery_s: 180, budget: {slots: 10}}
policy: {name: conttune, big: false}
guards: {cooldown_down_s: 900, frozen: ["22:00-06:00"]}
forecast: {horizon_s: 1200}
journal: clicks.db
"""


def test_a_file_holds_everything_that_the_api_takes(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(FILE)
    run = read_run(str(path), {})
    assert run.slo == SLO(max_lag_s=20, max_recovery_s=180, budget=Budget(slots=10))
    assert run.guards == Guards(cooldown_down_s=900, frozen=(FrozenPeriod.parse("22:00-06:00"),))
    assert run.guards.shrink_after_s == Guards().shrink_after_s, "what is left out keeps its careful default"
    assert run.forecast.horizon_s == 1200
    assert run.conf == {"spark.sql.shuffle.partitions": "24", "spark.ui.enabled": "false"}
    assert run.pipeline_options == {"topic": "clicks", "partitions": "8"}
    assert run.policy == {"name": "conttune", "big": False}


def test_no_argument_of_the_api_is_missing_in_the_file() -> None:
    keys = {field.name for field in fields(RunFile)}
    taken = set(signature(rheostat.start).parameters) | {field.name for field in fields(rheostat.Options)}
    in_code_only = {"options", "counters", "testbed"}
    assert taken - in_code_only <= keys


def test_the_command_line_overrides_the_file(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(FILE)
    overrides: dict[str, Any] = {
        "slo.max_lag_s": 5,
        "guards.max_changes_per_hour": 2,
        "policy": "ds2",
        "conf": {"spark.ui.enabled": "true"},
        "pipeline_options": {"topic": "orders"},
    }
    run = read_run(str(path), overrides)
    assert (run.slo.max_lag_s, run.slo.max_recovery_s) == (5, 180)
    assert (run.guards.max_changes_per_hour, run.guards.cooldown_down_s) == (2, 900)
    assert run.policy == "ds2"
    assert run.conf["spark.ui.enabled"] == "true"
    assert run.conf["spark.sql.shuffle.partitions"] == "24"
    assert run.pipeline_options == {"topic": "orders", "partitions": "8"}


def test_a_function_needs_no_file() -> None:
    assert read_run("clicks:start", {}) == RunFile("clicks:start")


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"guards.cooldwn_s": 3}, "unknown key 'guards.cooldwn_s', did you mean 'cooldown_up_s'"),
        ({"slo.max_lag_s": -1}, "slo.max_lag_s must be a finite number"),
        ({"slo.budget.slots": 0}, "slo.budget.slots"),
        ({"min_executors": "two"}, "min_executors must be a whole number, not 'two'"),
        ({"mode": "continuous"}, "mode must be 'micro-batch' or 'realtime', not 'continuous'"),
        ({"guards.frozen": ["22-6"]}, "guards.frozen.0: cannot read frozen period '22-6'"),
        ({"conf": {"ui.enabled": "true"}}, "conf has the key 'ui.enabled': a setting of Spark begins with spark"),
        ({"journal.path": "x"}, "unknown key 'journal.path'|journal"),
        ({"pipeline": "clicks"}, "pipeline is 'clicks': write module:function"),
        ({"seconds": 0}, "seconds must be a finite number"),
        ({"polcy": "ds2"}, "unknown key 'polcy', did you mean 'policy'"),
    ],
)
def test_what_is_wrong_is_named_with_its_value(overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        read_run("clicks:start", overrides)
