"""The error of predicted recovery times, and missed recovery-time objectives, on Phoebe's two experiments.

A prediction is that of our policy in its last step before a failure, so it knows neither the future load nor the drawn
downtime. Downtimes are learned from earlier failures.
"""

from __future__ import annotations

from functools import partial

from rheostat.lab.bench.measure import Measure
from rheostat.lab.data import data_folder
from rheostat.lab.experiment.trial import Progress
from rheostat.policy.phoebe.anticipate import Anticipate
from rheostat.policy.phoebe.policy import Phoebe

BENCH = "recovery"


def recovery(quick: bool, progress: Progress) -> list[Measure]:
    """Run both experiments with our policy, and with 24 fixed workers, which meet every feasible objective."""
    from rheostat.lab.papers.phoebe import measures, paper
    from rheostat.lab.papers.phoebe.play import Method, play
    from rheostat.lab.papers.phoebe.runs import CONFIDENCE, Found, Size, methods

    folder, size = data_folder(), Size(3 if quick else 12, False)
    ours = next(method for group in methods(size) for method in group if method.name == paper.OURS)
    compared = [Method(paper.S24, None, 24), ours]
    rows: list[Measure] = []
    late = feasible = 0
    runs = {}
    for name in paper.EXPERIMENTS:
        progress(f"{paper.TITLES[name]}, {size.seeds} seeds")
        runs[name] = play(name, folder, compared, range(size.seeds))
    everything = Found(size, folder, runs, {})
    for name in paper.EXPERIMENTS:
        off = measures.errors(runs[name][paper.OURS], measures.took, measures.predicted)
        floor = measures.unpredictable(everything, name, paper.OURS)
        note = f"median absolute error per failure, {size.seeds} seeds; of all {off.single:.3f}; with full knowledge "
        note += f"except of the downtimes: {floor.median_run:.3f} and {floor.single:.3f}"
        rows.append(Measure(BENCH, f"error_{name}", off.median_run, "share", "<= 0.05", "lower", note))
        each = measures.missed(runs[name], paper.OURS)
        late, feasible = late + each.missed, feasible + each.failures - each.infeasible
    note = f"{late} of {feasible} failures that 24 workers recover from in time; the objective is {CONFIDENCE:.0%}"
    goal = f"<= {1 - CONFIDENCE:.2g}"
    rows.append(Measure(BENCH, "missed_targets", late / max(feasible, 1), "share", goal, "lower", note))
    progress("decisions")
    phoebe = Method(paper.PHOEBE, partial(Phoebe, target_s=paper.TARGET_S))
    timed = {
        Anticipate.name: runs[paper.TSW][paper.OURS],
        Phoebe.name: play(paper.TSW, folder, [phoebe], [0])[phoebe.name],
    }
    for name, timings in timed.items():
        ms = sum(run.decision_ms for run in timings) / len(timings)
        note = "mean over all steps, with forecast and learning"
        rows.append(Measure(BENCH, f"ms_{name}", ms, "ms", "<= 100", "lower", note))
    return rows
