"""Which driver works on a checkpoint: a note that is fresh keeps others away, one that is old does not."""

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
    """Files in memory, where a checkpoint has them in a store."""

    files: dict[tuple[str, ...], str] = field(default_factory=dict)
    location: str = "memory:/checkpoint"

    def text(self, *names: str) -> str | None:
        return self.files.get(names)

    def write(self, text: str, *names: str) -> None:
        self.files[names] = text

    def delete(self, *names: str) -> None:
        del self.files[names]


class Living(StepClock):
    """A clock on which another driver goes on renewing its note."""

    other: Owner | None = None

    def sleep_until(self, moment_s: float) -> None:
        super().sleep_until(moment_s)
        if self.other is not None:
            self.other.renew()


def test_a_living_driver_keeps_others_away() -> None:
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
    assert folder.files  # the second one's note is not the first one's to delete


def test_the_note_of_a_driver_that_is_gone_is_waited_for_or_known_to_be_old(monkeypatch: pytest.MonkeyPatch) -> None:
    folder, clock = Folder(), StepClock()
    first = Owner(folder, clock)
    first.claim()
    begun_s = clock.now()
    Owner(folder, clock).claim()
    assert FRESH_S <= clock.now() - begun_s <= FRESH_S + 1.0
    clock.sleep_until(clock.now() + RENEW_S)
    other = first.renew()  # it was only asleep, and learns that it was overtaken
    assert other is not None
    assert other.pid == os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: 2**22 + 1)  # no such process
    dead = Owner(folder, clock)
    clock.sleep_until(clock.now() + FRESH_S)
    dead.claim()
    begun_s = clock.now()
    Owner(folder, clock).claim()
    assert clock.now() == begun_s


def test_a_note_that_cannot_be_read_is_no_claim() -> None:
    folder, clock = Folder(), StepClock()
    folder.files["rheostat", "driver"] = "nonsense"
    Owner(folder, clock).claim()
    assert clock.now() == pytest.approx(StepClock().now() + REPLACED_S)


class Replacing(Folder):
    """A store that deletes a note before it writes it anew, and is looked at in between."""

    looks: int = 0

    def text(self, *names: str) -> str | None:
        self.looks += 1
        return None if self.looks == 1 else super().text(*names)


def test_a_note_that_is_just_being_replaced_still_keeps_others_away() -> None:
    folder, clock = Replacing(), Living()
    first = Owner(folder, clock)
    first.claim()
    clock.other, folder.looks = first, 0
    with pytest.raises(EngineError, match="another driver"):
        Owner(folder, clock).claim()
