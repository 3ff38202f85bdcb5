"""The recovery time of a query on real Spark after a failure, and the error of its prediction.

Executors and drivers are killed one after another under two loads; a driver restarts at once from its checkpoint.
Recovery is measured from outside, by committed offsets against the source's schedule: from the kill until the backlog
is back at its baseline. The prediction comes from the recovery model, with the downtimes of earlier failures of the
same kind; the first failure of each kind has none.
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
from rheostat.lab.experiment.trial import Progress
from rheostat.lab.query_checkpoint import CheckpointReader
from rheostat.model.recovery import Course, implied_downtime_s, recovery_time_s

EXECUTORS, PARTITIONS, SLOT_PER_S, TRIGGER_S = 2, 8, 150.0, 1.0
LOADS = (0.5, 0.7)
"""Loads as shares of the executors' capacity."""
KINDS = ("executor", "driver")
WARM_S, CALM_S = 25.0, 15.0
"""Seconds without a backlog before the first failure, and between two failures."""
STAYS_S = 4.0
"""Seconds the backlog must stay at its baseline to count as caught up."""
POLL_S = 0.2
"""Seconds between two reads of the checkpoint."""
PATIENCE_S = 180.0
"""Seconds after which a job counts as stuck."""
LONG_S = 3600
"""Seconds of the load, longer than any run."""


@dataclass(frozen=True)
class Failure:
    """One kill and its recovery."""

    kind: str
    load: float
    recovery_s: float
    predicted_s: float | None
    """Prediction from earlier failures of its kind; None for the first one."""
    downtime_s: float
    """The downtime that explains the recovery time."""

    @property
    def error(self) -> float | None:
        """Relative error of the prediction; None without one."""
        if self.predicted_s is None or self.recovery_s <= 0:
            return None
        return abs(self.predicted_s - self.recovery_s) / self.recovery_s


def recovery_on_spark(quick: bool, progress: Progress) -> list[Measure]:
    """Kill executors and drivers under two loads, and measure the error of the predicted recovery times."""
    kills = ((*KINDS, KINDS[0]),) if quick else (KINDS * 3, KINDS * 2)
    failures: list[Failure] = []
    for load, kinds in zip(LOADS, kills, strict=False):
        with TemporaryDirectory(prefix="rheostat-recovery-") as folder, _Job(Path(folder), load) as job:
            progress(f"a query at {load:.0%} load")
            job.calm(WARM_S)
            for kind in kinds:
                failure = _fail(job, kind, failures)
                failures.append(failure)
                predicted = "" if failure.predicted_s is None else f", predicted {failure.predicted_s:.1f} s"
                progress(f"{kind} killed at {load:.0%} load: recovered in {failure.recovery_s:.1f} s{predicted}")
    errors = [failure.error for failure in failures if failure.error is not None]
    note = "; ".join(
        f"{kind}: recovery {median(f.recovery_s for f in failures if f.kind == kind):.1f} s, "
        f"downtime {median(f.downtime_s for f in failures if f.kind == kind):.1f} s"
        for kind in KINDS
    )
    note = f"{len(errors)} predictions, the worst {max(errors, default=float('nan')):.2f}; {note}"
    value = median(errors) if errors else float("nan")
    return [Measure("recovery", "error_spark", value, "share", "<= 0.2", "lower", note)]


def _fail(job: _Job, kind: str, earlier: list[Failure]) -> Failure:
    job.calm(CALM_S)
    capacity = EXECUTORS * SLOT_PER_S
    course = Course.constant(job.rate_per_s)
    downtimes_s = [failure.downtime_s for failure in earlier if failure.kind == kind]
    predicted = recovery_time_s(capacity, course, TRIGGER_S, median(downtimes_s)) if downtimes_s else None
    baseline, killed_s = job.baseline, time.time()
    job.kill(kind)
    recovery_s = job.await_recovery_s(killed_s, baseline)
    return Failure(kind, job.load, recovery_s, predicted, implied_downtime_s(recovery_s, capacity, course, TRIGGER_S))


class _Job:
    """A driver in its own process, and its backlog."""

    def __init__(self, folder: Path, load: float) -> None:
        self.folder, self.load = folder, load
        self.rate_per_s = load * EXECUTORS * SLOT_PER_S
        self.schedule = Schedule(Constant(1.0), self.rate_per_s, LONG_S)
        self.baseline = 0.0
        self._checkpoint = CheckpointReader(folder / "checkpoint")
        self._driver = Child(drive, str(folder), self.schedule)

    def __enter__(self) -> _Job:
        return self

    def __exit__(self, *_: object) -> None:
        self._driver.kill()

    def calm(self, seconds: float) -> None:
        """Wait until the job has kept up for these seconds; note its largest backlog meanwhile as the baseline."""
        deadline_s, since_s, most = time.time() + PATIENCE_S, time.time(), 0.0
        while time.time() - since_s < seconds:
            if time.time() > deadline_s:
                raise RheostatError(f"the job did not keep up with {self.load:.0%} load for {seconds:g} s")
            waits = self.waiting()
            if waits is None or waits > 4 * self.rate_per_s * TRIGGER_S:
                since_s, most = time.time(), 0.0
            else:
                most = max(most, waits)
            time.sleep(POLL_S)
        self.baseline = most

    def kill(self, kind: str) -> None:
        """Kill one executor, or the driver, which is restarted."""
        if kind == "executor":
            if not kill_an_executor(self._driver.pid):
                raise RheostatError("the driver has no executor process to kill")
            return
        self._driver.kill()
        self._driver = Child(drive, str(self.folder), self.schedule)

    def await_recovery_s(self, killed_s: float, baseline: float) -> float:
        """Wait until the backlog stays at its baseline; return the seconds from the kill until then."""
        fine_s: float | None = killed_s
        while (now_s := time.time()) < killed_s + PATIENCE_S:
            waits = self.waiting()
            fine = waits is not None and waits <= baseline
            fine_s = None if not fine else now_s if fine_s is None else fine_s
            if fine_s is not None and now_s - fine_s >= STAYS_S + (STAYS_S if fine_s == killed_s else 0.0):
                return fine_s - killed_s
            time.sleep(POLL_S)
        raise RheostatError(f"the job did not catch up within {PATIENCE_S:g} s at {self.load:.0%} load")

    def waiting(self) -> float | None:
        """Return the records without a result, by the schedule and the committed offsets; None if unreadable."""
        with suppress(OSError, ValueError, IndexError):
            start_s, last = self._checkpoint.start_s(), self._checkpoint.committed()
            if start_s is None or last < 0:
                return None
            passed_s = time.time() - start_s
            whole = int(passed_s)
            came = self.schedule.due(whole) + (passed_s - whole) * self.rate_per_s
            return max(0.0, came - self.schedule.due(self._checkpoint.read_until(last)))
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
