"""The table of defaults says what the code has."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from typing import Any

from project import ROOT

import rheostat
from rheostat.api.launch import MOST_LEASE_S
from rheostat.cli import run
from rheostat.control.controller import Pace
from rheostat.engine.spark import microbatch
from rheostat.engine.spark.executors import pool
from rheostat.engine.spark.lifecycle import shape
from rheostat.engine.spark.session.session import session_settings
from rheostat.engine.spark.session.settings import ANYWHERE, NEEDED, RECOMMENDED, attach_settings
from rheostat.job.forecast import Foresight
from rheostat.job.guards import Guards
from rheostat.job.slo import DEFAULT_HEADROOM, SLO
from rheostat.model.downtime import PRIORS, Kind
from rheostat.policy.ds2 import DS2

PAGE = (ROOT / "docs" / "defaults.md").read_text()
CLASSES = {"Options": rheostat.Options, "Guards": Guards, "Foresight": Foresight, "SLO": SLO}
FUNCTIONS: dict[str, Any] = {
    "autoscale": rheostat.autoscale,
    "start": rheostat.start,
    "session": rheostat.session,
    "serve_metrics": rheostat.serve_metrics,
}
BLOCKS = {"Options.guards", "Options.forecast", "SLO.job", "SLO.operators"}
"""Fields whose own fields have rows of their own, or that have no single value."""


def table() -> dict[str, str]:
    """Return the first column of every row -> the second one."""
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|", PAGE, re.MULTILINE)
    return {key.strip().strip("`"): value.strip() for key, value in rows if key.strip() not in ("default", "---")}


def written(value: Any) -> str:
    if value is inspect.Parameter.empty:
        return "required"
    if value is None or value == {} or value == ():
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ", ".join(value)
    return f"{value:.10g}" if isinstance(value, float | int) else str(value)


def of_classes() -> Iterator[tuple[str, str]]:
    for name, cls in CLASSES.items():
        for field in fields(cls):
            key = f"{name}.{field.name}"
            default = field.default_factory() if field.default is MISSING else field.default  # type: ignore[operator]
            if key not in BLOCKS:
                yield key, written(DEFAULT_HEADROOM if key == "SLO.headroom" else default)


def of_functions() -> Iterator[tuple[str, str]]:
    for name, function in FUNCTIONS.items():
        for parameter in inspect.signature(function).parameters.values():
            yield f"{name}.{parameter.name}", written(parameter.default)


def others() -> Mapping[str, str]:
    engine = inspect.signature(microbatch.MicroBatchEngine).parameters
    pace, options = Pace(), rheostat.Options()
    values = {
        "ds2.ignore_single_decrease": DS2().ignore_single_decrease,
        "seconds of a restart before the first one, mean": PRIORS[Kind.RESTART][0],
        "its standard deviation, as a share": PRIORS[Kind.RESTART][1],
        "the most executors of `rheostat run`, unless set": run.MAX_EXECUTORS,
        "seconds for one observation": pace.observe_deadline_s,
        "seconds for one resize call": pace.apply_deadline_s,
        "lease, at an interval of 5 s": min(MOST_LEASE_S, 3 * options.interval_s + 10),
        "longest lease": MOST_LEASE_S,
        "seconds until missing executors count as refused": engine["patience_s"].default,
        "seconds capped at a partial grant": microbatch.PARTIAL_GRANT_S,
        "seconds that a removal waits for a moment without jobs": pool.BOUNDARY_S,
        "seconds that a restart waits for the end of a batch": shape.BATCH_S,
        "tasks per slot of a started pipeline": shape.TASKS_PER_SLOT,
        "seconds that `rheostat run` waits for a batch after a signal": run.STOP_S,
    }
    return {key: written(value) for key, value in values.items()}


def test_every_field_has_a_row_with_its_default() -> None:
    rows = table()
    for key, value in of_classes():
        assert rows.get(key) == value, key


def test_every_row_says_what_the_code_has() -> None:
    known = dict(of_classes()) | dict(of_functions()) | dict(others())
    known |= session_settings("clicks") | {line.key: line.value for line in attach_settings("yarn") if not line.needed}
    rows = table()
    del rows["SLO.job`, `SLO.operators"], rows["setting"]
    assert {key: known.get(key) for key in rows} == rows
    assert set(others()) <= set(rows)


def test_both_ways_in_have_the_same_defaults() -> None:
    attach, launch = (inspect.signature(function).parameters for function in (rheostat.autoscale, rheostat.start))
    for name in ("min_executors", "slo", "policy", "journal", "dry_run", "options"):
        assert attach[name].default == launch[name].default, name


def test_settings_of_a_session_are_all_listed() -> None:
    rows = table()
    assert all(setting.key in rows for setting in NEEDED if setting.value is not None)
    assert all(key in rows for key in (*RECOMMENDED, *ANYWHERE))
