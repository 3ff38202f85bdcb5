"""ContTune's six queries (VLDB 2023, section 7.1), with curves that reproduce its DS2 row and Table 5.

The curves are fitted to the paper's Table 4a (DS2) and Table 5, with Table 3's unit rates W_u.
Each tuned operator's capacity is scaled so that at p10 tasks (Table 5) it is 10.15 W_u (Q8: 10.2), in
records of its own input. Sources are not tuned; sinks are chained to the operator before them.

`JOBS` are fitted to a DS2 that takes every suggestion, `WITH_RULE` to one that ignores single decreases.

Of Video streaming, ETL and Monitoring the paper says only how many operators, sources and sinks they have; their graphs
and curves here are ours, fitted to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from rheostat.engine.simulated.curves import Curve, Power, Usl
from rheostat.engine.simulated.plant import Plant, PlantOperator
from rheostat.job.graph import Edge, Graph

ORIGIN = "ContTune, curves fitted to Tables 3, 4a and 5"
REAL = "ours: a graph of the size that ContTune gives, fitted to nothing"
TOP = 10.15
"""Capacity at p10 in units of W_u: the highest level plus 1.5 %."""


def scaled(curve: Power | Usl, p10: int, unit_per_s: float, top: float = TOP) -> Curve:
    """Return the curve with the rate that makes its capacity at p10 tasks `top` units."""
    return replace(curve, rate_per_s=top * unit_per_s / replace(curve, rate_per_s=1.0).capacity_per_s(p10))


def source(name: str) -> PlantOperator:
    """Return a source with unlimited capacity that is not tuned."""
    return PlantOperator(name, pinned_tasks=1)


def word_count(noise: float = 1.0) -> Plant:
    """Splitter and count; a line has ten words. `noise` is a factor on the noise of both."""
    unit, words = 100e3, 10.0
    return Plant(
        "wordcount",
        Graph(
            ("lines", "splitter", "count"), (Edge("lines", "splitter"), Edge("splitter", "count", words)), ("lines",)
        ),
        (
            source("lines"),
            PlantOperator("splitter", scaled(Usl(1, 0.02), 13, unit), noise=0.035 * noise),
            PlantOperator(
                "count",
                scaled(Usl(1, 0.015), 6, unit * words),
                noise=0.02 * noise,
                state_bytes_per_record=4,
                state_retention_s=600,
            ),
        ),
        {"lines": unit},
        ORIGIN,
    )


def single(name: str, operator: str, unit: float, curve: Power | Usl, p10: int, noise: float) -> Plant:
    """Return a query with one tuned operator behind the bids."""
    return Plant(
        name,
        Graph(("bids", operator), (Edge("bids", operator),), ("bids",)),
        (source("bids"), PlantOperator(operator, scaled(curve, p10, unit), noise=noise)),
        {"bids": unit},
        ORIGIN,
    )


def q3(noise: float = 0.0126) -> Plant:
    """Persons are filtered, then joined with auctions (incremental join)."""
    auctions, persons = 200e3, 40e3
    return Plant(
        "q3",
        Graph(
            ("auctions", "persons", "filter", "join"),
            (Edge("persons", "filter"), Edge("filter", "join"), Edge("auctions", "join")),
            ("auctions", "persons"),
        ),
        (
            source("auctions"),
            source("persons"),
            PlantOperator("filter", scaled(Usl(1, 0.01), 4, persons), noise=noise),
            PlantOperator(
                "join",
                scaled(Usl(1, 0.01), 18, auctions + persons),
                noise=noise,
                state_bytes_per_record=100,
                state_retention_s=3600,
            ),
        ),
        {"auctions": auctions, "persons": persons},
        ORIGIN,
    )


def q8(noise: float = 0.10) -> Plant:
    """Tumbling window join of auctions and persons; super-linear."""
    auctions, persons = 100e3, 60e3
    return Plant(
        "q8",
        Graph(
            ("auctions", "persons", "window_join"),
            (Edge("auctions", "window_join"), Edge("persons", "window_join")),
            ("auctions", "persons"),
        ),
        (
            source("auctions"),
            source("persons"),
            PlantOperator(
                "window_join",
                scaled(Power(1, 1.3), 10, auctions + persons, 10.2),
                noise=noise,
                state_bytes_per_record=100,
                state_retention_s=10,
            ),
        ),
        {"auctions": auctions, "persons": persons},
        ORIGIN,
    )


def video() -> Plant:
    """Video streaming: frames are decoded and stored."""
    names = ("frames", "decode", "store")
    curves = (Usl(60e3, 0.015), Usl(90e3, 0.01))
    return real("video", names, (Edge("frames", "decode"), Edge("decode", "store", 0.8)), curves)


def etl() -> Plant:
    """ETL: eight operators; two of three branches meet again."""
    names = ("events", "parse", "filter", "enrich", "dedupe", "merge", "aggregate", "store")
    edges = (
        Edge("events", "parse"), Edge("parse", "filter"), Edge("filter", "enrich", 0.6), Edge("filter", "dedupe", 0.9),
        Edge("enrich", "merge"), Edge("dedupe", "merge", 0.7), Edge("merge", "aggregate", 0.5),
        Edge("aggregate", "store", 0.2), Edge("enrich", "store", 0.1),
    )  # fmt: skip
    curves = (
        Usl(70e3, 0.01), Usl(150e3, 0.005), Usl(45e3, 0.02), Usl(60e3, 0.03), Usl(80e3, 0.015), Usl(50e3, 0.025),
        Usl(30e3, 0.01),
    )  # fmt: skip
    return real("etl", names, edges, curves)


def monitoring() -> Plant:
    """Monitoring: nine operators, three of them sources and three of them sinks."""
    names = ("metrics", "logs", "traces", "parse", "correlate", "detect", "alerts", "dashboards", "archive")
    edges = (
        Edge("logs", "parse"), Edge("metrics", "correlate"), Edge("parse", "correlate", 0.5),
        Edge("traces", "correlate", 0.3), Edge("correlate", "detect"), Edge("detect", "alerts", 0.05),
        Edge("correlate", "dashboards", 0.2), Edge("parse", "archive"), Edge("traces", "archive", 0.4),
    )  # fmt: skip
    curves = (
        Usl(65e3, 0.02), Usl(110e3, 0.03), Usl(85e3, 0.01), Usl(20e3, 0.01), Usl(40e3, 0.02), Usl(100e3, 0.015),
    )  # fmt: skip
    return real("monitoring", names, edges, curves)


def real(name: str, names: tuple[str, ...], edges: tuple[Edge, ...], curves: Sequence[Curve]) -> Plant:
    """Return a job like one of the paper's real ones: 3 % noise, 100K records/s per source and level."""
    sources = names[: len(names) - len(curves)]
    tuned = zip(names[len(sources) :], curves, strict=True)
    operators = (*map(source, sources), *(PlantOperator(one, curve, noise=0.03) for one, curve in tuned))
    return Plant(name, Graph(names, edges, sources), operators, dict.fromkeys(sources, 100e3), REAL)


JOBS: Mapping[str, Callable[[], Plant]] = {
    "wordcount": word_count,
    "q1": partial(single, "q1", "mapper", 700e3, Usl(1, 0.032), 25, 0.0126),
    "q2": partial(single, "q2", "filter", 900e3, Usl(1, 0.0396), 23, 0.0126),
    "q3": q3,
    "q5": partial(single, "q5", "window", 80e3, Usl(1, 0.01), 22, 0.08),
    "q8": q8,
    "video": video,
    "etl": etl,
    "monitoring": monitoring,
}
WITH_RULE: Mapping[str, Callable[[], Plant]] = {
    "wordcount": partial(word_count, 3.0),
    "q1": partial(single, "q1", "mapper", 700e3, Usl(1, 0.06), 25, 0.0126),
    "q2": partial(single, "q2", "filter", 900e3, Usl(1, 0.065), 23, 0.0126),
    "q3": partial(q3, 0.038),
    "q5": partial(single, "q5", "window", 80e3, Usl(1, 0.01), 22, 0.12),
    "q8": partial(q8, 0.33),
}
"""The queries with the noise, of Q1 and Q2 the curve, with which a DS2 that ignores single decreases makes the changes
of Table 4a."""
