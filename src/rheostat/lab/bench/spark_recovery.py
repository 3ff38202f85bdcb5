"""How long does a query on real Spark take to catch up after a failure, and was that foreseen?

Executors and whole drivers are killed, one after another, under two loads; a driver is started again at once and goes
on from its checkpoint. Recovery is read from outside, from what the checkpoint says is done against what the source has
brought: from the kill until no more waits than before it. The prediction is the recovery model's, with the downtime
that earlier failures of the same kind showed: the first of each kind only teaches.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from rheostat.engine.spark.session.log4j import quiet
from rheostat.engine.testbed.loads import Constant
from rheostat.engine.testbed.schedule import Schedule
from rheostat.errors import RheostatError
from rheostat.lab.bench.measure import Measure
from rheostat.lab.experiment.processes import Child, kill_an_executor
from rheostat.lab.experiment.query_checkpoint import Outside
from rheostat.lab.experiment.trial import Progress
from rheostat.model.recovery import Course, implied_downtime_s, recovery_time_s

EXECUTORS, PARTITIONS, SLOT_PER_S, TRIGGER_S = 2, 8, 150.0, 1.0
LOADS = (0.5, 0.7)
"""As shares of what the executors can do."""
KINDS = ("executor", "driver")
WARM_S, CALM_S = 25.0, 15.0
"""Before the first failure, and between two, so much time passes without a backlog."""
STAYS_S = 4.0
"""Caught up is who has no more waiting than before for so long."""
LOOK_S = 0.2
PATIENCE_S = 180.0
LONG_S = 3600


@dataclass(frozen=True)
class Failure:
    """One kill, and what came of it."""

    kind: str
    load: float
    recovery_s: float
    predicted_s: float | None
    """What earlier failures of its kind let expect; None for the first."""
    downtime_s: float
    """The downtime that explains it."""

    @property
    def error(self) -> float | None:
        """Return by how much the prediction was wrong."""
        if self.predicted_s is None or self.recovery_s <= 0:
            return None
        return abs(self.predicted_s - self.recovery_s) / self.recovery_s


def recovery_on_spark(quick: bool, progress: Progress) -> list[Measure]:
    """Kill executors and drivers under two loads; print how well the recovery was foreseen."""
    kills = ((*KINDS, KINDS[0]),) if quick else (KINDS * 3, KINDS * 2)
    seen: list[Failure] = []
    for load, kinds in zip(LOADS, kills, strict=False):
        with TemporaryDirectory(prefix="rheostat-recovery-") as folder, _Job(Path(folder), load) as job:
            progress(f"a query at {load:.0%} load")
            job.calm(WARM_S)
            for kind in kinds:
                seen.append(_fail(job, kind, seen))
                told = seen[-1]
                foreseen = "" if told.predicted_s is None else f", foreseen {told.predicted_s:.1f} s"
                progress(f"{kind} killed at {load:.0%} load: recovered in {told.recovery_s:.1f} s{foreseen}")
    errors = [failure.error for failure in seen if failure.error is not None]
    note = "; ".join(
        f"{kind}: recovery {median(f.recovery_s for f in seen if f.kind == kind):.1f} s, "
        f"downtime {median(f.downtime_s for f in seen if f.kind == kind):.1f} s"
        for kind in KINDS
    )
    told_note = f"{len(errors)} failures foreseen, the worst {max(errors, default=float('nan')):.2f}; {note}"
    value = median(errors) if errors else float("nan")
    return [Measure("recovery", "error_spark", value, "share", "<= 0.2", "lower", told_note)]


def _fail(job: _Job, kind: str, seen: list[Failure]) -> Failure:
    job.calm(CALM_S)
    capacity = EXECUTORS * SLOT_PER_S
    course = Course.constant(job.rate_per_s)
    known = [failure.downtime_s for failure in seen if failure.kind == kind]
    predicted = recovery_time_s(capacity, course, TRIGGER_S, median(known)) if known else None
    usual, killed_s = job.most_waiting, time.time()
    job.kill(kind)
    recovery_s = job.recovered(killed_s, usual)
    return Failure(kind, job.load, recovery_s, predicted, implied_downtime_s(recovery_s, capacity, course, TRIGGER_S))


class _Job:
    """A driver in a process of its own, watched from outside."""

    def __init__(self, folder: Path, load: float) -> None:
        self.folder, self.load = folder, load
        self.rate_per_s = load * EXECUTORS * SLOT_PER_S
        self.schedule = Schedule(Constant(1.0), self.rate_per_s, LONG_S)
        self.most_waiting = 0.0
        self._outside = Outside(folder / "checkpoint")
        self._driver = Child(drive, str(folder), self.schedule)

    def __enter__(self) -> _Job:
        return self

    def __exit__(self, *_: object) -> None:
        self._driver.kill()

    def calm(self, seconds: float) -> None:
        """Wait until the job has kept up for a while; remember how much waited meanwhile."""
        deadline_s, since_s, most = time.time() + PATIENCE_S, time.time(), 0.0
        while time.time() - since_s < seconds:
            if time.time() > deadline_s:
                raise RheostatError(f"the job did not keep up with {self.load:.0%} load for {seconds:g} s")
            waits = self.waiting()
            if waits is None or waits > 4 * self.rate_per_s * TRIGGER_S:
                since_s, most = time.time(), 0.0
            else:
                most = max(most, waits)
            time.sleep(LOOK_S)
        self.most_waiting = most

    def kill(self, kind: str) -> None:
        """Kill one executor, or the driver, which is started again."""
        if kind == "executor":
            if not kill_an_executor(self._driver.pid):
                raise RheostatError("no executor was found to be killed")
            return
        self._driver.kill()
        self._driver = Child(drive, str(self.folder), self.schedule)

    def recovered(self, killed_s: float, usual: float) -> float:
        """Wait until no more waits than before, for a while; return when that began, since the kill."""
        fine_s: float | None = killed_s
        while (now_s := time.time()) < killed_s + PATIENCE_S:
            waits = self.waiting()
            fine = waits is not None and waits <= usual
            fine_s = None if not fine else now_s if fine_s is None else fine_s
            if fine_s is not None and now_s - fine_s >= STAYS_S + (STAYS_S if fine_s == killed_s else 0.0):
                return fine_s - killed_s
            time.sleep(LOOK_S)
        raise RheostatError(f"the job did not catch up within {PATIENCE_S:g} s at {self.load:.0%} load")

    def waiting(self) -> float | None:
        """Return the records without a result: what the source has brought less what the checkpoint says is done."""
        with suppress(OSError, ValueError, IndexError):
            start_s, last = self._outside.start_s(), self._outside.committed()
            if start_s is None or last < 0:
                return None
            passed_s = time.time() - start_s
            whole = int(passed_s)
            came = self.schedule.due(whole) + (passed_s - whole) * self.rate_per_s
            return max(0.0, came - self.schedule.due(self._outside.read_until(last)))
        return None


def drive(folder: str, schedule: Schedule) -> None:
    """Run the query until this process is killed."""
    from rheostat.engine.spark.session.session import session
    from rheostat.engine.testbed.source import stream
    from rheostat.lab.workload.pacing import paced

    place = Path(folder)
    conf = {**quiet(place), "spark.sql.shuffle.partitions": "2", "spark.sql.session.timeZone": "UTC"}
    spark = session("rheostat-recovery", min_executors=EXECUTORS, max_executors=EXECUTORS, conf=conf)
    events = paced(stream(spark, schedule, partitions=PARTITIONS), SLOT_PER_S, tasks=PARTITIONS)
    query = (
        events.writeStream.format("noop")
        .option("checkpointLocation", str(place / "checkpoint"))
        .trigger(processingTime=f"{TRIGGER_S:g} seconds")
        .start()
    )
    query.awaitTermination()
