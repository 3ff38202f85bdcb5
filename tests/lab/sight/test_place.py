"""The accounts of producer, job and workers, read from files that may be torn."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from rheostat.engine.testbed.loads import Steps
from rheostat.engine.testbed.schedule import Schedule
from rheostat.lab.sight.drops import DROPS, FileDrops, due
from rheostat.lab.sight.place import Place, read_lines
from rheostat.lab.sight.work import DONE, Worker, read_done


class Time:
    """A clock that only moves while something sleeps, and then too far."""

    def __init__(self, oversleep_s: float) -> None:
        self.now_s, self.oversleep_s = 0.0, oversleep_s
        self.slept: list[float] = []

    def read(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_s += seconds + self.oversleep_s


def worker(folder: Path, time: Time) -> Worker:
    return Worker(folder / "1.done", 0.01, time.read, time.read, time.sleep)


def test_a_wait_that_was_too_long_shortens_the_next_ones(tmp_path: Path) -> None:
    time = Time(0.02)
    at_work = worker(tmp_path, time)
    for first in range(0, 100, 10):
        at_work.work(np.arange(first, first + 10))
    assert time.slept[0] == 0.1
    assert math.isclose(time.now_s, 10 * 0.1 + 0.02)  # one oversleep, not ten


def test_after_a_long_stall_no_more_than_a_second_is_made_up_for(tmp_path: Path) -> None:
    time = Time(60.0)
    at_work = worker(tmp_path, time)
    at_work.work(np.arange(10))
    time.oversleep_s = 0.0
    for first in range(10, 210, 10):
        at_work.work(np.arange(first, first + 10))
    assert math.isclose(time.now_s, 60.1 + 20 * 0.1 - 1.0)


def test_a_workers_account_names_every_record_and_its_moment(tmp_path: Path) -> None:
    time = Time(0.0)
    at_work = worker(tmp_path, time)
    at_work.work(np.array([3, 1]))
    at_work.work(np.array([2]))
    with (tmp_path / "1.done").open("ab") as torn:
        torn.write(b"\0" * (DONE.itemsize - 1))
    done = read_done(tmp_path)
    assert list(done["number"]) == [3, 1, 2]
    assert np.allclose(done["done_s"], [0.01, 0.02, 0.03])


def test_the_truth_of_a_run_takes_the_first_time_of_a_repeated_record(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.work.mkdir()
    place.arrived.write_text("1.0 2\n2.0 3\n3.0 4")  # the last line is torn
    place.finished.write_text("6.0 0\n")
    for pid, account in enumerate([[(4.0, 0), (4.0, 1)], [(5.0, 1), (5.0, 2)]]):
        (place.work / f"{pid}.done").write_bytes(np.array(account, DONE).tobytes())
    truth = place.truth()
    assert list(truth.processed_s) == [4.0, 4.0, 5.0]
    assert (truth.arrived(9.0), truth.processed(4.0), truth.finished_s.tolist()) == (3.0, 2, [6.0])
    assert place.repeated() == 1


def test_a_run_without_accounts_has_an_empty_truth(tmp_path: Path) -> None:
    place = Place(tmp_path)
    assert place.truth().backlog(1.0) == 0.0
    assert place.repeated() == 0
    assert read_lines(place.executors).shape == (0, 2)


def test_files_hold_the_records_of_the_schedule_and_the_account_agrees(tmp_path: Path) -> None:
    place, schedule = Place(tmp_path), Schedule(Steps((1.0, 2.0, 0.0), 1.0), 10.0, 3, 1)
    place.drops.mkdir()
    assert [due(schedule, drop) for drop in range(3 * DROPS + 1)] == [0, 2, 5, 7, 10, 15, 20, 25, 30, 30, 30, 30, 30]
    drops = FileDrops(place, schedule, "%(number)d", 1, 2)
    drops.wait()
    files = sorted(place.drops.iterdir())
    assert [line for file in files for line in file.read_text().split()] == [str(number) for number in range(10, 30)]
    lines = read_lines(place.arrived)
    assert lines[:, 1].tolist() == [15.0, 20.0, 25.0, 30.0]
    assert drops.start_s + 1 < lines[0, 0]
