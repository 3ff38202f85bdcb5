"""The wall clock for moments, the monotonic one for waits."""

from __future__ import annotations

import threading
import time


class WallClock:
    """Seconds since the epoch; setting `wake` ends a sleep early."""

    def __init__(self) -> None:
        self.wake = threading.Event()

    def now(self) -> float:
        """Return the present moment."""
        return time.time()

    def monotonic(self) -> float:
        """Return seconds that never go back, whatever is done to the wall clock."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait for this long, or until `wake` is set."""
        self.wake.wait(max(0.0, seconds))
