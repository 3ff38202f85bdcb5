"""A pipeline of stages: valid definitions, and the refusals of invalid ones."""

from typing import Any

import pytest

import rheostat
from rheostat.api.takeover import beginning
from rheostat.engine.spark.pipeline import Builder, PipelineFunction, Staged
from rheostat.errors import InvalidValue
from rheostat.job.allocation import Allocation
from rheostat.lab.workload.realtime import RECIPES, realtime_pipeline


def same(rows: Any) -> Any:
    return rows


@rheostat.pipeline
def clicks(p: Builder, servers: str = "localhost:9092") -> None:
    """Count clicks."""
    p.kafka("events", servers=servers, topic="clicks")
    p.stage("parse", same)
    p.keyed("count", same)
    p.to_kafka("counts", servers=servers, topic="counts", columns=same, checkpoint="/data/clicks")


def test_a_function_becomes_a_pipeline_with_options() -> None:
    assert isinstance(clicks, PipelineFunction)
    staged = clicks.define(servers="broker:1")
    assert (staged.name, staged.names, staged.keyed) == ("clicks", ("events", "parse", "count"), "count")
    assert staged.source.servers == "broker:1"
    with pytest.raises(InvalidValue, match=r"has no option 'server', .*servers"):
        clicks.define(server="x")


def test_an_invalid_pipeline_is_refused_with_the_reason() -> None:
    def build(*parts: str) -> Staged:
        p = Builder("bad")
        for part in parts:
            {
                "source": lambda: p.kafka("in", servers="s", topic="t"),
                "stage": lambda: p.stage("parse", same),
                "keyed": lambda: p.keyed("count", same),
                "keyed2": lambda: p.keyed("dedup", same),
                "job": lambda: p.stage("job", same),
                "space": lambda: p.stage("a b", same),
                "nothing": lambda: p.stage("parse", None),  # type: ignore[arg-type]
                "sink": lambda: p.to_kafka("out", servers="s", topic="t", columns=same, checkpoint="/c"),
                "nowhere": lambda: p.to_kafka("out", servers="s", topic="t", columns=same, checkpoint=""),
            }[part]()
        return p.built

    assert build("source", "stage", "sink").keyed is None
    for parts, message in {
        ("stage",): "between source and sink",
        ("source", "source"): "has the source 'in' already",
        ("source", "stage", "stage"): "two parts with the name 'parse'",
        ("source", "sink"): "at least one stage",
        ("source", "stage"): "has no sink",
        ("source", "stage", "sink", "keyed"): "between source and sink",
        ("source", "keyed", "keyed2"): "has the keyed stage 'count' already",
        ("source", "job"): "not a valid name for a part",
        ("source", "space"): "not a valid name for a part",
        ("source", "nothing"): "needs a function",
        ("source", "stage", "nowhere"): "needs a checkpoint",
        ("source", "stage", "sink", "sink"): "has the sink 'out' already",
    }.items():
        with pytest.raises(InvalidValue, match=message):
            build(*parts)


@pytest.mark.parametrize("name", RECIPES)
def test_every_papers_pipeline_is_a_chain_of_stages(name: str) -> None:
    staged = realtime_pipeline(name, servers="s", source="a", sink="b", checkpoint="/c")
    assert staged.names[0] == RECIPES[name].source
    assert len(staged.names) >= 2
    with pytest.raises(InvalidValue, match="has no stage 'missing'"):
        realtime_pipeline(name, servers="s", source="a", sink="b", checkpoint="/c", paces={"missing": None})  # type: ignore[dict-item]


def test_a_pipeline_starts_with_the_last_allocation_and_the_partitions_of_its_state() -> None:
    staged = clicks.define()
    initial, ran = Allocation({"parse": 5, "count": 6}), Allocation({"parse": 2, "count": 3})
    assert beginning(staged, None, None, 9, {}, 12) == Allocation({"parse": 4, "count": 4})
    assert beginning(staged, None, None, 0, {}, 12) == Allocation({"parse": 1, "count": 1})
    assert beginning(staged, None, initial, 9, {}, 12) == initial
    assert beginning(staged, ran, initial, 9, {}, 12) == ran
    assert beginning(staged, ran, initial, 9, {"count": 7}, 12) == Allocation({"parse": 2, "count": 7})
    # An allocation of another graph in the journal does not count.
    assert beginning(staged, Allocation({"old": 8}), None, 9, {}, 12) == Allocation({"parse": 4, "count": 4})
    # Nor does one that the executors do not allow: they may be fewer than before, and others may write the journal.
    assert beginning(staged, Allocation({"parse": 10_000, "count": 1}), initial, 9, {}, 12) == initial


def test_real_time_mode_needs_a_pipeline_and_a_known_mode() -> None:
    with pytest.raises(InvalidValue, match="mode is 'continuous'"):
        rheostat.start(clicks, mode="continuous")  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match=r"see rheostat\.pipeline"):
        rheostat.start(lambda _: None, mode="realtime")
