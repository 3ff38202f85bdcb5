"""One run of the sight bench: a load with known counts into a job with a known pace, and a scaler with its defaults."""

from __future__ import annotations

import logging
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
from rheostat.lab.experiment.processes import Child
from rheostat.lab.experiment.trial import Progress
from rheostat.lab.sight.comparison import describe, executor_s, over_lag_s
from rheostat.lab.sight.drops import FileDrops
from rheostat.lab.sight.job import PARTITIONS, TOPIC, VALUE, drive
from rheostat.lab.sight.place import Place, read_lines
from rheostat.lab.sight.scenario import Scenario
from rheostat.lab.sight.truth import Truth
from rheostat.lab.sight.windows import Window, read_windows

log = logging.getLogger(__name__)

START_S = 180.0
"""Seconds for the job to start and to be attached."""
LATE_S = 15.0
"""Lag above which a second counts as late."""
REPORT_S = 20.0
"""Seconds between two messages."""
POLL_S = 0.25


@dataclass(frozen=True)
class Recording:
    """What a run leaves behind."""

    start_s: float
    """When the load began."""
    end_s: float
    truth: Truth
    windows: tuple[Window, ...]
    """Windows from the first result to the end of the load."""
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
            progress("the job starts")
            _wait(job, place, lambda: place.executors.exists(), START_S, lambda: None)
            with _load(scenario, place, bootstrap) as start_s:
                end_s = start_s + scenario.schedule.seconds
                reports = _Reports(scenario, place, start_s, progress)
                _wait(job, place, lambda: time.time() >= end_s, scenario.schedule.seconds + START_S, reports.give)
        recording = _record(place, start_s, end_s)
    except Exception:
        progress(f"accounts, journal and logs are kept in {place.folder}")
        raise
    shutil.rmtree(place.folder, ignore_errors=True)
    return recording


def _record(place: Place, start_s: float, end_s: float) -> Recording:
    truth, executors = place.truth(), read_lines(place.executors)
    seen = read_windows(place.journal)
    for window in seen:
        log.info("%s", describe(window, truth, start_s))
    return Recording(
        start_s,
        end_s,
        truth,
        tuple(window for window in seen if truth.first_result_s <= window.at_s <= end_s),
        executor_s(executors[:, 0], executors[:, 1], start_s, end_s),
        over_lag_s(truth, start_s, end_s, LATE_S),
        place.repeated(),
    )


@contextmanager
def _load(scenario: Scenario, place: Place, bootstrap: str) -> Iterator[float]:
    """Play the scenario's load; give the moment of its start."""
    if scenario.source == "files":
        drops = FileDrops(place, scenario.schedule, VALUE)
        try:
            yield drops.start_s
        finally:
            drops.close()
        return
    seconds = scenario.schedule.seconds
    with start_load(
        bootstrap, TOPIC, scenario.schedule, last_s=seconds, value=VALUE, acknowledged=place.arrived
    ) as load:
        yield load.sent.start_s
        load.wait()


class _Reports:
    """Messages while a run goes on."""

    def __init__(self, scenario: Scenario, place: Place, start_s: float, progress: Progress) -> None:
        self._scenario, self._place, self._start_s, self._progress = scenario, place, start_s, progress
        self._next_s = start_s

    def give(self) -> None:
        """Say how far the run is, if that is due."""
        now_s = time.time()
        if now_s < self._next_s:
            return
        self._next_s += REPORT_S
        size = read_lines(self._place.executors)
        executors = f"{size[-1, 1]:.0f} executors" if len(size) else "no executors"
        passed = f"{now_s - self._start_s:.0f} of {self._scenario.schedule.seconds} s"
        self._progress(f"{self._scenario.name}: {passed}, {executors}, {len(read_lines(self._place.finished))} batches")


def _wait(
    job: Child, place: Place, true: Callable[[], bool], at_most_s: float, meanwhile: Callable[[], object]
) -> None:
    """Wait until something is true; raise if the job ends before, or if it takes too long."""
    deadline_s = time.monotonic() + at_most_s
    while not true():
        if job.exitcode is not None:
            raise EngineError(f"the job of the bench has ended with exit code {job.exitcode}: see {place.log}")
        if time.monotonic() > deadline_s:
            raise EngineError(f"the job of the bench was not there within {at_most_s:g} s: see {place.log}")
        meanwhile()
        time.sleep(POLL_S)
