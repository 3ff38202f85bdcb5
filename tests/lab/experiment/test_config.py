from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rheostat.engine.simulated.curves import Linear, Table, Usl
from rheostat.engine.testbed.loads import Constant, Steps
from rheostat.errors import InvalidValue
from rheostat.job.allocation import Allocation
from rheostat.job.forecast import Foresight
from rheostat.job.frozen import from_json, to_json
from rheostat.job.graph import Edge
from rheostat.job.slo import SLO, Bounds
from rheostat.lab.experiment.config import load_config, make_config
from rheostat.lab.experiment.oracle.schedule import make_oracle

JOB = """
job:
  name: mine
  sources: {a: 10, b: 5}
  operators:
    x: {curve: {kind: amdahl, rate_per_s: 8, sigma: 0.1}, max_tasks: 9}
    y: {curve: {kind: table, points: [[1, 1e1], [4, 30]]}, noise: 0.1}
  edges:
    - {upstream: a, downstream: x}
    - {upstream: b, downstream: x}
    - {upstream: x, downstream: y, selectivity: 0.5}
  restart: {mean_s: 5}
load: constant:value=2
"""

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def to_file(text: str) -> Path:
        file = tmp_path / "run.yaml"
        file.write_text(text, encoding="utf-8")
        return file

    return to_file


def test_an_empty_file_is_a_run_with_defaults(write: Write) -> None:
    trial = load_config(write("")).trial()
    assert trial.job.name == "wordcount"
    assert trial.duration_s == 12_000  # ten levels, twice, ten minutes each
    assert trial.slo == SLO(max_latency_s=10, headroom=0.2)
    assert trial.start == Allocation({"splitter": 17, "count": 8})


def test_a_described_job_becomes_a_plant(write: Write) -> None:
    plant = load_config(write(JOB)).trial().job
    assert plant.graph.operators == ("a", "b", "x", "y")
    assert plant.graph.edges[-1] == Edge("x", "y", 0.5)
    assert plant.operator("a").pinned_tasks == 1
    assert plant.operator("x").curve == Usl(8.0, 0.1)
    assert plant.operator("y").curve == Table(((1, 10.0), (4, 30.0)))
    assert plant.restart.mean_s == 5
    assert dict(plant.unit_per_s) == {"a": 10.0, "b": 5.0}


def test_a_source_may_be_described_and_tuned() -> None:
    values = {
        "name": "one",
        "sources": {"all": 2},
        "operators": {"all": {"curve": {"kind": "linear", "rate_per_s": 3}}},
    }
    plant = make_config({"job": values, "load": "constant"}).trial().job
    assert plant.operator("all").curve == Linear(3.0)
    assert plant.spec().tunable_names == ("all",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("job: wordcont", ["'wordcont'", "'wordcount'"]),
        ("job: 5", ["job", "5"]),
        ("jbo: wordcount", ["'jbo'", "'job'"]),
        ("load: sinus", ["'sinus'", "'sine'"]),
        ("load: sine:men=3", ["load sine: men", "'mean'"]),
        ("load: sine:mean=-3", ["mean", "-3"]),
        ("load: {shape: sine, mean: .nan}", ["NaN"]),
        ("load: {mean: 3}", ["load.shape"]),
        ("load: trace", ["trace.file"]),
        ("load: trace:file=nowhere.csv", ["'nowhere.csv'"]),
        ("policy: ds3", ["'ds3'", "'ds2'"]),
        ("policy: nowhere.py", ["'nowhere.py'"]),
        ("policy: ds2:windows=3", ["windows"]),
        ("policy: oracle:horizon_s=3", ["horizon_s", "no options"]),
        ("slo: {max_latncy_s: 3}", ["'slo.max_latncy_s'", "'max_latency_s'"]),
        ("slo: 3", ["slo", "3"]),
        ("slo: {operators: {count: {min: 5, max: 3}}}", ["slo.operators.count", "min 5 is above max 3"]),
        ("slo: {operators: {cont: {min: 5}}}", ["'cont'", "'count'"]),
        ("slo: {operators: {count: {max: 1}}, job: {max: 1}}", ["slo.job.max", "1"]),
        ("guards: {explore: maybe}", ["guards.explore", "'maybe'"]),
        ("seed: -1", ["seed", "-1"]),
        ("seed: 1.5", ["seed", "1.5"]),
        ("duration_s: abc", ["duration_s", "'abc'"]),
        ("duration_s: .nan", ["duration_s", "NaN"]),
        ("duration_s: Infinity", ["duration_s", "inf"]),
        ("duration_s: 10", ["duration_s 10", "interval_s 60"]),
        ("interval_s: 0", ["interval_s", "0"]),
        ("start: top", ["start", "'top'"]),
        ("start: {count: 0}", ["count", "0"]),
        ("start: {cnt: 3}", ["'cnt'", "'count'"]),
        ("start: {count: 500}", ["count=500"]),
        ("failures_s: [-5]", ["failures_s", "-5"]),
        ("failures_s: 5", ["failures_s", "5"]),
        ("seed: 1\nseed: 2", ["line 2, column 1", "'seed'", "twice"]),
        ("job: [1", ["line 1", "column"]),
        ("- a", ["run.yaml", "list"]),
    ],
)
def test_what_is_wrong_in_a_file_is_named(write: Write, text: str, words: list[str]) -> None:
    with pytest.raises(InvalidValue) as caught:
        load_config(write(text))
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("{a: 10, b: 5}", "{a: -10, b: 5}", ["job", "-10"]),
        ("{a: 10, b: 5}", "{a: .nan, b: 5}", ["job.sources.a", "NaN"]),
        ("upstream: a, downstream: x", "upstream: y, downstream: x", ["job", "cycle"]),
        ("upstream: a, downstream: x", "upstream: q, downstream: x", ["job", "'q'"]),
        ("selectivity: 0.5", "selectivity: -0.5", ["job.edges.2", "-0.5"]),
        ("kind: amdahl", "kind: amdal", ["job.operators.x.curve.kind", "'amdal'"]),
        ("sigma: 0.1", "kappa: 0.1", ["job.operators.x.curve.kappa", "usl"]),
        ("sigma: 0.1", "sigmma: 0.1", ["'job.operators.x.curve.sigmma'", "'sigma'"]),
        ("noise: 0.1", "noise: -0.1", ["job.operators.y", "-0.1"]),
        ("noise: 0.1", "nose: 0.1", ["'job.operators.y.nose'", "'noise'"]),
        ("max_tasks: 9", "max_tasks: 0", ["job", "0"]),
        ("restart:", "restrt:", ["'job.restrt'", "'restart'"]),
        ("mean_s: 5", "mean_s: soon", ["job.restart.mean_s", "'soon'"]),
        ("name: mine", "names: mine", ["job.name is missing", "'job.names'"]),
        ("{curve: {kind: amdahl, rate_per_s: 8, sigma: 0.1}, max_tasks: 9}", "7", ["job.operators.x", "7"]),
        ("{kind: amdahl, rate_per_s: 8, sigma: 0.1}", "7", ["job.operators.x.curve", "7"]),
    ],
)
def test_what_is_wrong_in_a_described_job_is_named(write: Write, old: str, new: str, words: list[str]) -> None:
    assert old in JOB
    with pytest.raises(InvalidValue) as caught:
        load_config(write(JOB.replace(old, new)))
    for word in words:
        assert word in str(caught.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match=r"nowhere\.yaml"):
        load_config(tmp_path / "nowhere.yaml")
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidValue, match=r"binary\.yaml.*UTF-8"):
        load_config(binary)


