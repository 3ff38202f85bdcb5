"""StreamBed's queries (Nexmark on Flink 1.14), with power-law capacities fitted on its artifact.

Capacity = a * p ** b, input ratio to the source and noise are fitted to `operator_true_rates.csv`, interference eta and
the gain per doubling of memory to `max_sustainable_rates.csv`. Slots include the sink; sources do not count. q11 has no
operator rows: it is fitted to its maximum rates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from rheostat.engine.simulated.curves import Power
from rheostat.engine.simulated.plant import Interference, Memory, Plant, PlantOperator
from rheostat.job.graph import Edge, Graph
from rheostat.lab.jobs.conttune import source

ORIGIN = "StreamBed, fitted to its artifact (operator_true_rates, max_sustainable_rates)"

Row = tuple[str, str, float, float, float, float]
"""name, upstream, a, b, input ratio to the source, noise."""

GROUP_WINDOW_S = 10.0
LIGHT: tuple[Row, ...] = (("calc3", "session_group", 2.0e6, 1.0, 0.05, 0.0), ("sink", "calc3", 4.0e6, 1.0, 0.05, 0.0))
"""q11's last two operators: one slot each at every measured size; their rates are ours."""


def query(
    name: str,
    rows: tuple[Row, ...],
    interference: Interference,
    memory: Memory,
    windows: Mapping[str, float] | None = None,
) -> Plant:
    """Return a plant from fitted rows; streams that join are weighted by their rates."""
    ratio = {"events": 1.0, **{row[0]: row[4] for row in rows}}
    joined = [(up, row[0]) for row in rows for up in row[1].split("+")]
    sent = {row[0]: sum(ratio[up] for up in row[1].split("+")) for row in rows}
    edges = tuple(Edge(up, down, ratio[down] / sent[down]) for up, down in joined)
    operators = tuple(
        PlantOperator(op, Power(a, b), noise=noise, emits_every_s=(windows or {}).get(op), max_tasks=2048)
        for op, _, a, b, _, noise in rows
    )
    return Plant(
        name,
        Graph(("events", *(row[0] for row in rows)), edges, ("events",)),
        (source("events"), *operators),
        {"events": 1.0},
        ORIGIN,
        interference=interference,
        memory=memory,
    )


def memory(gain: float, collapse: Mapping[int, float] | None = None) -> Memory:
    """Return StreamBed's memory profiles, per task manager of 16 slots."""
    return Memory(4096, (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536), gain, collapse or {})


JOBS: Mapping[str, Callable[[], Plant]] = {
    "streambed-q1": partial(
        query,
        "streambed-q1",
        (("calc", "events", 1.623e6, 0.934, 1.0, 0.06), ("sink", "calc", 6.92e6, 0.924, 0.92, 0.11)),
        Interference(0.93),
        memory(0.043),
    ),
    "streambed-q2": partial(
        query,
        "streambed-q2",
        (("calc", "events", 4.137e6, 0.919, 1.0, 0.035), ("sink", "calc", 5.66e6, 1.0, 0.0076, 0.0)),
        Interference(0.935),
        memory(0.011),
    ),
    "streambed-q5": partial(
        query,
        "streambed-q5",
        (
            ("calc1", "events", 1.94e6, 0.98, 1.0, 0.18),
            ("window_group", "calc1", 42.6e3, 0.944, 0.92, 0.035),
            ("calc3", "window_group", 1.9e6, 1.0, 0.308, 0.0),
            ("group", "calc4", 321e3, 0.99, 0.308, 0.07),
            ("calc4", "window_group", 1.88e6, 1.0, 0.308, 0.0),
            ("calc6", "group", 1.18e4, 1.0, 3.06e-5, 0.0),
            ("join", "calc3+calc6", 217e3, 1.0, 0.308, 0.11),
            ("calc8", "join", 2.46e6, 1.0, 0.028, 0.0),
            ("sink", "calc8", 4.27e6, 1.0, 0.028, 0.0),
        ),
        Interference(1.15, per_slot=0.0113),
        memory(0.0, {1024: 0.11}),
        {"window_group": 2.0},
    ),
    "streambed-q8": partial(
        query,
        "streambed-q8",
        (
            ("calc1", "events", 4.72e6, 0.899, 1.0, 0.07),
            ("calc2", "events", 4.40e6, 0.904, 1.0, 0.075),
            ("group3", "calc1", 40.9e3, 0.918, 0.02, 0.09),
            ("group4", "calc2", 106.6e3, 0.899, 0.06, 0.043),
            ("calc5", "group3", 1.32e6, 1.0, 0.0188, 0.0),
            ("calc6", "group4", 1.78e6, 1.0, 0.0102, 0.0),
            ("join", "calc5+calc6", 33.0e3, 1.0, 0.0287, 0.10),
            ("calc8", "join", 1.33e6, 1.0, 0.0093, 0.0),
            ("sink", "calc8", 3.59e6, 1.0, 0.0093, 0.0),
        ),
        Interference(0.97, exponent=-0.40),
        memory(0.14, {512: 0.10, 1024: 0.70}),
        {"group3": GROUP_WINDOW_S, "group4": GROUP_WINDOW_S},
    ),
    "q11": partial(
        query,
        "q11",
        (("calc", "events", 620e3, 1.0, 1.0, 0.06), ("session_group", "calc", 61.1e3, 0.94, 0.92, 0.06), *LIGHT),
        Interference(1.0),
        memory(0.005),
    ),
}
