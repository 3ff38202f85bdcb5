"""AuTraScale+'s jobs, whose latency first falls and then rises with tasks; the load's unit is 1000 records/s.

The curves of WordCount are fitted so that the TO solver returns the published (3, 4, 12, 10) in 4 iterations. The last
operator of Yahoo is limited from outside to 36.5K records/s (its Redis). Nexmark Q5 and Q11 are fitted to the published
(1, 18) and (1, 11) of Figure 7, and their latencies so that the targets of Table V need a few more tasks.

The papers' jobs have no source before their first operator; the wait of the exchange with our source (2 and 3.5 ms) is
subtracted from the fitted base latency.

Figure 11's backlogs of up to 16 million records in 6 to 10 minutes need more than twice the throughput of Figure 7's
Yahoo job, so the paper's store must be another one there: `yahoo-open` has a faster store without the limit, such that
40 % of the highest throughput is 30K records/s, and a little contention between tasks, which Figure 11 reports.

Figures 4 and 5 are of another WordCount: there one task of each operator processes 150K records/s, and four keep up
with 300K; in Figure 7 it takes 29 tasks for 350K. So `autrascale-cases` is a job of its own, fitted to Figure 5's first
two throughputs and to its latency at five tasks; everything else of both figures is predicted from that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from rheostat.engine.simulated.plant import Interference, LatencyLaw, Plant
from rheostat.lab.jobs.dragster import chain

ORIGIN = "AuTraScale+, curves fitted to Figures 5 and 7"

YAHOO = (("deserialize", 9.5, 0.02), ("filter", 19.0, 0.02), ("project", 60.0, 0.02), ("join", 60.0, 0.02))
YAHOO_LATENCY = LatencyLaw(base_s=0.0565, cap_s=0.22, buffer_records=50, timeout_s=0.025)


def yahoo_open() -> Plant:
    """Return the Yahoo job of Figure 11: no limit, a faster store, and contention between all tasks."""
    made = chain(
        "yahoo-open",
        (*YAHOO, ("store", 2.35, 0.008)),
        max_tasks=40,
        origin="AuTraScale+ Figure 11, set so that its hardest cell is just infeasible",
        latency=YAHOO_LATENCY,
        queueing=(20.0, 20.0, 20.0, 20.0, 7.5),
    )
    return replace(made, interference=Interference(per_slot=0.0007, reference_slots=40.0))


JOBS: Mapping[str, Callable[[], Plant]] = {
    "autrascale-wordcount": partial(
        chain,
        "autrascale-wordcount",
        (("read", 135.0, 0.05), ("flatmap", 110.0, 0.06), ("count", 44.0, 0.04), ("sink", 50.0, 0.04)),
        max_tasks=40,
        origin=ORIGIN,
        latency=LatencyLaw(base_s=0.01, cap_s=0.3, buffer_records=500, timeout_s=0.06),
        queueing=(60.0, 60.0, 90.0, 150.0),
    ),
    "autrascale-cases": partial(
        chain,
        "autrascale-cases",
        (("read", 400.0, 0.05), ("flatmap", 400.0, 0.05), ("count", 150.0, 0.2), ("sink", 400.0, 0.05)),
        max_tasks=40,
        origin="AuTraScale+, fitted to Figure 5",
        latency=LatencyLaw(base_s=0.03, cap_s=0.3, buffer_records=500, timeout_s=0.06),
        queueing=(60.0, 60.0, 90.0, 150.0),
        start_tasks=2,
    ),
    "yahoo": partial(
        chain,
        "yahoo",
        (*YAHOO, ("store", 1.03, 0.0006)),
        max_tasks=64,
        origin=ORIGIN,
        latency=YAHOO_LATENCY,
        queueing=(20.0, 20.0, 20.0, 20.0, 7.5),
        limits={"store": 36.5e3},
    ),
    "yahoo-open": yahoo_open,
    "autrascale-q5": partial(
        chain,
        "autrascale-q5",
        (("parse", 60.0, 0.02), ("window", 2.27, 0.02)),
        max_tasks=40,
        origin=ORIGIN,
        latency=LatencyLaw(base_s=0.03, cap_s=0.3, buffer_records=20, timeout_s=0.05),
        queueing=(10.0, 10.0),
    ),
    "autrascale-q11": partial(
        chain,
        "autrascale-q11",
        (("parse", 130.0, 0.02), ("session", 11.1, 0.02)),
        max_tasks=40,
        origin=ORIGIN,
        latency=LatencyLaw(base_s=0.03, cap_s=0.3, buffer_records=200, timeout_s=0.05),
        queueing=(50.0, 50.0),
    ),
}
