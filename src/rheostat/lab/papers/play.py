"""Controllers on the replicas of one simulated fleet: time passes, then each controller takes a step.

In the papers' protocols a change takes no simulated time (its downtime is added separately), and a window covers the
time since the last step.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from rheostat.control.controller import IMMEDIATE, Controller, Step
from rheostat.engine.simulated import Fleet, FleetClock, Plant
from rheostat.engine.simulated.fleet import Floats
from rheostat.engine.simulated.plant import Metrics, Restart
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Reason
from rheostat.journal.memory import MemoryJournal
from rheostat.lab.experiment.failures import policy_errors, raise_failure
from rheostat.ports import Journal, Policy

PACE = replace(IMMEDIATE, snapshot_every=10**6)
"""Pace without snapshots: no controller is restarted."""
CONTENT = (Reason.STEADY, Reason.UNDER_PROVISIONED)
"""Reasons of a decision that end a tuning: the size is right, or at its bounds."""
BUFFER_S = 0.1
"""Seconds of buffer in front of an operator: small, so that a capacity too low by 1 % shows within one step."""


@dataclass(frozen=True, slots=True)
class Method:
    """A policy with the name of its row."""

    name: str
    make: Callable[[], Policy[Any]]


def with_windows(plant: Plant, window_s: float, min_window_s: float, settle_s: float, noise_period_s: int) -> Plant:
    """Return the plant with windows of this length and restarts without downtime."""
    metrics = Metrics(window_s=window_s, min_window_s=min_window_s, settle_s=settle_s, noise=plant.metrics.noise)
    restart = Restart(1, 0)
    return replace(plant, metrics=metrics, restart=restart, noise_period_s=noise_period_s, buffer_s=BUFFER_S)


@dataclass(frozen=True, slots=True)
class Seconds:
    """Measurements of one replica by second."""

    waiting: Floats
    """Records that wait at the sources; buffers hold almost none."""
    taken: Floats
    """Records taken from the sources since the start."""
    latency_s: Floats
    """Processing latency."""


class Player(ABC):
    """One controller on one replica of a fleet, with notes about its steps."""

    def __init__(
        self, fleet: Fleet, replica: int, policy: Policy[Any], seed: int, journal: Journal | None = None, **more: Any
    ) -> None:
        """Pass `more` to the controller: slo, guards, testbed."""
        self.fleet, self.replica = fleet, replica
        engine, journal, clock = fleet.engine(replica), journal or MemoryJournal(), FleetClock(fleet)
        with policy_errors(policy.name):
            self.controller = Controller(engine, policy, journal, clock, seed=seed, pace=PACE, **more)
            self.controller.start()

    @abstractmethod
    def look(self) -> None:
        """Take a step of the controller and note its result."""

    def step(self) -> Step:
        """Take a step of the controller; an exception of the policy ends the suite."""
        step = self.controller.step()
        raise_failure([step])
        return step

    @property
    def wanted(self) -> Allocation:
        """The allocation that runs, or will run after the present change."""
        return self.fleet.wanted[self.replica]

    @property
    def arrived(self) -> float:
        """Records that have arrived at the sources."""
        return float(self.fleet.arrived[:, self.replica].sum())

    @property
    def waiting(self) -> float:
        """Records that wait at the sources."""
        return float((self.fleet.arrived - self.fleet.taken)[:, self.replica].sum())

    def last(self, seconds: int) -> Seconds:
        """Return the measurements of the last seconds."""
        fleet = self.fleet
        rows = fleet.span(fleet.now - seconds, fleet.now, self.replica)
        arrived, taken, latency_s = (rows[:, fleet.rows[name]] for name in ("arrived", "taken", "latency"))
        return Seconds((arrived - taken).sum(axis=1), taken.sum(axis=1), latency_s[:, 0].copy())


R = TypeVar("R")


def look_after(fleet: Fleet, players: Iterable[Player], seconds: int) -> None:
    """Advance the fleet by these seconds, then let every player look once."""
    fleet.advance(seconds)
    for player in players:
        player.look()


def by_method(names: Iterable[str], results: Iterable[R]) -> dict[str, list[R]]:
    """Group results by method."""
    grouped: dict[str, list[R]] = {}
    for name, result in zip(names, results, strict=True):
        grouped.setdefault(name, []).append(result)
    return grouped
