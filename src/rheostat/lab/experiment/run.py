"""What a trial came to, on whatever ground it ran. Moments are seconds since the load's first second."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic

import numpy as np
from numpy.typing import NDArray

from rheostat.control.controller import Step
from rheostat.engine.batches.progress import Batch
from rheostat.errors import PolicyError
from rheostat.lab.experiment.failures import raise_failure
from rheostat.lab.experiment.processes import in_own_process
from rheostat.lab.experiment.trial import J, Progress, Trial

if TYPE_CHECKING:
    from rheostat.kafka.output import Latency

Floats = NDArray[np.float64]
BEHIND_S = 2.0
"""Seconds of lag above which a job is behind."""
UNNOTICED_S = 60
"""Seconds within which a failure must cause a lag, to have caused one."""


@dataclass(frozen=True)
class Run(Generic[J]):
    """One trial's steps and measurements; what its ground does not measure stays empty."""

    trial: Trial[J]
    engine: str
    end_s: float
    """When measuring ended."""
    start_s: float = 0.0
    """The load's first second, since the epoch; 0 in simulated time."""
    steps: tuple[Step, ...] = ()
    trace: Mapping[str, Floats] = field(default_factory=dict)
    """Name -> its value in every second, where the ground knows it."""
    batches: tuple[Batch, ...] = ()
    sizes: tuple[tuple[float, int], ...] = ()
    """(moment, executors), whenever the number changed."""
    resize_s: tuple[float, ...] = ()
    """Seconds that each scripted resize took."""
    silences_s: tuple[float, ...] = ()
    """Of every change: the longest time without output around it."""
    latency: Latency | None = None
    """As the broker's time stamps have it."""
    drained_s: float | None = None
    """When every record had its result; None when that took too long."""
    records: int = 0
    """Records that the load has brought."""
    checked: int = 0
    """Rows of the output that were held against a batch computation."""
    wrong: int = 0
    """Rows that are lost, or keys whose last value is not what it must be."""
    repeated: int = 0
    """Results that were written twice."""
    failed: str = ""
    """The error with which the query ended, "" when it ran to the end."""
    policy_error: PolicyError | None = None
    """The policy's exception outside a step, after which nothing sizes the job."""

    @property
    def policy(self) -> str:
        """The label under which it is compared."""
        return self.trial.way

    @property
    def seed(self) -> int:
        """The seed of its trial."""
        return self.trial.seed

    @property
    def policy_failure(self) -> PolicyError | None:
        """The first exception of the policy."""
        return next((step.policy_failure for step in self.steps if step.policy_failure), self.policy_error)

    def raise_failure(self) -> None:
        """Raise the first exception of the policy, for a run that must not have one."""
        raise_failure(self.steps)
        if self.policy_error is not None:
            raise self.policy_error

    @property
    def policy_failures(self) -> int:
        """Decisions that the policy failed to make; a policy that never came to decide failed once."""
        return sum(step.policy_failure is not None for step in self.steps) + (self.policy_error is not None)

    @property
    def reconfigurations(self) -> int:
        """Changes that were applied."""
        return len({step.intent.id for step in self.steps if step.intent})

    @property
    def decision_ms(self) -> float:
        """Mean milliseconds of a decision."""
        return float(np.mean([step.decision_ms for step in self.steps])) if self.steps else 0.0

    def recoveries_s(self, failures_s: Sequence[float]) -> tuple[float, ...]:
        """Seconds from each failure until the job was no longer behind, by its source offsets; infinite if never."""
        return tuple(caught_up_s(self.trace["lag_s"], failure) for failure in failures_s)


def run_apart(
    run_trial: Callable[[Trial[J]], Run[J]], trials: Sequence[Trial[J]], progress: Progress
) -> tuple[Run[J], ...]:
    """Run trials one after the other, each in a process of its own."""
    done = []
    for number, trial in enumerate(trials, start=1):
        progress(f"{number} of {len(trials)}: {trial.job.name}, {trial.way}, {trial.duration_s:g} s")
        done.append(in_own_process(run_trial, trial))
    return tuple(done)


def caught_up_s(
    waiting: Floats, since_s: float, little: float | Floats = BEHIND_S, noticed_s: int = UNNOTICED_S
) -> float:
    """Return the seconds from a moment until no more than a little waits again; 0 where no more did, infinite if never.

    A failure is noticed late: what it causes may begin only `noticed_s` seconds after it. Where the job is behind
    already, for a change say, it is the last such stretch that begins by then.
    """
    behind = (waiting > little)[int(since_s) :]
    soon = behind[:noticed_s]
    begins = soon & ~np.concatenate([[False], soon[:-1]])[: soon.size]
    if not begins.any():
        return 0.0
    first = int(np.flatnonzero(begins)[-1])
    caught = np.flatnonzero(~behind[first:])
    return float(first + caught[0]) if caught.size else math.inf


@dataclass(frozen=True)
class Series:
    """A number over time, as a page draws it: one panel, with a line per run."""

    title: str
    at_s: Floats
    values: Floats
    unit: str = ""
    height: int = 150
    step: bool = False
    log: bool = False
    limit: float | None = None
    """The value that the SLO allows."""
