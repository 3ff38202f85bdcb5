"""WordCount and YSB in Spark's real-time mode: a chain of paced stages, each with its own tasks.

The same pipelines run on Spark with two cores, where stages wait instead of computing. Rates per task are those that a
paced stage sustains exactly (60 to 200 records/s); capacities follow Amdahl's law with 3 to 8 % noise. Level 10 needs
at most eight tasks of a stage. Batches, gaps and downtimes are those of the `realtime` discipline, measured on Spark
4.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rheostat.engine.simulated.curves import Usl
from rheostat.engine.simulated.plant import Metrics, Plant, PlantOperator
from rheostat.engine.simulated.realtime.discipline import RealTime
from rheostat.job.graph import Edge, Graph

ORIGIN = "paced stages on two cores; batches and downtimes measured on Spark"
SLOTS = 24
MOST_TASKS = 8
PARTITIONS = 2
"""Tasks of the source: one per partition of its topic."""
WORDS_PER_LINE = 3
VIEWS = 1 / 3
"""Share of the events that are views."""
WINDOW_S = 20.0


def _source(name: str) -> PlantOperator:
    return PlantOperator(name, pinned_tasks=PARTITIONS, pinned_why="one task per partition of its topic")


def _stage(name: str, task_per_s: float, serial: float, noise: float, state: float = 0.0) -> PlantOperator:
    curve = Usl(task_per_s, serial)
    return PlantOperator(name, curve, noise, state_bytes_per_record=state, max_tasks=MOST_TASKS)


def _plant(name: str, unit_per_s: float, stages: tuple[PlantOperator, ...], edges: tuple[Edge, ...]) -> Plant:
    names = tuple(stage.name for stage in stages)
    return Plant(
        name,
        Graph(names, edges, names[:1]),
        stages,
        {names[0]: unit_per_s},
        ORIGIN,
        metrics=Metrics(window_s=WINDOW_S, min_window_s=4.0, settle_s=0.0),
        slots_available=SLOTS,
        discipline=RealTime(),
    )


def word_count() -> Plant:
    """Return WordCount: lines are split into words, and words are counted since the start."""
    stages = (_source("lines"), _stage("split", 90.0, 0.05, 0.05), _stage("count", 200.0, 0.03, 0.03, state=1.0))
    edges = (Edge("lines", "split"), Edge("split", "count", WORDS_PER_LINE))
    return _plant("realtime-wordcount", 40.0, stages, edges)


def ysb() -> Plant:
    """Return YSB: views are filtered, joined with their campaigns, and counted per campaign and window."""
    stages = (
        _source("events"),
        _stage("filter", 180.0, 0.04, 0.03),
        _stage("join", 90.0, 0.05, 0.08),
        _stage("count", 80.0, 0.03, 0.05, state=1.0),
    )
    edges = (Edge("events", "filter"), Edge("filter", "join", VIEWS), Edge("join", "count"))
    return _plant("realtime-ysb", 100.0, stages, edges)


JOBS: Mapping[str, Callable[[], Plant]] = {"realtime-wordcount": word_count, "realtime-ysb": ysb}
