"""One run of the sight bench: a load with known counts into a job with a known pace, and a scaler with its defaults."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from rheostat.errors import EngineError
from rheostat.kafka.broker import Broker
from rheostat.kafka.load import start_load
from rheostat.lab.experiment.processes import Child, executors_below
from rheostat.lab.experiment.trial import Progress
from rheostat.lab.sight.comparison import executor_s, over_lag_s
from rheostat.lab.sight.drops import FileDrops
from rheostat.lab.sight.job import PARTITIONS, TOPIC, VALUE, drive
from rheostat.lab.sight.place import Place, note, read_lines
from rheostat.lab.sight.scenario import WARM_UP_S, Scenario
from rheostat.lab.sight.truth import Truth
from rheostat.lab.sight.windows import Window, read_windows

START_S = 180.0
"""Seconds for the job to start and to be attached, and then to finish the warm-up."""
LATE_S = 15.0
"""Lag above which a second counts as late."""
REPORT_S = 20.0
"""Seconds between two messages."""
SAMPLE_S = 2.0
"""Seconds between two counts of the executors; one costs 10 ms of a core."""
POLL_S = 0.25


@dataclass(frozen=True)
class Recording:
    """What a run leaves behind."""

    start_s: float
    """When the load began."""
    end_s: float
    truth: Truth
    windows: tuple[Window, ...]
    """Windows from the start of the load to its end."""
    executor_s: float
    late_s: int
    """Seconds with a true lag above `LATE_S`."""
    repeated: int
    """Records whose task was repeated."""


def run_scenario(scenario: Scenario, progress: Progress) -> Recording:
    """Play a scenario to a job; where that fails, the folder with its journal and logs is kept."""
    place = Place(Path(mkdtemp(prefix="rheostat-sight-")))
    try:
        place.work.mkdir()
        place.drops.mkdir()
        with ExitStack() as opened:
            bootstrap = ""
            if scenario.source == "kafka":
                broker = opened.enter_context(Broker(place.folder / "broker", notify=progress))
                broker.create(TOPIC, PARTITIONS)
                bootstrap = broker.bootstrap
            job = opened.enter_context(Child(drive, str(place.folder), bootstrap))
            run = _Run(scenario, place, bootstrap, job, progress)
            progress("the job starts")
            run.wait(place.attached.exists, START_S)
            progress("the job warms up")
            run.warm_up()
            start_s = run.play()
        recording = _record(place, start_s, start_s + scenario.seconds)
    except Exception:
        progress(f"accounts, journal and logs are kept in {place.folder}")
        raise
    except BaseException:  # Ctrl-C
        shutil.rmtree(place.folder, ignore_errors=True)
        raise
    shutil.rmtree(place.folder, ignore_errors=True)
    return recording


def _record(place: Place, start_s: float, end_s: float) -> Recording:
    truth, executors = place.truth(), read_lines(place.executors)
    seen = read_windows(place.journal)
    return Recording(
        start_s,
        end_s,
        truth,
        tuple(window for window in seen if start_s <= window.at_s <= end_s),
        executor_s(executors[:, 0], executors[:, 1], start_s, end_s),
        over_lag_s(truth, start_s, end_s, LATE_S),
        place.repeated(),
    )


class _Run:
    """A run under way."""

    def __init__(self, scenario: Scenario, place: Place, bootstrap: str, job: Child, progress: Progress) -> None:
        self._scenario, self._place, self._bootstrap = scenario, place, bootstrap
        self._job, self._progress = job, progress
        self._report_s = self._sample_s = 0.0
        """When the next message and the next count of the executors are due."""

    def warm_up(self) -> None:
        """Play the warm-up, and wait until all of its records have a result."""
        schedule, place = self._scenario.schedule, self._place
        with self._load(0, WARM_UP_S):
            pass
        records = schedule.due(WARM_UP_S)

        def is_done() -> bool:
            truth = place.truth()
            return truth.processed(time.time()) >= records and truth.lag_s(time.time()) == 0.0

        self.wait(is_done, START_S)

    def play(self) -> float:
        """Play the load, and return when it began."""
        with self._load(WARM_UP_S, self._scenario.schedule.seconds) as start_s:
            end_s = start_s + self._scenario.seconds
            self.wait(lambda: self._has_ended(start_s, end_s), self._scenario.seconds + START_S)
        return start_s

    def wait(self, true: Callable[[], bool], at_most_s: float) -> None:
        """Wait until something is true; raise if the job ends before, or if it takes too long."""
        deadline_s, log_file = time.monotonic() + at_most_s, self._place.log
        while not true():
            if self._job.exitcode is not None:
                raise EngineError(f"the job of the bench has ended with exit code {self._job.exitcode}: see {log_file}")
            if time.monotonic() > deadline_s:
                raise EngineError(f"the job of the bench did not come that far within {at_most_s:g} s: see {log_file}")
            self._count_executors()
            time.sleep(POLL_S)

    def _count_executors(self) -> None:
        """Note the executors, if that is due."""
        if time.monotonic() >= self._sample_s:
            self._sample_s = time.monotonic() + SAMPLE_S
            note(self._place.executors, len(executors_below(self._job.pid)))

    def _has_ended(self, start_s: float, end_s: float) -> bool:
        """Return whether the load is over, and say how far the run is, if that is due."""
        now_s = time.time()
        if now_s >= self._report_s:
            self._report_s = now_s + REPORT_S
            executors, batches = read_lines(self._place.executors), read_lines(self._place.finished)
            self._progress(
                f"{self._scenario.name}: {now_s - start_s:.0f} of {self._scenario.seconds} s, "
                f"{executors[-1, 1]:.0f} executors, {len(batches)} batches"
            )
        return now_s >= end_s

    @contextmanager
    def _load(self, first_s: int, last_s: int) -> Iterator[float]:
        """Play some seconds of the schedule; give the moment at which the first of them began."""
        schedule, arrived = self._scenario.schedule, self._place.arrived
        if self._scenario.source == "files":
            drops = FileDrops(self._place, schedule, VALUE, first_s, last_s)
            try:
                yield drops.start_s + first_s
                drops.wait()
            finally:
                drops.close()
            return
        with start_load(
            self._bootstrap, TOPIC, schedule, first_s=first_s, last_s=last_s, value=VALUE, acknowledged=arrived
        ) as load:
            yield load.sent.start_s + first_s
            load.wait()
