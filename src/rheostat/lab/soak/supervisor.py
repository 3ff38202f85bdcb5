"""A driver as its supervisor sees it: started, started again when it ends, its memory sampled."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from rheostat.lab.experiment.processes import Child, driver_jvm
from rheostat.lab.soak.faults import DEADLY, Fault, strike
from rheostat.lab.soak.memory import Sample, resident_mb

SAMPLE_S = 2.0
"""Seconds between two samples of memory."""


class Supervisor:
    """Keeps one driver running, as a service manager does."""

    def __init__(self, start: Callable[[Path], Child], logs: Path) -> None:
        self._start, self._logs = start, logs
        self.drivers, self.ended_alone = 0, 0
        """Drivers so far, and those that ended without a fault that ends them."""
        self.lives: list[list[Sample]] = []
        """Samples per driver."""
        self._deadly, self._sampled_s, self._ended = False, 0.0, False
        self._driver = self._next()

    def look(self, *, sample: bool) -> None:
        """Start the next driver if this one has ended; else sample its memory if that is due."""
        if self._ended:
            return
        if self._driver.exitcode is not None:
            self.ended_alone += not self._deadly
            self.restart()
        elif sample and time.monotonic() - self._sampled_s >= SAMPLE_S:
            self._sample()

    def strike(self, fault: Fault) -> bool:
        """Let a fault happen; return whether there was a process for it."""
        done = strike(fault, self._driver)
        if done and fault.kind in DEADLY:
            self._deadly = True
        return done

    def restart(self) -> None:
        """Kill what is left of the driver and start the next one."""
        self._driver.kill()
        self._driver = self._next()

    def end(self) -> None:
        """End the driver in order."""
        self._ended = True
        self._driver.end()

    def kill(self) -> None:
        """Kill the driver and everything that it has started."""
        self._ended = True
        self._driver.kill()

    def _next(self) -> Child:
        self.drivers += 1
        self._deadly = False
        self.lives.append([])
        return self._start(self._logs / f"driver-{self.drivers}.log")

    def _sample(self) -> None:
        self._sampled_s = time.monotonic()
        jvm = driver_jvm(self._driver.pid)
        sizes = (resident_mb(self._driver.pid), None if jvm is None else resident_mb(jvm))
        if sizes[0] is not None and sizes[1] is not None:
            self.lives[-1].append(Sample(self._sampled_s, sizes[0], sizes[1]))
