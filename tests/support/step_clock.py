"""The clock of tests that do not wait."""

from __future__ import annotations


class StepClock:
    """Time that only a test moves."""

    def __init__(self, now_s: float = 100.0) -> None:
        self._now_s = now_s

    def now(self) -> float:
        return self._now_s

    def monotonic(self) -> float:
        return self._now_s

    def sleep(self, seconds: float) -> None:
        self._now_s += max(0.0, seconds)
