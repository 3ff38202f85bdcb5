"""One soak: a job under a restless policy, with faults at random moments, until its time is over.

The first half has every kind of fault. In the second half no driver is killed, so that its memory can be watched. A job
has come back when a finished batch has read every record that was due one second after the fault.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Protocol

from rheostat.errors import EngineError
from rheostat.lab.experiment.processes import Child
from rheostat.lab.experiment.trial import Progress
from rheostat.lab.soak.changes import Changes, count_changes, journal_mb, raise_failure
from rheostat.lab.soak.faults import DEADLY, Fault, Kind, draw_faults
from rheostat.lab.soak.memory import Trend, longest_life, memory_trend, read_heaps
from rheostat.lab.soak.supervisor import Supervisor

RETURN_S = 180.0
"""Seconds in which a job must come back: a lease of 13 to 16 s, the start of Spark, a repair, and a batch. On two cores
shared with other work (load 12 to 25) 59 to 125 s were seen after a kill of a driver or its JVM."""
POLL_S = 0.25
"""Seconds between two looks at the job."""
REPORT_S = 60.0
"""Seconds between two messages while nothing happens."""


class SoakedJob(Protocol):
    """A job that counts by key, with everything outside its driver."""

    job: str
    """Its name in the journal."""
    name: str
    """Its mode, in messages."""
    kinds: tuple[Kind, ...]
    """What can go wrong with it."""

    def close(self) -> None:
        """End what the job has started outside its driver."""

    def start_driver(self, log_file: Path) -> Child:
        """Start a driver in its own process."""

    def records_due(self) -> int:
        """Return the records that have come so far."""

    def records_finished(self) -> int:
        """Return the records that finished batches have read."""

    def fold(self) -> None:
        """Take in new results."""

    def compare(self, end_driver: Callable[[], None]) -> tuple[int, int]:
        """End the job, and return the keys whose last count is wrong, and the records."""


@dataclass(frozen=True)
class Soak:
    """The result of a soak."""

    minutes: float
    faults: Counter[Kind]
    came_back: int
    slowest_s: float
    """Longest time to come back."""
    keys_wrong: int
    records: int
    changes: Changes
    drivers: int
    ended_alone: int
    """Drivers that ended without a fault that ends them."""
    python: Trend | None
    jvm: Trend | None
    heap: Trend | None
    """Live objects in the heap of the driver's JVM."""
    heap_text: str
    """Sizes of the heap and of what is not the heap, at the first and the last collection."""
    journal_mb: float


def run_soak(open_job: Callable[[Path, int], SoakedJob], minutes: float, seed: int, progress: Progress) -> Soak:
    """Run a soak; where something was wrong, its folder with journal, checkpoint and logs is kept."""
    with ExitStack() as opened:
        place = opened.enter_context(_Place(progress))
        job = open_job(place.folder, seed)
        opened.callback(job.close)
        supervisor = Supervisor(job.start_driver, place.folder)
        opened.callback(supervisor.kill)
        running = _Running(job, supervisor, progress)
        running.start()
        running.disturb(draw_faults(seed, job.kinds), minutes * 30)
        calm = [kind for kind in job.kinds if kind not in DEADLY]
        # From here on, so that a late return does not shorten the time without a kill.
        running.disturb(draw_faults(seed, calm), running.passed_s + minutes * 30)
        passed_s = running.passed_s
        wrong, records = job.compare(supervisor.end)
        journal, life = place.folder / "journal.db", longest_life(supervisor.lives)
        at_s = [sample.at_s for sample in life]
        heaps = longest_life(read_heaps(place.folder))
        soak = Soak(
            minutes=passed_s / 60,
            faults=Counter(running.faults),
            came_back=len(running.returns_s),
            slowest_s=max(running.returns_s, default=0.0),
            keys_wrong=wrong,
            records=records,
            changes=count_changes(journal, job.job),
            drivers=supervisor.drivers,
            ended_alone=supervisor.ended_alone,
            python=memory_trend(at_s, [sample.python_mb for sample in life]),
            jvm=memory_trend(at_s, [sample.jvm_mb for sample in life]),
            heap=memory_trend([heap.at_s for heap in heaps], [heap.live_mb for heap in heaps]),
            heap_text=" -> ".join(str(heap) for heap in (*heaps[:1], *heaps[-1:])),
            journal_mb=journal_mb(journal),
        )
        place.keep = bool(wrong or soak.came_back < len(running.faults) or soak.ended_alone)
        raise_failure(journal, job.job)
        return soak


