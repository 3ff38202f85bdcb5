"""The records of the journal: one per event, in the order of the events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from rheostat.errors import InvalidValue, nearest
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Measurement, Outcome
from rheostat.job.forecast import Forecast, ForecastChoice, Foresight
from rheostat.job.frozen import FrozenMap, freeze, put
from rheostat.job.graph import JobSpec
from rheostat.job.guards import Guards
from rheostat.job.observation import Observation
from rheostat.job.plan import Estimate, Plan
from rheostat.job.slo import SLO

RETENTION_S = 14 * 86_400.0
"""Seconds for which records are kept: two weeks, for what returns every week."""


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """The Python file that a policy was loaded from."""

    path: str
    sha256: str


@dataclass(frozen=True)
class Run:
    """The start of a controller, or a change of its job's description: everything that decisions depend on."""

    job: str
    at_s: float
    version: str
    seed: int
    spec: JobSpec
    slo: SLO
    guards: Guards
    policy: str
    options: Mapping[str, Any] = field(default_factory=FrozenMap)
    settings: Mapping[str, Any] = field(default_factory=FrozenMap)
    """Origin of the job (engine, load, interval), for users, reports and the oracle."""
    foresight: Foresight | None = None
    """Settings of the forecast; None if nothing needs one."""
    policy_file: PolicyFile | None = None
    """The policy's file; None if it was not given by a path, and in records of older versions."""
    prior_downtime: tuple[float, float] | None = None
    """Downtime that the recovery floor assumes before the first failure: its mean in seconds, and its standard
    deviation as a share of it. None without an objective, and in records of older versions."""

    def __post_init__(self) -> None:
        put(self, options=freeze(self.options), settings=freeze(self.settings))


@dataclass(frozen=True, slots=True)
class Intent:
    """A change that is about to be applied. It is written before its first effect."""

    id: str
    step: int
    at_s: float
    target: Allocation
    previous: Allocation | None
    undoes: str | None = None


@dataclass(frozen=True, slots=True)
class IntentStep:
    """The next sub-step of a change. It is written before the sub-step."""

    intent: str
    name: str
    at_s: float


class Ending(StrEnum):
    """How a change ended."""

    DONE = "done"
    PARTIAL = "partial"
    FAILED = "failed"
    UNDONE = "undone"


@dataclass(frozen=True, slots=True)
class IntentEnd:
    """The end of a change: the running allocation, and why it differs from the wanted one."""

    intent: str
    at_s: float
    ending: Ending
    running: Allocation | None
    why: str = ""
    downtime_s: float | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The control loop's state and the policy's knowledge after all earlier records, as JSON."""

    at_s: float
    step: int
    state: str
    knowledge: str


Record = (
    Run
    | Observation
    | Decision
    | Intent
    | IntentStep
    | IntentEnd
    | Outcome
    | Measurement
    | Snapshot
    | ForecastChoice
    | Forecast
    | Estimate
    | Plan
)

KINDS: Mapping[str, type[Record]] = {
    "run": Run,
    "observation": Observation,
    "decision": Decision,
    "intent": Intent,
    "intent_step": IntentStep,
    "intent_end": IntentEnd,
    "outcome": Outcome,
    "measurement": Measurement,
    "snapshot": Snapshot,
    "forecast_choice": ForecastChoice,
    "forecast": Forecast,
    "estimate": Estimate,
    "plan": Plan,
}

KIND_OF: Mapping[type[Record], str] = {kind: name for name, kind in KINDS.items()}


def kind_of(record: Record) -> str:
    """Return the name of a record's kind; InvalidValue for any other object."""
    kind = KIND_OF.get(type(record))
    if kind is None:
        raise InvalidValue(f"a {type(record).__name__} is not a journal record; the kinds are: {', '.join(KINDS)}")
    return kind


def check_kinds(kinds: Sequence[str]) -> None:
    """Refuse unknown kinds: a misspelt one would otherwise match no record."""
    for kind in kinds:
        if kind not in KINDS:
            raise InvalidValue(f"unknown kind of record {kind!r}, {nearest(kind, KINDS)}")
