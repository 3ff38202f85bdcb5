"""Phoebe's two jobs, with one scale-out for the whole job.

The parameters of Top Speed are fitted to the artifact's `topspeed_profile.csv` (capacity 6.9K + 15.9K per worker) and
to its recorded 6-hour runs: kappa scales that capacity, because the profile overstates the capacity after a failure.
The Yahoo benchmark has no profile of its own: it gets Top Speed's capacity with kappa = 1, chosen by its recorded runs,
and failures, changes and display lag fitted to them. Metrics lag by more than a minute (a one-minute scrape); source
offsets do not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from rheostat.engine.simulated.curves import Linear
from rheostat.engine.simulated.plant import Failure, LatencyLaw, Metrics, Plant, PlantOperator, Restart
from rheostat.job.graph import Graph

CPU_GAIN = 0.42
"""CPU share at full useful time: chosen by the changes of the paper's reactive runs. Nothing else depends on it."""
ORIGIN = "Phoebe, fitted to its artifact (topspeed_profile, recorded runs)"
BASE_PER_S, WORKER_PER_S = 6.9e3, 15.9e3
FAILURES_S = tuple(1200.0 + 2743.0 * k for k in range(8))
"""Moments of the failures in the recorded runs: a 60 s network delay on one worker."""


def scale_out(name: str, kappa: float, failure: Failure, restart: Restart, display_lag_s: float) -> Plant:
    """Return a job whose only operator is the whole job."""
    return Plant(
        name,
        Graph(("job",), (), ("job",)),
        (
            PlantOperator(
                "job",
                Linear(kappa * WORKER_PER_S, kappa * BASE_PER_S),
                max_tasks=24,
                queueing_records=2000.0,
                state_bytes_per_record=50.0,
                state_retention_s=10.0,
            ),
        ),
        {"job": 1.0},
        ORIGIN,
        latency=LatencyLaw(base_s=1.0, cap_s=5.0),
        restart=restart,
        failure=failure,
        metrics=Metrics(display_lag_s=display_lag_s),
        cpu_gain=CPU_GAIN,
        start_tasks=12,
    )


def top_speed(kappa: float = 0.8) -> Plant:
    """Top Speed Windowing; kappa = 1 is the profile-only plant."""
    failure = Failure(detected_after_s=20, resumed_after_s=65, resumed_sd_s=8, replay_s=25)
    return scale_out("tsw", kappa, failure, Restart(37, 12), 65)


def ysb() -> Plant:
    """The Yahoo streaming benchmark as one scale-out."""
    failure = Failure(detected_after_s=28, resumed_after_s=65, resumed_sd_s=8, replay_s=35)
    return scale_out("phoebe-ysb", 1.0, failure, Restart(27, 8), 75)


JOBS: Mapping[str, Callable[[], Plant]] = {"tsw": partial(top_speed), "phoebe-ysb": ysb}
