"""The driver that owns a checkpoint: numbered claims in it, of which the highest counts.

The journal's lease separates two controllers with the same journal. But two drivers with different journals would start
the same query twice, and Spark detects that only when both have written. So a driver creates the file
`rheostat/drivers/N+1`, where N is the highest number so far, before its query begins a batch. Of two drivers that do
that at once one succeeds. The owner rewrites its file with a counter every few seconds, on a thread of its own, until
its query has ended.

A driver that wants the checkpoint judges the owner by what it sees change, on its own clock: the claim, and the
checkpoint's offsets and commits. A driver whose Python is frozen renews no claim, but its JVM may go on with batches.
"""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import threading
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import median

from rheostat.clock import boot_id
from rheostat.engine.spark.lifecycle.checkpoint import Checkpoint
from rheostat.errors import EngineError, InvalidValue, describe
from rheostat.job.frozen import from_json
from rheostat.ports import Clock

FOLDER = ("rheostat", "drivers")
RENEW_S = 2.5
"""Seconds between two renewals of a claim."""
FRESH_S = 10.0
"""Seconds without any change after which the owner counts as ended: three renewals may be late."""
LONG_BATCH_S = 60.0
"""Most seconds to wait for a sign of an owner with long batches."""
PATIENCE_S = 15.0
"""Seconds beyond that for which a claim waits for a living owner to end."""
GONE_S = 3.0
"""Seconds for which an owner's processes must be gone: its executors end a moment after them."""
SETTLE_S = 0.3
"""Seconds after which a new claim is read again: some stores let two drivers create one file."""
LOOK_S = 0.5
"""Seconds between two looks at another driver's claim."""
CLAIM = re.compile(r"\.?(\d+)(?:\..*\.tmp)?")
"""Name of a claim, or of its draft as Spark names drafts."""
PROCESSES = Path("/proc")

log = logging.getLogger(__name__)


class Overtaken(EngineError):  # noqa: N818 - it says what has become of this driver
    """Another driver owns the checkpoint."""


@dataclass(frozen=True, slots=True)
class Process:
    """One process, so that another one with the same number is not taken for it."""

    pid: int
    started: str
    """When it was started, as the kernel counts."""

    @staticmethod
    def of(pid: int) -> Process:
        """Return the process with this number."""
        return Process(pid, "".join(_stat(pid)[19:20]))

    @property
    def has_ended(self) -> bool:
        """Whether it has ended; False where the system does not say."""
        return bool(self.started) and not self.state

    @property
    def state(self) -> str:
        """Its state, as the kernel writes it: R, S, D, T (stopped); "" when it has ended."""
        stat = _stat(self.pid)
        alive = len(stat) > 19 and stat[19] == self.started and stat[0] not in ("Z", "X")
        return stat[0] if alive else ""


@dataclass(frozen=True, slots=True)
class Driver:
    """One driver, as its claim describes it."""

    token: str
    host: str
    machine: str
    """What identifies the kernel and the process namespace; "" where the system does not say."""
    python: Process
    jvm: Process
    count: int = 0
    """Renewals of the claim so far."""
    ended: bool = False
    """Whether the driver has given the checkpoint back."""

    @staticmethod
    def here(jvm: Process) -> Driver:
        """Return this driver."""
        return Driver(os.urandom(8).hex(), socket.gethostname(), _machine(), Process.of(os.getpid()), jvm)

    def __str__(self) -> str:
        return f"another driver (process {self.python.pid} on {self.host})"

    def has_gone(self) -> bool:
        """Whether its processes have ended; False where that cannot be seen from here."""
        return self._visible and not self.python.state and not self.jvm.state

    def is_frozen(self) -> bool:
        """Whether its Python is stopped while its JVM runs; False where that cannot be seen from here."""
        return self._visible and self.python.state in ("T", "t") and self.jvm.state not in ("", "T", "t")

    @property
    def _visible(self) -> bool:
        return bool(self.machine) and self.machine == _machine()


@dataclass(frozen=True, slots=True)
class Sight:
    """What one look at a checkpoint shows of its owner."""

    number: int
    """The highest claim; 0 where there is none."""
    text: str = ""
    offsets: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()
    usual_s: float = 0.0
    """Usual seconds between two commits, by the store's own clock."""

    @property
    def driver(self) -> Driver | None:
        """The driver of the highest claim; None where it cannot be read: it may be half written."""
        try:
            return from_json(Driver, self.text)
        except InvalidValue:
            return None

    @property
    def sign(self) -> tuple[object, ...]:
        """What changes while the owner lives."""
        return self.number, self.text, self.offsets, self.commits


