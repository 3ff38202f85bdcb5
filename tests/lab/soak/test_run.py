"""A soak of a job of real processes without Spark: killed drivers are replaced, and returns are counted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from rheostat.errors import EngineError
from rheostat.lab.experiment.processes import Child
from rheostat.lab.soak import run
from rheostat.lab.soak.faults import Fault, Kind


def count(file: str, most: int) -> None:
    """Finish a record per 10 ms, as a driver that goes on where the last one was."""
    path = Path(file)
    number = int(path.read_text()) if path.exists() else 0
    while number < most:
        number += 1
        draft = path.with_suffix(".new")
        draft.write_text(str(number))
        draft.replace(path)
        time.sleep(0.01)
    time.sleep(300)


class Counting:
    job, name = "job", "counting"
    kinds: tuple[Kind, ...] = (Kind.DRIVER,)
    most = 1_000_000

    def __init__(self, folder: Path, seed: int) -> None:
        self.file, self.closed = folder / "finished", False

    def close(self) -> None:
        self.closed = True

    def start_driver(self, log_file: Path) -> Child:
        return Child(count, str(self.file), self.most)

    def records_due(self) -> int:
        return self.records_finished() + 5

    def records_finished(self) -> int:
        return int(self.file.read_text()) if self.file.exists() else 0

    def fold(self) -> None:
        pass

    def compare(self, end_driver: Callable[[], None]) -> tuple[int, int]:
        end_driver()
        return 0, self.records_finished()


class Stuck(Counting):
    """A job that finishes one record and no more."""

    most = 1


class Dead(Counting):
    """A job that finishes nothing."""

    most = 0


@pytest.fixture(autouse=True)
def _close_faults(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def faults(seed: int, kinds: Sequence[Kind]) -> Iterator[Fault]:
        yield from (Fault(kind, 0.1, 0.0, 0.0) for kind in list(kinds) * 2)

    monkeypatch.setattr(run, "draw_faults", faults)
    monkeypatch.setattr(run, "mkdtemp", lambda prefix: str(tmp_path))


def test_a_job_that_comes_back_is_counted_and_its_folder_deleted(tmp_path: Path) -> None:
    said: list[str] = []
    soak = run.run_soak(Counting, 2.0, 0, said.append)
    assert soak.faults == {Kind.DRIVER: 2}
    assert soak.came_back == 2
    assert (soak.drivers, soak.ended_alone, soak.keys_wrong) == (3, 0, 0)
    assert soak.slowest_s >= 1.0
    assert sum("driver killed: back after" in text for text in said) == 2
    assert not tmp_path.exists()


def test_a_job_that_does_not_come_back_ends_the_soak_and_its_folder_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "RETURN_S", 3.0)
    said: list[str] = []
    soak = run.run_soak(Stuck, 2.0, 0, said.append)
    assert (soak.faults, soak.came_back) == ({Kind.DRIVER: 1}, 0)
    assert "not back with another driver either" in "".join(said)
    assert said[-1].endswith(str(tmp_path))
    assert (tmp_path / "finished").exists()


def test_a_job_without_a_first_batch_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "RETURN_S", 1.0)
    with pytest.raises(EngineError, match="did not finish a batch within 1 s"):
        run.run_soak(Dead, 2.0, 0, lambda _: None)
