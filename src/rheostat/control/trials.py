"""Trials beside the loop: a trial of minutes must not keep the controller from looking at its job.

What a policy requests is level-triggered, like an allocation: every decision names the trials that it still needs, and
those that are under way or have ended are not started again. Their results enter as records of later steps.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from rheostat.errors import describe
from rheostat.job.decision import Measurement, Trial
from rheostat.job.frozen import readable
from rheostat.ports import Testbed


class Trials:
    """Runs the requested trials on a testbed, one at a time."""

    def __init__(self, testbed: Testbed | None, beside: bool) -> None:
        """Run them on a thread with `beside`, else on the caller's: a simulated trial takes no time."""
        self.testbed = testbed
        self._beside = beside
        self._lock = threading.Lock()
        self._requested: list[Trial] = []
        self._running: Trial | None = None
        self._ended: list[Measurement] = []

    @property
    def idle(self) -> bool:
        """Whether none is requested, none runs, and no measurement waits."""
        return self._running is None and not self._ended

    def request(self, trials: Sequence[Trial], refused: str = "") -> None:
        """Replace the requested trials; with `refused` each gives a measurement with that problem."""
        if refused or self.testbed is None:
            why = refused or "there is no testbed"
            with self._lock:
                self._requested = []
                self._ended += [Measurement(trial, None, 0.0, 0.0, f"not run: {why}") for trial in trials]
            return
        with self._lock:
            known = [self._running, *(measurement.trial for measurement in self._ended)]
            self._requested = [trial for trial in trials if trial not in known]
            if not self._requested or self._running is not None:
                return
            self._running = self._requested.pop(0)
        if self._beside:
            threading.Thread(target=self._work, args=(self.testbed,), name="rheostat-trials", daemon=True).start()
        else:
            self._work(self.testbed)

    def take(self) -> list[Measurement]:
        """Return the measurements that have ended since the last call, oldest first."""
        with self._lock:
            ended, self._ended = self._ended, []
            return ended

    def _work(self, testbed: Testbed) -> None:
        while (trial := self._running) is not None:
            measurement = _measure(testbed, trial)
            with self._lock:
                self._ended.append(measurement)
                self._running = self._requested.pop(0) if self._requested else None


def _measure(testbed: Testbed, trial: Trial) -> Measurement:
    try:
        measurement = testbed.measure(trial)
        if not isinstance(measurement, Measurement):
            raise TypeError(f"the testbed returned {type(measurement).__name__}, not a Measurement")
        return readable(measurement)
    except Exception as error:  # noqa: BLE001 - a trial that breaks is a result, not a crash
        return Measurement(trial, None, 0.0, 0.0, describe(error))