class Owner:
    """This driver's claim on a checkpoint. `lost` is called, on the claim's thread, once another driver has it."""

    def __init__(self, checkpoint: Checkpoint, me: Driver, clock: Clock, lost: Callable[[Overtaken], None]) -> None:
        self.checkpoint, self._me, self._clock, self._lost = checkpoint, me, clock, lost
        self._number = 0
        self._overtaken: Overtaken | None = None
        self._seen: Sight | None = None
        self._looked_s = self._changed_s = self._gone_since_s = 0.0
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._busy: Callable[[], bool] | None = None
        self._thread: threading.Thread | None = None

    @property
    def claimed(self) -> bool:
        """Whether this driver has taken the checkpoint."""
        return self._thread is not None

    # -- taking it -------------------------------------------------------------------------------------------------

    def look(self) -> Sight:
        """Look at the claim and the batches, and remember since when nothing has changed."""
        files, self._looked_s = self.checkpoint.files, self._clock.monotonic()
        number = max(_claims(files.entries(*FOLDER)), default=0)
        if not number:
            sight = Sight(0)
        else:
            commits = files.entries("commits")
            written_s = sorted(commits[str(batch)].modified_s for batch in sorted(_numbers(commits))[-10:])
            gaps_s = [later - earlier for earlier, later in pairwise(written_s)]
            sight = Sight(
                number,
                files.text(*FOLDER, str(number)) or "",
                tuple(sorted(files.entries("offsets"))),
                tuple(sorted(commits)),
                median(gaps_s) if gaps_s else 0.0,
            )
        # A look may take long. What it shows has not changed from its end to the beginning of the last one.
        driver, now_s = sight.driver, self._clock.monotonic()
        if self._seen is None or sight.sign != self._seen.sign or (driver is not None and driver.is_frozen()):
            self._changed_s = now_s
        if self._seen is None or driver is None or not driver.has_gone():
            self._gone_since_s = now_s
        self._seen = sight
        return sight

    def claim(self) -> None:
        """Take the checkpoint once its present owner has ended; refuse if it keeps running."""
        begun_s, logged = self._clock.monotonic(), False
        while True:
            sight = self.look()
            limit_s = min(max(FRESH_S, 2 * sight.usual_s), LONG_BATCH_S)
            if self._is_free(sight, limit_s):
                if self._take(sight.number + 1):
                    break
                continue
            who = str(sight.driver or "another driver")
            if self._clock.monotonic() - begun_s > limit_s + PATIENCE_S:
                raise Overtaken(
                    f"{who} runs on {self.checkpoint.location}: two drivers on one checkpoint corrupt it, stop the "
                    "other one first"
                )
            if not logged:
                log.warning("waiting for %s to end, which runs on %s", who, self.checkpoint.location)
                logged = True
            self._clock.sleep(LOOK_S)
        self._thread = threading.Thread(target=self._work, name="rheostat-claim", daemon=True)
        self._thread.start()

    def _is_free(self, sight: Sight, limit_s: float) -> bool:
        driver, now_s = sight.driver, self._looked_s
        if sight.number == 0 or (driver is not None and driver.ended):
            return True
        if driver is not None and driver.has_gone() and now_s - self._gone_since_s >= GONE_S:
            return True
        return now_s - self._changed_s >= limit_s

    def _take(self, number: int) -> bool:
        """Create a claim with this number; return whether it is the highest one, and ours."""
        files = self.checkpoint.files
        if not files.create(self._text(), *FOLDER, str(number)):
            return False
        self._number = number
        try:
            self._clock.sleep(SETTLE_S)
            if self._holder() is not None:
                self._forget(number)
                return False
            for older, names in _claims(files.entries(*FOLDER)).items():
                for name in names if older < number else ():
                    files.delete(*FOLDER, name)
        except BaseException:
            self._give_back()
            raise
        return True

    def _forget(self, number: int) -> None:
        """Delete this driver's claim after another one has won."""
        left = Sight(number, self.checkpoint.files.text(*FOLDER, str(number)) or "").driver
        if left is not None and left.token == self._me.token:
            self.checkpoint.files.delete(*FOLDER, str(number))
        self._number = 0

    # -- holding it ------------------------------------------------------------------------------------------------

    def confirm(self) -> None:
        """Read the claim again before an effect on the checkpoint; raise Overtaken if another driver has it."""
        with self._lock:
            if self._overtaken is None and (other := self._holder()) is not None:
                self._overtaken = Overtaken(f"{other} runs on {self.checkpoint.location}")
        if self._overtaken is not None:
            raise self._overtaken

    def renew(self) -> None:
        """Confirm the claim, and change its counter so that others see this driver live."""
        self.confirm()
        self._me = replace(self._me, count=self._me.count + 1)
        self.checkpoint.files.replace(self._text(), *FOLDER, str(self._number))

    def release(self, busy: Callable[[], bool] = lambda: False) -> None:
        """Give the checkpoint back, at once or on the claim's thread as soon as nothing is `busy` on it any more."""
        self._busy = busy
        if self._thread is None or self._is_busy():
            return
        self._ending.set()
        if self._thread is not threading.current_thread():
            self._thread.join(FRESH_S)
        self._give_back()

    def _work(self) -> None:
        renewed_s, works = self._clock.monotonic(), True
        while not self._ending.wait(min(LOOK_S, RENEW_S)):
            now_s = self._clock.monotonic()
            try:
                if self._busy is not None and not self._is_busy():
                    self._give_back()
                    return
                if now_s - renewed_s >= (RENEW_S if works else LOOK_S):
                    self.renew()
                    renewed_s, works = now_s, True
            except Overtaken as overtaken:
                log.error("%s", overtaken)
                self._lost(overtaken)
                return
            except Exception as error:  # noqa: BLE001 - a store that does not answer: it may the next time
                if works:
                    log.warning("the claim on %s cannot be renewed: %s", self.checkpoint.location, describe(error))
                works = False
                if self._busy is not None and now_s - renewed_s > LONG_BATCH_S:
                    return  # the scaler has ended, and so has the JVM: nothing is left to look after

    def _is_busy(self) -> bool:
        try:
            return self._busy is not None and self._busy()
        except Exception as error:  # noqa: BLE001 - a JVM that does not answer may go on with its query
            log.debug("whether the query runs is not known: %s", describe(error))
            return True

    def _give_back(self) -> None:
        try:
            if self._number and self._holder() is None:
                self._me = replace(self._me, ended=True)
                self.checkpoint.files.replace(self._text(), *FOLDER, str(self._number))
        except Exception as error:  # noqa: BLE001 - the next driver waits until the claim is stale
            log.warning("the claim on %s could not be given back: %s", self.checkpoint.location, describe(error))

    def _holder(self) -> Driver | None:
        """Return the driver that has overtaken this one; None while this one has the checkpoint."""
        files = self.checkpoint.files
        number = max(_claims(files.entries(*FOLDER)), default=0)
        if number < self._number:
            return None  # the claim was deleted: the next renewal writes it again
        driver = Sight(number, files.text(*FOLDER, str(number)) or "").driver
        if driver is None:
            return None if number == self._number else Driver("", "unknown", "", Process(0, ""), Process(0, ""))
        return None if driver.token == self._me.token else driver

    def _text(self) -> str:
        return json.dumps(asdict(self._me))


def _numbers(names: Iterable[str]) -> list[int]:
    return [int(name) for name in names if name.isdigit()]


def _claims(names: Iterable[str]) -> dict[int, list[str]]:
    """Return the files of every claim by its number, drafts of a renewal included.

    Some stores delete the old file before they rename the draft: in between the draft is all there is.
    """
    claims: dict[int, list[str]] = {}
    for name in names:
        if (match := CLAIM.fullmatch(name)) is not None:
            claims.setdefault(int(match[1]), []).append(name)
    return claims


def _stat(pid: int) -> list[str]:
    """Return what the kernel says about a process, from its state on; nothing when it has ended."""
    try:
        return (PROCESSES / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _machine() -> str:
    """Return what two processes have in common when one can see the other by its number."""
    boot = boot_id()
    try:
        return "" if boot is None else f"{boot} {os.readlink(PROCESSES / 'self' / 'ns' / 'pid')}"
    except OSError:
        return ""
