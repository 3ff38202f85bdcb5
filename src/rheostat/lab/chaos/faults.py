"""What goes wrong in a storm: loads that flap, windows that are wrong, drivers that are killed or suspended.

Time is simulated, and chance comes from the storm's generator: the same seed gives the same faults.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rheostat.errors import EngineError, EngineLate
from rheostat.job.observation import Observation

Floats = NDArray[np.float64]

SEGMENT_S = 2400
"""Seconds for which a load has one shape."""

WINDOW_FAULTS = (
    *("missing", "negative", "nan", "huge", "wrong type"),
    *("stale", "future", "past", "none", "raise", "late", "unknown"),
)
"""Ways in which a window is wrong."""


@dataclass(frozen=True)
class Flapping:
    """A load that changes its shape every 40 minutes: constant, zero, a square wave around a size, spikes, a ramp."""

    seed: int
    top: float
    """Highest level."""
    noise: float = 0.05

    def level(self, t_s: Floats) -> Floats:
        """Return the level at these seconds."""
        levels = np.zeros(len(t_s))
        segments = (t_s // SEGMENT_S).astype(int)
        for segment in np.unique(segments):
            inside = segments == segment
            levels[inside] = self._segment(int(segment), t_s[inside] - segment * SEGMENT_S)
        return levels

    def _segment(self, segment: int, t_s: Floats) -> Floats:
        random = Random(f"{self.seed} load {segment}")
        low, high = sorted(random.uniform(0.05, 1.0) * self.top for _ in range(2))
        period_s = random.choice((120.0, 240.0, 420.0, 660.0, 1200.0))
        match random.choice(("constant", "zero", "square", "square", "threshold", "spikes", "ramp")):
            case "zero":
                return np.zeros(len(t_s))
            case "square":
                return np.where(t_s % period_s < period_s / 2, low, high)
            case "threshold":
                return np.where(t_s % period_s < period_s / 2, 0.95 * high, 1.05 * high)
            case "spikes":
                return np.where(t_s % period_s < 30.0, 1.5 * self.top, low)
            case "ramp":
                return low + (high - low) * t_s / SEGMENT_S
        return np.full(len(t_s), high)


def spoil_window(kind: str, window: Observation, last: Observation | None, random: Random) -> Any:
    """Return a wrong window, or raise the engine's error."""
    value: Any = {"negative": -1.0, "nan": math.nan, "huge": 1e300, "wrong type": "many"}.get(kind)
    match kind:
        case "raise":
            raise EngineError("the job does not answer")
        case "late":
            raise EngineLate("observe did not return within 10 s")
        case "none":
            return None
        case "stale":
            return window if last is None else replace(last, at_s=window.at_s)
        case "future" | "past":
            ahead_s = random.choice((59.0, 3600.0, 1e9)) * (1 if kind == "future" else -1)
            whole = random.random() < 0.5
            at_s = window.at_s + ahead_s if whole else window.at_s
            return replace(window, at_s=at_s, start_s=window.start_s + ahead_s, end_s=window.end_s + ahead_s)
        case "unknown":
            return replace(window, running=None)
    where = random.choice(("rate", "records", "true rate", "lag"))
    if where in ("rate", "lag"):
        name = "rate_per_s" if where == "rate" else "lag_s"
        return replace(window, sources=tuple(replace(s, **{name: value}) for s in window.sources))
    name = "records_in_per_s" if where == "records" else "true_rate_per_s"
    return replace(window, operators=tuple(replace(o, **{name: value}) for o in window.operators))


class Killed(BaseException):
    """The driver's process has ended: nothing of it goes on, no `finally` writes anything."""


class Suspension:
    """A call on a thread of its own that can stop in the middle, as a suspended process does, and go on later.

    Only one of the two threads runs at a time, so that a storm repeats.
    """

    def __init__(self, call: Callable[[], None]) -> None:
        self.done = False
        self._go, self._stopped = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, args=(call,), name="rheostat-storm", daemon=True)
        self._thread.start()

    def resume(self) -> None:
        """Let the call go on until it stops again or ends."""
        self._go.release()
        self._stopped.acquire()
        if self.done:
            self._thread.join()

    def pause(self) -> None:
        """Stop here, called on the thread itself, until `resume`."""
        self._stopped.release()
        self._go.acquire()

    @property
    def here(self) -> bool:
        """Whether the caller is the call."""
        return threading.current_thread() is self._thread

    def _run(self, call: Callable[[], None]) -> None:
        self._go.acquire()
        try:
            call()
        finally:
            self.done = True
            self._stopped.release()
