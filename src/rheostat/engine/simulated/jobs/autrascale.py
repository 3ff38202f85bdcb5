"""AuTraScale+'s WordCount and Yahoo jobs, with the latency law that falls and then rises with tasks.

Origin: CALIBRATION.md (curves with which the TO solver gives the published (3, 4, 12, 10) in 4 iterations);
unit 1000 records/s. Yahoo's last operator is capped from outside at 36.5K records/s (its Redis).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from rheostat.engine.simulated.jobs.dragster import chain
from rheostat.engine.simulated.plant import LatencyLaw, Plant

ORIGIN = "AuTraScale+ Figures 5 and 7, fitted in CALIBRATION.md"

JOBS: Mapping[str, Callable[[], Plant]] = {
    "autrascale-wordcount": partial(
        chain,
        "autrascale-wordcount",
        (("read", 135.0, 0.05), ("flatmap", 110.0, 0.06), ("count", 44.0, 0.04), ("sink", 50.0, 0.04)),
        max_tasks=40,
        origin=ORIGIN,
        latency=LatencyLaw(base_s=0.012, cap_s=0.3, buffer_records=500, timeout_s=0.06),
        queueing=(60.0, 60.0, 90.0, 150.0),
    ),
    "yahoo": partial(
        chain,
        "yahoo",
        (
            ("deserialize", 9.5, 0.02),
            ("filter", 19.0, 0.02),
            ("project", 60.0, 0.02),
            ("join", 60.0, 0.02),
            ("store", 1.03, 0.0006),
        ),
        max_tasks=64,
        origin=ORIGIN,
        latency=LatencyLaw(base_s=0.06, cap_s=0.22, buffer_records=50, timeout_s=0.025),
        queueing=(20.0, 20.0, 20.0, 20.0, 7.5),
        limits={"store": 36.5e3},
    ),
}
