"""Which driver works on a checkpoint: a note in it, renewed while the driver lives.

A lease keeps two controllers with one journal apart. Two drivers with a journal each would start the same query twice,
and Spark notices that only when both have written. So a driver leaves its name in the checkpoint, and another one does
not start as long as that name is fresh.
"""

from __future__ import annotations

import json
import os
import socket
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import structlog

from rheostat.engine.spark.lifecycle.checkpoint import Checkpoint
from rheostat.errors import EngineError
from rheostat.ports import Clock

NOTE = ("rheostat", "driver")
RENEW_S = 5.0
"""A living driver renews its note so often."""
FRESH_S = 20.0
"""A note that is older was left by a driver that is gone."""

REPLACED_S = 0.2
"""A store may delete a note a moment before it renews it: only one that stays away is gone."""

PROCESSES = Path("/proc")

log = structlog.get_logger("rheostat.spark")


@dataclass(frozen=True, slots=True)
class Driver:
    """One driver, and when it last said that it lives."""

    host: str
    pid: int
    token: str
    at_s: float

    def gone(self, now_s: float) -> bool:
        """Whether it has ended: known at once on the same machine, elsewhere by its silence."""
        if not abs(now_s - self.at_s) < FRESH_S:
            return True
        return self.host == socket.gethostname() and PROCESSES.exists() and not (PROCESSES / str(self.pid)).exists()


class Owner:
    """This driver's claim on a checkpoint."""

    def __init__(self, checkpoint: Checkpoint, clock: Clock) -> None:
        self._checkpoint, self._clock = checkpoint, clock
        self._me = Driver(socket.gethostname(), os.getpid(), os.urandom(8).hex(), clock.now())

    @property
    def location(self) -> str:
        """The checkpoint's folder."""
        return self._checkpoint.location

    def claim(self) -> None:
        """Write this driver's name, once the one that is there has ended; refuse where it does not."""
        deadline_s, told = self._clock.now() + FRESH_S + RENEW_S, False
        while (other := self._other_or_none_for_long()) is not None and not other.gone(self._clock.now()):
            if self._clock.now() > deadline_s:
                raise EngineError(
                    f"another driver (process {other.pid} on {other.host}) runs on {self.location}: two on "
                    "one checkpoint spoil it; stop that one first"
                )
            if not told:
                log.warning("waiting for another driver on this checkpoint to end", host=other.host, process=other.pid)
                told = True
            self._clock.sleep_until(self._clock.now() + 1.0)
        self._write()

    def renew(self) -> Driver | None:
        """Say that this driver lives, where that was said long ago; return who has taken its place meanwhile."""
        if self._clock.now() - self._me.at_s >= RENEW_S:
            if (other := self._other()) is not None:
                return other
            self._write()
        return None

    def release(self) -> None:
        """Let the next one start at once."""
        if (other := self._note()) is not None and other.token == self._me.token:
            self._checkpoint.delete(*NOTE)

    def _other(self) -> Driver | None:
        found = self._note()
        return None if found is None or found.token == self._me.token else found

    def _other_or_none_for_long(self) -> Driver | None:
        if (other := self._other()) is None:
            self._clock.sleep_until(self._clock.now() + REPLACED_S)
            other = self._other()
        return other

    def _note(self) -> Driver | None:
        text = self._checkpoint.text(*NOTE)
        try:
            return None if text is None else Driver(**json.loads(text))
        except (ValueError, TypeError):
            return None  # not a note of ours: nothing that could be waited for

    def _write(self) -> None:
        self._me = replace(self._me, at_s=self._clock.now())
        self._checkpoint.write(json.dumps(asdict(self._me)), *NOTE)
