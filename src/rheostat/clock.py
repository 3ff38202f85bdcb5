"""The wall clock."""

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

    def sleep_until(self, moment_s: float) -> None:
        """Wait until the moment, or until `wake` is set."""
        self.wake.wait(max(0.0, moment_s - time.time()))