class _Place:
    """The folder of a soak, deleted at its end unless it is to be kept."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.folder, self.keep = Path(mkdtemp(prefix="rheostat-soak-")), False

    def __enter__(self) -> _Place:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if not self.keep and (kind is None or not issubclass(kind, Exception)):
            shutil.rmtree(self.folder, ignore_errors=True)
            return
        shutil.rmtree(self.folder / "tmp", ignore_errors=True)
        self._progress(f"journal, checkpoint and logs of the drivers are kept in {self.folder}")


class _Running:
    """A soak while it runs."""

    def __init__(self, job: SoakedJob, supervisor: Supervisor, progress: Progress) -> None:
        self._job, self._supervisor, self._progress = job, supervisor, progress
        self._began_s = self._reported_s = time.monotonic()
        self._started, self._lost = False, False
        self.faults: list[Kind] = []
        self.returns_s: list[float] = []
        """Seconds from each fault to the return of the job, where it came back in time."""

    @property
    def passed_s(self) -> float:
        """Seconds since the first finished batch."""
        return time.monotonic() - self._began_s

    def start(self) -> None:
        """Wait for the first finished batch."""
        if not self._wait(lambda: self._job.records_finished() > 0, RETURN_S):
            raise EngineError(f"the job of the soak did not finish a batch within {RETURN_S:g} s")
        self._began_s, self._started = time.monotonic(), True
        self._say("the first batch is finished")

    def disturb(self, faults: Iterator[Fault], until_s: float) -> None:
        """Let faults happen, each after the job has come back from the one before, until a moment of the soak."""
        for fault in faults:
            self._wait(lambda: False, min(fault.after_s, until_s - self.passed_s), sample=True)
            if self._lost or self.passed_s >= until_s:
                return
            if self._supervisor.strike(fault):
                self.faults.append(fault.kind)
                self._await_return(fault)
            else:
                self._say(f"{fault}: there is no process for it now")

    def _await_return(self, fault: Fault) -> None:
        struck_s = time.monotonic()
        survives = fault.kind not in DEADLY
        # Later than everything that a batch from before the fault can have read.
        self._wait(lambda: False, 1.0, sample=survives)
        due = self._job.records_due()

        def back() -> bool:
            return self._job.records_finished() >= due

        if self._wait(back, RETURN_S, sample=survives):
            self.returns_s.append(time.monotonic() - struck_s)
            self._say(f"{fault}: back after {self.returns_s[-1]:.1f} s")
            return
        self._say(f"{fault}: not back after {RETURN_S:g} s; the driver is replaced")
        self._supervisor.restart()
        if not self._wait(back, RETURN_S):
            self._lost = True
            self._say("not back with another driver either: the soak ends early")

    def _wait(self, true: Callable[[], bool], at_most_s: float, *, sample: bool = False) -> bool:
        """Wait until something is true, and look after the driver meanwhile; return whether it came in time."""
        deadline_s = time.monotonic() + at_most_s
        while not true():
            if time.monotonic() >= deadline_s:
                return False
            self._supervisor.look(sample=sample)
            self._job.fold()
            if time.monotonic() - self._reported_s > REPORT_S:
                self._say("running" if self._started else "starting")
            time.sleep(min(POLL_S, max(0.0, deadline_s - time.monotonic())))
        return True

    def _say(self, what: str) -> None:
        self._reported_s = time.monotonic()
        counts = f"{len(self.faults)} faults, {len(self.returns_s)} returns, {self._supervisor.drivers} drivers"
        self._progress(f"{self._job.name}, minute {self.passed_s / 60:.1f}: {what} ({counts})")
