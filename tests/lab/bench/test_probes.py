"""How far probes are off: what counts as a reading."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from rheostat.engine.simulated import Plant
from rheostat.engine.testbed.loads import Steps
from rheostat.engine.testbed.schedule import Schedule
from rheostat.lab.bench.probes import HOLD_S, SETTLE_S, TASKS, readings
from rheostat.lab.experiment.run import Run
from rheostat.lab.jobs.realtime import word_count

ABLE = {op.name: op.curve.capacity_per_s(TASKS[op.name]) for op in word_count().operators if op.name in TASKS}


def window(start_s: float, end_s: float, off: float, *, usable: bool = True) -> Any:
    operators = [SimpleNamespace(name=name, true_rate_per_s=off * ABLE[name] / TASKS[name]) for name in TASKS]
    operators.append(SimpleNamespace(name="lines", true_rate_per_s=1e6))
    seen = SimpleNamespace(start_s=1000 + start_s, end_s=1000 + end_s, usable=usable, operators=operators)
    return SimpleNamespace(observation=seen)


def test_only_windows_within_one_level_are_read_and_each_stage_by_its_own_load() -> None:
    schedule = Schedule(Steps((1.0, 2.0), HOLD_S), 40.0, 2 * HOLD_S)
    steps = (
        window(2.0, 12.0, 3.0),  # the level has only begun
        window(SETTLE_S, 20.0, 1.02),
        window(HOLD_S - 5, HOLD_S + 5, 3.0),  # across two levels
        window(HOLD_S + SETTLE_S, HOLD_S + 20, 0.9),
        window(HOLD_S + SETTLE_S, HOLD_S + 20, 3.0, usable=False),
    )
    run = SimpleNamespace(trial=SimpleNamespace(schedule=schedule), start_s=1000.0, steps=steps)
    found = list(readings(cast(Run[Plant], run)))
    assert [(r.stage, round(r.ratio, 3)) for r in found] == [
        ("split", 1.02), ("count", 1.02), ("split", 0.9), ("count", 0.9),
    ]  # fmt: skip
    assert [r.busy for r in found[:2]] == pytest.approx([40 / ABLE["split"], 120 / ABLE["count"]])
    assert found[2].busy == pytest.approx(2 * found[0].busy)
