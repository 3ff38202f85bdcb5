"""The steps and measurements of one trial, on any ground. Moments are seconds since the load's first second."""

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
from rheostat.lab.experiment.oracle.bound import Bound
from rheostat.lab.experiment.processes import in_own_process
from rheostat.lab.experiment.trial import J, Progress, Trial

if TYPE_CHECKING:
    from rheostat.kafka.output import Latency

Floats = NDArray[np.float64]
TaskWork = tuple[int, float, float, float]
"""A task that has read input: number of its batch, launch, seconds, and the share of the batch's records it read."""
BEHIND_S = 2.0
"""Seconds of lag above which a job is behind."""
UNNOTICED_S = 60
"""Seconds after a failure within which its lag must begin."""


@dataclass(frozen=True)
class Run(Generic[J]):
    """One trial's steps and measurements; fields that its ground does not measure stay empty."""

    trial: Trial[J]
    engine: str
    end_s: float
    """End of the measurement."""
    start_s: float = 0.0
    """Epoch time of the load's first second; 0 in simulated time."""
    steps: tuple[Step, ...] = ()
    trace: Mapping[str, Floats] = field(default_factory=dict)
    """Name -> value in every second, on grounds that record it."""
    batches: tuple[Batch, ...] = ()
    tasks: tuple[TaskWork, ...] = ()
    """The tasks that read the input of its batches, as Spark lists them at the end."""
    sizes: tuple[tuple[float, int], ...] = ()
    """(moment, executors) at every change of the number."""
    resize_s: tuple[float, ...] = ()
    """Seconds of each scripted resize."""
    silences_s: tuple[float, ...] = ()
    """Longest time without output around each change."""
    latency: Latency | None = None
    """Latency by the broker's timestamps."""
    drained_s: float | None = None
    """When every record had its result; None if that took too long."""
    records: int = 0
    """Records of the load."""
    checked: int = 0
    """Rows of the output that were compared with a batch computation."""
    wrong: int = 0
    """Lost rows, or keys with a wrong last value."""
    repeated: int = 0
    """Results written twice."""
    failed: str = ""
    """First line of the error that ended the query; "" if it ran to the end."""
    bound: Bound | None = None
    """Least cost of its trial, whatever sizes the job; None where that is unknown."""
    policy_error: PolicyError | None = None
    """The policy's exception outside a step, after which nothing sizes the job."""

    @property
    def policy(self) -> str:
        """The label of the policy in a comparison."""
        return self.trial.way

    @property
    def seed(self) -> int:
        """The trial's seed."""
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
        """Number of applied changes."""
        return len({step.intent.id for step in self.steps if step.intent})

    @property
    def decision_ms(self) -> float:
        """Mean time of a decision in milliseconds."""
        return float(np.mean([step.decision_ms for step in self.steps])) if self.steps else 0.0

    def recoveries_s(self, failures_s: Sequence[float]) -> tuple[float, ...]:
        """Return the seconds from each failure until the job has caught up by its offsets; infinite if never."""
        return tuple(caught_up_s(self.trace["lag_s"], failure) for failure in failures_s)


def run_apart(
    run_trial: Callable[[Trial[J]], Run[J]], trials: Sequence[Trial[J]], progress: Progress
) -> tuple[Run[J], ...]:
    """Run trials one after the other, each in its own process."""
    runs = []
    for number, trial in enumerate(trials, start=1):
        progress(f"{number} of {len(trials)}: {trial.job.name}, {trial.way}, {trial.duration_s:g} s")
        runs.append(in_own_process(run_trial, trial))
    return tuple(runs)


def caught_up_s(
    waiting: Floats, since_s: float, limit: float | Floats = BEHIND_S, noticed_s: int = UNNOTICED_S
) -> float:
    """Return the seconds from a failure until `waiting` is within the limit; 0 if it stays so, infinite if never.

    A failure is noticed late: its backlog may begin up to `noticed_s` seconds after it. If the job is behind several
    times by then, because of a change for example, the last of these spans counts.
    """
    behind = (waiting > limit)[int(since_s) :]
    soon = behind[:noticed_s]
    begins = soon & ~np.concatenate([[False], soon[:-1]])[: soon.size]
    if not begins.any():
        return 0.0
    first = int(np.flatnonzero(begins)[-1])
    caught = np.flatnonzero(~behind[first:])
    return float(first + caught[0]) if caught.size else math.inf


@dataclass(frozen=True)
class Series:
    """A number over time: one panel of a page, with a line per run."""

    title: str
    at_s: Floats
    values: Floats
    unit: str = ""
    height: int = 150
    step: bool = False
    log: bool = False
    limit: float | None = None
    """The SLO's limit."""
