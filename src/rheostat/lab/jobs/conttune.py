"""ContTune's six queries (VLDB 2023, section 7.1), with curves that reproduce its DS2 row and Table 5.

The curves are fitted to the paper's Table 4a (DS2) and Table 5, with Table 3's unit rates W_u.
Each tuned operator's capacity is scaled so that at p10 tasks (Table 5) it is 10.15 W_u (Q8: 10.2), in
records of its own input. Sources are not tuned; sinks are chained to the operator before them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from rheostat.engine.simulated.curves import Curve, Power, Usl
from rheostat.engine.simulated.plant import Plant, PlantOperator
from rheostat.job.graph import Edge, Graph

ORIGIN = "ContTune, curves fitted to Tables 3, 4a and 5"
TOP = 10.15
"""Capacity at p10 in units of W_u: the highest level plus 1.5 %."""


def scaled(curve: Power | Usl, p10: int, unit_per_s: float, top: float = TOP) -> Curve:
    """Return the curve with the rate that makes its capacity at p10 tasks `top` units."""
    return replace(curve, rate_per_s=top * unit_per_s / replace(curve, rate_per_s=1.0).capacity_per_s(p10))


def source(name: str) -> PlantOperator:
    """Return a source with unlimited capacity that is not tuned."""
    return PlantOperator(name, pinned_tasks=1)


def word_count() -> Plant:
    """Splitter and count; a line has ten words."""
    unit, words = 100e3, 10.0
    return Plant(
        "wordcount",
        Graph(
            ("lines", "splitter", "count"), (Edge("lines", "splitter"), Edge("splitter", "count", words)), ("lines",)
        ),
        (
            source("lines"),
            PlantOperator("splitter", scaled(Usl(1, 0.02), 13, unit), noise=0.035),
            PlantOperator(
                "count",
                scaled(Usl(1, 0.015), 6, unit * words),
                noise=0.02,
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


def q3() -> Plant:
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
            PlantOperator("filter", scaled(Usl(1, 0.01), 4, persons), noise=0.0126),
            PlantOperator(
                "join",
                scaled(Usl(1, 0.01), 18, auctions + persons),
                noise=0.0126,
                state_bytes_per_record=100,
                state_retention_s=3600,
            ),
        ),
        {"auctions": auctions, "persons": persons},
        ORIGIN,
    )


def q8() -> Plant:
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
                noise=0.10,
                state_bytes_per_record=100,
                state_retention_s=10,
            ),
        ),
        {"auctions": auctions, "persons": persons},
        ORIGIN,
    )


JOBS: Mapping[str, Callable[[], Plant]] = {
    "wordcount": word_count,
    "q1": partial(single, "q1", "mapper", 700e3, Usl(1, 0.032), 25, 0.0126),
    "q2": partial(single, "q2", "filter", 900e3, Usl(1, 0.0396), 23, 0.0126),
    "q3": q3,
    "q5": partial(single, "q5", "window", 80e3, Usl(1, 0.01), 22, 0.08),
    "q8": q8,
}
