"""Drills: workers that are lost on purpose on a testbed before go-live, and the downtimes that this shows.

A drill's results are measurements in the journal, as those of a profile are. A controller that starts on this journal
knows them: the recovery floor and `anticipate` learn a drill as they learn a failure (`model/downtime.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from rheostat.engine.simulated.draws import generator
from rheostat.engine.simulated.fleet import Fleet
from rheostat.engine.simulated.plant import Plant
from rheostat.engine.testbed.simulated import PhaseLoad, find_problem
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Measurement, Phase, Trial
from rheostat.job.frozen import check_number, check_whole
from rheostat.job.graph import JobSpec
from rheostat.model.downtime import DRILL, Downtimes, Kind, drilled_kind, fold
from rheostat.ports import Journal

WATCH_S = 5
"""Seconds between two looks at a job that has lost a worker."""
PATIENCE_S = 3600.0
"""Seconds after which a failure that no window has shown counts as none."""
MOMENT = 7919
"""Purpose of the generator that draws the moments of the failures."""


@dataclass(frozen=True, slots=True)
class Drill:
    """How often a worker is lost, at which size and load."""

    size: int
    """Tasks of every operator."""
    rate_per_s: float
    failures: int = 3
    settle_s: float = 300.0
    """Seconds before a failure in which the job is left alone."""

    def __post_init__(self) -> None:
        check_whole("size of a drill", self.size, 1)
        check_whole("failures of a drill", self.failures, 1)
        check_number("rate_per_s of a drill", self.rate_per_s, least=1e-9)
        check_number("settle_s of a drill", self.settle_s, least=1.0)


def read_drills(journal: Journal, job: str) -> list[Measurement]:
    """Return the measurements of a job's earlier drills that show a downtime."""
    records = (entry.record for entry in journal.read(job, kinds=("measurement",)))
    return [m for m in records if isinstance(m, Measurement) and drilled_kind(m) and not m.problem]


def learn_drills(measurements: Iterable[Measurement]) -> Downtimes:
    """Return the downtimes of a job that has been drilled and has never failed."""
    known = Downtimes.unknown()
    for measurement in measurements:
        known = fold(known, measurement, 0.0)
    return known


def drill_trial(kind: Kind, number: int, drill: Drill, spec: JobSpec, seconds: float) -> Trial:
    """Return the trial that names the measurement of one failure."""
    sources = spec.graph.sources
    rates = dict.fromkeys(sources, drill.rate_per_s / len(sources))
    allocation = Allocation(dict.fromkeys(spec.tunable_names, drill.size))
    return Trial(f"{DRILL} {kind} {number}", allocation, (Phase(max(seconds, 1.0), rates, observed=True),))


def drill_simulated(plant: Plant, drill: Drill, seed: int) -> Iterator[Measurement]:
    """Fail workers of a simulated job one after another; yield a measurement with the downtime of each failure.

    The downtime is what the loop would have learned from the same windows. Failures fall anywhere between two
    checkpoints.
    """
    spec, rng = plant.spec(), generator(seed, MOMENT, 0)
    trial = drill_trial(Kind.RESTART, 1, drill, spec, drill.settle_s)
    if problem := find_problem(plant, trial):
        yield Measurement(trial, None, 0.0, 0.0, problem)
        return
    endless = replace(trial.phases[0], seconds=1e12)
    fleet = Fleet(plant, [PhaseLoad((endless,), spec.graph.sources)], [seed], start=[trial.allocation])
    engine, known, begun_s = fleet.engine(0), Downtimes.unknown(), 0
    interval_s = plant.checkpoint_interval_s
    for number in range(1, drill.failures + 1):
        fleet.advance(round(drill.settle_s + rng.uniform(0.0, interval_s)))
        failed_s, before, window = fleet.now, len(known.restarts), None
        fleet.fail(0)
        while len(known.restarts) == before and fleet.now - failed_s < PATIENCE_S:
            fleet.advance(WATCH_S)
            window = engine.observe()
            known = fold(known, window, interval_s)
        seconds = float(fleet.now - begun_s)
        trial = drill_trial(Kind.RESTART, number, drill, spec, seconds)
        cost = trial.allocation.slots * seconds
        if window is None or len(known.restarts) == before:
            why = f"no window has shown a failure in {PATIENCE_S:g} s: the loss of one worker does not stop this job"
            yield Measurement(trial, None, seconds, cost, why)
            return
        window = replace(window, downtime_s=known.restarts[-1].downtime_s)
        yield Measurement(trial, window, seconds, cost)
        begun_s = fleet.now
