"""The owner of a checkpoint: a fresh heartbeat keeps other drivers out, a stale one does not."""

import os
import socket
from dataclasses import dataclass, field

import pytest
from file_engine import StepClock

from rheostat.engine.spark.lifecycle.checkpoint import Checkpoint
from rheostat.engine.spark.lifecycle.owner import FRESH_S, RENEW_S, REPLACED_S, Owner
from rheostat.errors import EngineError


@dataclass
class Folder(Checkpoint):
    """A checkpoint with its files in memory."""

    files: dict[tuple[str, ...], str] = field(default_factory=dict)
    location: str = "memory:/checkpoint"

    def text(self, *names: str) -> str | None:
        return self.files.get(names)

    def write(self, text: str, *names: str) -> None:
        self.files[names] = text

    def delete(self, *names: str) -> None:
        del self.files[names]


class Living(StepClock):
    """A clock on which another driver renews its heartbeat."""

    other: Owner | None = None

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if self.other is not None:
            self.other.renew()


def test_a_running_driver_keeps_others_out() -> None:
    folder, clock = Folder(), Living()
    first, second = Owner(folder, clock), Owner(folder, clock)
    first.claim()
    clock.other = first
    with pytest.raises(EngineError, match=f"process {os.getpid()} on {socket.gethostname()}.* memory:/checkpoint"):
        second.claim()
    first.release()
    clock.other = None
    second.claim()
    first.release()
    assert folder.files  # the first driver does not delete the second one's file


def test_the_heartbeat_of_an_ended_driver_expires_or_is_stale_by_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    folder, clock = Folder(), StepClock()
    first = Owner(folder, clock)
    first.claim()
    begun_s = clock.now()
    Owner(folder, clock).claim()
    assert FRESH_S <= clock.now() - begun_s <= FRESH_S + 1.0
    clock.sleep(RENEW_S)
    other = first.renew()  # it was suspended, and learns that another driver took over
    assert other is not None
    assert other.pid == os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: 2**22 + 1)  # no such process
    dead = Owner(folder, clock)
    clock.sleep(FRESH_S)
    dead.claim()
    begun_s = clock.now()
    Owner(folder, clock).claim()
    assert clock.now() == begun_s


def test_an_unreadable_file_is_not_a_claim() -> None:
    folder, clock = Folder(), StepClock()
    folder.files["rheostat", "driver"] = "nonsense"
    Owner(folder, clock).claim()
    assert clock.now() == pytest.approx(StepClock().now() + REPLACED_S)


class Replacing(Folder):
    """A store that deletes a file before it replaces it, and is read in between."""

    reads: int = 0

    def text(self, *names: str) -> str | None:
        self.reads += 1
        return None if self.reads == 1 else super().text(*names)


def test_a_file_that_is_being_replaced_still_keeps_others_out() -> None:
    folder, clock = Replacing(), Living()
    first = Owner(folder, clock)
    first.claim()
    clock.other, folder.reads = first, 0
    with pytest.raises(EngineError, match="another driver"):
        Owner(folder, clock).claim()
