"""The wall clock for moments, the steady one for waits."""

from __future__ import annotations

import threading
import time

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