def test_numbers_are_read_as_in_yaml_1_2(write: Write) -> None:
    config = load_config(write("duration_s: 1e3\nseed: 010\nload: {shape: steps, levels: [1_0, .5]}"))
    assert (config.duration_s, config.seed) == (1000.0, 10)
    assert config.trial().load == Steps((10.0, 0.5))


def test_the_default_headroom_yields_to_a_policys_own_factor(write: Write) -> None:
    assert load_config(write("policy: ds2:scaling_factor=0.1")).slo.headroom is None
    assert load_config(write("policy: ds2:scaling_factor=0.1\nslo: {headroom: 0.3}")).slo.headroom == 0.3


@pytest.mark.parametrize(
    ("start", "tasks"),
    [("min", {"splitter": 2, "count": 1}), ({"count": 3}, {"splitter": 2, "count": 3})],
)
def test_a_run_starts_where_it_is_told(start: Any, tasks: dict[str, int]) -> None:
    values = {"start": start, "slo": {"operators": {"splitter": {"min": 2}}}}
    if isinstance(start, dict):
        values["start"] = {"splitter": 2, **start}
    assert make_config(values).trial().start == Allocation(tasks)


def test_the_peak_start_is_enough_for_every_seeds_load() -> None:
    config = make_config({"load": "permutation:hold_s=600", "duration_s": 600})
    starts = [config.trial([seed]).start for seed in range(4)]
    together = config.trial(range(4)).start
    assert None not in starts
    assert together is not None
    assert together.slots == max(start.slots for start in starts if start)
    assert len(set(starts)) > 1


def test_the_peak_start_keeps_within_the_budget() -> None:
    start = make_config({"slo": {"budget": {"slots": 10}, "job": {"min": 2}}}).trial().start
    assert start is not None
    assert start.slots == 10


def test_the_settings_rebuild_the_run_after_a_round_trip_through_json(write: Write) -> None:
    trial = load_config(write(JOB + "duration_s: 600\nfailures_s: [100]\n")).trial()
    settings = json.loads(to_json(trial.settings))
    assert settings.pop("engine") == "simulated"
    again = make_config(settings).trial()
    assert again.job == trial.job
    assert again.load == trial.load == Constant(2.0)
    assert again.failures_s == (100.0,)
    assert make_oracle(again) == make_oracle(trial)


def test_guards_and_promises_come_out_as_the_loop_knows_them() -> None:
    config = make_config({"slo": {"operators": {"count": {"min": 2}}}, "guards": {"frozen": ["22:00-06:00"]}})
    assert config.slo.operators["count"] == Bounds(2)
    assert from_json(type(config.guards), to_json(config.guards)) == config.guards


def test_how_the_load_is_forecast_can_be_told(write: Write) -> None:
    config = load_config(write("forecast: {horizon_s: 1200, candidates: [profile], choose_every_s: 600}\n"))
    assert config.trial().foresight == Foresight(1200.0, ("profile",), 600.0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("forecast: {horizon: 5}", "horizon"),
        ("forecast: {horizon_s: 0}", "forecast.horizon_s"),
        ("forecast: {candidates: [profil]}", "did you mean 'profile'"),
        ("slo: {max_recovery_s: 180, recovery_quantile: 1}", "recovery_quantile"),
    ],
)
def test_an_impossible_forecast_is_an_error_that_names_it(write: Write, text: str, says: str) -> None:
    with pytest.raises(InvalidValue, match=says):
        load_config(write(f"{text}\n"))
