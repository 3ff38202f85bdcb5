"""Dragster's WordCount and YSB chains; the load's unit is 1000 tuples/s.

WordCount and YSB have Amdahl curves (k tuples/s, sigma) fitted only to Dhalion's rows in the paper's Tables 2 and 3; 2
% capacity noise, 3 % noise of an observed capacity. WordCount: load 160.5 high, 90.3 low; YSB: 285.8, then 349.5. A
change costs 30 s of every 10-minute slot.

Figure 5 has Group, AsyncIO, Join and Window; the text gives only the means by number of operators. Their curves are
ours, such that Dhalion, which adds a task per slot, takes the published mean times (57 and 140 minutes); loads 132,
142, 176 and 223.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise

from rheostat.engine.simulated.curves import Usl
from rheostat.engine.simulated.plant import LatencyLaw, Metrics, Plant, PlantOperator, Restart
from rheostat.job.graph import Edge, Graph
from rheostat.lab.jobs.conttune import source

ORIGIN = "Dragster, curves fitted to Dhalion's rows in Tables 2 and 3"
FIGURE_5 = "Dragster Figure 5, curves fitted to Dhalion's mean minutes"


def chain(
    name: str,
    rows: tuple[tuple[str, float, float], ...],
    max_tasks: int = 10,
    origin: str = ORIGIN,
    latency: LatencyLaw | None = None,
    queueing: tuple[float, ...] = (),
    limits: Mapping[str, float] | None = None,
    start_tasks: int = 1,
) -> Plant:
    """Return a chain of operators (name, k tuples/s of one task, sigma) behind one source."""
    names = ("events", *(row[0] for row in rows))
    waits = queueing or (0.0,) * len(rows)
    operators = tuple(
        PlantOperator(
            operator,
            Usl(1e3 * rate, sigma),
            noise=0.02,
            max_tasks=max_tasks,
            queueing_records=wait,
            limit_per_s=(limits or {}).get(operator),
        )
        for (operator, rate, sigma), wait in zip(rows, waits, strict=True)
    )
    return Plant(
        name,
        Graph(names, tuple(Edge(a, b) for a, b in pairwise(names)), ("events",)),
        (source("events"), *operators),
        {"events": 1e3},
        origin,
        latency=latency or LatencyLaw(),
        restart=Restart(30, 0),
        metrics=Metrics(noise=0.03),
        start_tasks=start_tasks,
    )


JOBS: Mapping[str, Callable[[], Plant]] = {
    "dragster-group": partial(chain, "dragster-group", (("group", 30.0, 0.06),), origin=FIGURE_5),
    "dragster-asyncio": partial(chain, "dragster-asyncio", (("request", 25.0, 0.03),), origin=FIGURE_5),
    "dragster-join": partial(chain, "dragster-join", (("join", 45.0, 0.12),), origin=FIGURE_5),
    "dragster-window": partial(
        chain, "dragster-window", (("assign", 55.0, 0.09), ("aggregate", 33.0, 0.045)), origin=FIGURE_5
    ),
    "dragster-wordcount": partial(chain, "dragster-wordcount", (("map", 42.8, 0.158), ("shuffle", 29.6, 0.051))),
    "ysb": partial(
        chain,
        "ysb",
        (
            ("deserialize", 74.4, 0.121),
            ("filter", 75.6, 0.043),
            ("project", 77.2, 0.07),
            ("join", 115.1, 0.111),
            ("window_count", 77.6, 0.093),
            ("store", 152.5, 0.103),
        ),
    ),
}
