"""What goes wrong in a soak: a seed gives the same faults in the same order.

Kinds come in rounds: each round has every kind once, in a random order, so that a short soak misses none for long.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from random import Random

from rheostat.lab.experiment.processes import Child, driver_jvm, kill_an_executor

GAP_S = (4.0, 24.0)
"""Least and most seconds from the return of the job to the next fault: several batches, and changes of size."""
STOP_S = (2.0, 8.0)
"""Least and most seconds of a stop."""


class Kind(StrEnum):
    """What happens to the job."""

    DRIVER = "driver killed"
    """SIGKILL of the driver, its JVM and its executors."""
    JVM = "JVM killed"
    """SIGKILL of the driver's JVM alone."""
    EXECUTOR = "executor killed"
    """SIGKILL of one executor."""
    STOP = "driver stopped"
    """SIGSTOP of the driver and its JVM, then SIGCONT; executors go on."""


DEADLY = frozenset({Kind.DRIVER, Kind.JVM})
"""Faults that end the driver: the next one continues from the journal."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault to come."""

    kind: Kind
    after_s: float
    """Seconds after the job came back from the fault before."""
    stop_s: float
    """Seconds for which a stopped driver stands still."""
    share: float
    """Which of the executors is killed, as a share of their list."""

    def __str__(self) -> str:
        return f"{self.kind} for {self.stop_s:.1f} s" if self.kind is Kind.STOP else str(self.kind)


def draw_faults(seed: int, kinds: Sequence[Kind]) -> Iterator[Fault]:
    """Yield faults of these kinds without end."""
    random = Random(f"{seed} {' '.join(kinds)}")
    while True:
        for kind in random.sample(list(kinds), len(kinds)):
            yield Fault(kind, random.uniform(*GAP_S), random.uniform(*STOP_S), random.random())


def strike(fault: Fault, driver: Child) -> bool:
    """Let a fault happen to a driver; return whether there was a process for it."""
    if fault.kind is Kind.DRIVER:
        driver.kill()
        return True
    if fault.kind is Kind.EXECUTOR:
        return kill_an_executor(driver.pid, fault.share)
    jvm = driver_jvm(driver.pid)
    if jvm is None:
        return False
    try:
        if fault.kind is Kind.JVM:
            os.kill(jvm, signal.SIGKILL)
        else:
            _stop((driver.pid, jvm), fault.stop_s)
    except ProcessLookupError:
        return False  # it has just ended
    return True


def _stop(pids: Sequence[int], seconds: float) -> None:
    """Suspend processes for some seconds. The shell that watches the driver's group goes on, and can still end it."""
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
