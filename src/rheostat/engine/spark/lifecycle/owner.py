"""The driver that owns a checkpoint: a file in it, with a heartbeat of the driver.

The journal's lease separates two controllers with the same journal. But two drivers with different journals would start
the same query twice, and Spark detects that only when both have written. So a driver writes its name into the
checkpoint, and another driver does not start while the heartbeat is fresh.
"""

from __future__ import annotations

import json
import logging
import os
import socket
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rheostat.engine.spark.lifecycle.checkpoint import Checkpoint
from rheostat.errors import EngineError
from rheostat.ports import Clock

OWNER_FILE = ("rheostat", "driver")
RENEW_S = 5.0
"""Seconds between two heartbeats."""
FRESH_S = 20.0
"""Seconds after which a heartbeat is stale: its driver has ended."""
REPLACED_S = 0.2
"""Seconds for which the file must be missing to count as deleted: some stores delete a file before they replace it."""
PROCESSES = Path("/proc")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Driver:
    """One driver, and its last heartbeat."""

    host: str
    pid: int
    token: str
    at_s: float

    def has_ended(self, now_s: float) -> bool:
        """Whether it has ended: by its process on the same machine, by a stale heartbeat elsewhere."""
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
        """Write this driver's name after the present owner has ended; refuse if it keeps running."""
        deadline_s, logged = self._clock.monotonic() + FRESH_S + RENEW_S, False
        while (other := self._other_for_certain()) is not None and not other.has_ended(self._clock.now()):
            if self._clock.monotonic() > deadline_s:
                raise EngineError(
                    f"another driver (process {other.pid} on {other.host}) runs on {self.location}: two drivers on "
                    "one checkpoint corrupt it, stop the other one first"
                )
            if not logged:
                log.warning(
                    "waiting for another driver to end (process %d on %s) that runs on %s",
                    other.pid,
                    other.host,
                    self.location,
                )
                logged = True
            self._clock.sleep(1.0)
        self._write()

    def renew(self) -> Driver | None:
        """Renew the heartbeat if it is due; return the driver that has taken over the checkpoint, if any."""
        if self._clock.now() - self._me.at_s >= RENEW_S:
            if (other := self._other()) is not None:
                return other
            self._write()
        return None

    def confirm(self) -> None:
        """Read the claim again before an effect on the checkpoint; raise if another driver has taken it over."""
        if (other := self._other()) is not None:
            raise EngineError(f"another driver (process {other.pid} on {other.host}) runs on {self.location}")

    def release(self) -> None:
        """Delete this driver's file, so that the next driver starts at once."""
        if (owner := self._read()) is not None and owner.token == self._me.token:
            self._checkpoint.delete(*OWNER_FILE)

    def _other(self) -> Driver | None:
        owner = self._read()
        return None if owner is None or owner.token == self._me.token else owner

    def _other_for_certain(self) -> Driver | None:
        if (other := self._other()) is None:
            self._clock.sleep(REPLACED_S)
            other = self._other()
        return other

    def _read(self) -> Driver | None:
        text = self._checkpoint.text(*OWNER_FILE)
        try:
            return None if text is None else Driver(**json.loads(text))
        except (ValueError, TypeError):
            return None  # not written by Rheostat: there is no driver to wait for

    def _write(self) -> None:
        self._me = replace(self._me, at_s=self._clock.now())
        self._checkpoint.write(json.dumps(asdict(self._me)), *OWNER_FILE)
