"""Named grounds: each is a configuration that can be run, journaled and recreated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rheostat.config.named import parse_named
from rheostat.engine.testbed.loads import Trace
from rheostat.errors import InvalidValue
from rheostat.lab.experiment.config import make_config
from rheostat.lab.experiment.descriptions import read_load
from rheostat.lab.experiment.grounds import GROUNDS, OURS, POLICIES, PUBLISHED, SEEDS, find_grounds
from rheostat.lab.experiment.trial import check_way
from rheostat.policy.registry import POLICIES as KNOWN

HARD = [name for name, ground in GROUNDS.items() if not ground.trace]


@pytest.mark.parametrize("name", HARD)
def test_a_hard_ground_is_a_valid_configuration_with_enough_seeds(name: str) -> None:
    [ground] = find_grounds(name)
    trial = make_config(ground.values).trial()
    assert trial.job.name == name
    assert ground.seeds == SEEDS >= 20
    assert ground.quick_seeds < ground.seeds
    assert ground.missing == ""


def test_the_hard_cases_of_the_comparison_are_there() -> None:
    jobs = {name: make_config(GROUNDS[name].values).trial().job for name in HARD}
    ends = {name: [o.drift[-1][1] for o in plant.operators if o.drift] for name, plant in jobs.items()}
    assert ends["drift-down"] == [0.85]
    assert ends["drift-up"] == [1.2]
    assert ends["drift-ramp"] == [0.75]
    assert len(jobs["two-sources"].graph.sources) == 2
    assert max(len(edges) for edges in jobs["diamond"].graph.outputs.values()) == 2
    assert max(len(edges) for edges in jobs["diamond"].graph.inputs.values()) == 2
    assert jobs["steep-latency"].latency.exponent == 2.0
    assert jobs["growing-state"].restart.per_gb_s > 0
    assert max(o.skew for o in jobs["skewed"].operators) > 0
    curve = jobs["rough"].operators[1].curve
    rates = np.array([curve.capacity_per_s(p) / p for p in range(1, 41)])
    assert 0.05 < np.diff(np.log(rates)).std() / np.sqrt(2) < 0.12


def test_every_policy_of_a_ground_is_known() -> None:
    ways = POLICIES.split(",")
    assert ways == [*PUBLISHED, *OURS, "oracle"]
    assert {parse_named(way)[0] for way in ways[:-1]} <= set(KNOWN)
    for way in ways[:-1]:
        check_way(way)


def test_all_means_all_and_a_wrong_name_is_refused() -> None:
    assert [ground.name for ground in find_grounds("all")] == list(GROUNDS)
    assert [ground.name for ground in find_grounds("rough,skewed")] == ["rough", "skewed"]
    with pytest.raises(InvalidValue, match="'rough'"):
        find_grounds("rugh")


def test_a_recorded_trace_is_read_by_its_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RHEOSTAT_DATA", str(tmp_path))
    assert "no trace 'alibaba_5min'" in GROUNDS["alibaba"].missing
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "alibaba_5min.csv").write_text("second,rate\n0,10\n300,40\n600,20\n")
    assert GROUNDS["alibaba"].missing == ""
    load = read_load("trace:file=alibaba_5min:top=8")
    assert isinstance(load, Trace)
    assert load.level(np.array([0.0, 300.0])).tolist() == [2.0, 8.0]
