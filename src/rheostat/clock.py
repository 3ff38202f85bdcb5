"""The wall clock for moments, the steady one for waits, and both for what outlives a process."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

_BOOTTIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)


def steady_s() -> float:
    """Return seconds of a clock that is never set; on Linux it also counts while the machine is suspended."""
    return time.monotonic() if _BOOTTIME is None else time.clock_gettime(_BOOTTIME)


class WallClock:
    """Seconds since the epoch; setting `wake` ends a sleep early."""

    def __init__(self) -> None:
        self.wake = threading.Event()

    def now(self) -> float:
        """Return the present moment."""
        return time.time()

    def monotonic(self) -> float:
        """Return seconds that never go back, whatever is done to the wall clock."""
        return steady_s()

    def sleep(self, seconds: float) -> None:
        """Wait for this long, or until `wake` is set."""
        self.wake.wait(max(0.0, seconds))


@dataclass(frozen=True, slots=True)
class Moment:
    """The present by a wall clock and, where the boot is known, the seconds since then."""

    wall_s: float
    boot: str | None = None
    up_s: float = 0.0

    @property
    def booted_s(self) -> float | None:
        """When the boot began, by the wall clock as it is now."""
        return None if self.boot is None else self.wall_s - self.up_s


def boot_id() -> str | None:
    """Return what identifies this boot of the host and its time namespace; None where the kernel has no such id."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    with suppress(OSError):  # a kernel before 5.6 has no time namespaces
        boot += f" {os.readlink('/proc/self/ns/time')}"
    return boot


@dataclass(frozen=True, slots=True)
class HostClock:
    """The clocks of this host."""

    wall: Callable[[], float] = time.time
    up: Callable[[], float] = steady_s
    boot: str | None = field(default_factory=boot_id)

    def now(self) -> Moment:
        """Return the present moment."""
        return Moment(self.wall(), self.boot, self.up())
