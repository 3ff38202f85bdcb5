"""The simulator against Phoebe's recorded runs.

The recordings are six-hour runs of Top Speed Windowing at fixed scale-outs with eight failures; the plant is `tsw` of
`lab/jobs/phoebe.py` under the recorded load. Recorded metrics come from a one-minute scrape, so the simulated ones are
displayed in the same way: a rate is the mean over one scrape of counters that are up to half a minute old, a latency is
the mean over one minute. "Around a failure" is from one minute before it to six minutes after it. Recovery is read as
in the paper, from the displayed latency: from the failure until it is below 2 s again for a minute.
"""

from __future__ import annotations

from rheostat.lab.bench.measure import Measure
from rheostat.lab.data import data_folder
from rheostat.lab.experiment.trial import Progress
from rheostat.lab.papers.phoebe.recordings import (
    AFTER_S,
    BEFORE_S,
    recorded,
    recovery_errors,
    simulated,
    throughput_errors,
)


def fidelity(quick: bool, progress: Progress) -> list[Measure]:
    """Compare the simulator with Phoebe's recorded runs at 12, 24 and 4 workers."""
    folder = data_folder()
    seeds = 4 if quick else 16
    measures: list[Measure] = []
    errors: dict[str, list[float]] = {"throughput": [], "recovery": []}
    for workers in (12, 24, 4):
        run = recorded(folder, workers)
        for kappa, plant in ((0.8, "fitted plant"), (1.0, "profile only")):
            progress(f"{workers} workers, {plant}")
            simulation = simulated(folder, workers, kappa, seeds)
            throughput = throughput_errors(run, simulation, BEFORE_S, AFTER_S)
            recovery, free_s = recovery_errors(run, simulation)
            strict = throughput_errors(run, simulation, 0, 300)
            note = f"{plant}, {workers} workers; only the five minutes after a failure: {strict:.3f}"
            suffix = f"{workers}" if kappa < 1 else f"{workers}_profile_only"
            measures.append(Measure("fidelity", f"throughput_error_{suffix}", throughput, "share", "", "lower", note))
            note = f"{plant}, {workers} workers; without the display's delay recovery takes {free_s:.0f} s"
            measures.append(Measure("fidelity", f"recovery_error_{suffix}", recovery, "share", "", "lower", note))
            if kappa < 1 and workers > 4:
                errors["throughput"].append(throughput)
                errors["recovery"].append(recovery)
    for what, goal in (("throughput", "<= 0.05"), ("recovery", "<= 0.10")):
        note = "the worse of the fixed 12- and 24-worker runs"
        measures.insert(0, Measure("fidelity", f"phoebe_{what}_error", max(errors[what]), "share", goal, "lower", note))
    return measures
