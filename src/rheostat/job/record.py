"""What the journal holds: one record per thing that happened, in the order in which it happened."""

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


@dataclass(frozen=True)
class Run:
    """A controller started, or its job's description changed: everything that decisions depend on."""

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
    """Where the job came from (engine, load, interval): for people, for reports, for the oracle."""
    foresight: Foresight | None = None
    """How the load is forecast; None where nothing needs that."""

    def __post_init__(self) -> None:
        put(self, options=freeze(self.options), settings=freeze(self.settings))


@dataclass(frozen=True, slots=True)
class Intent:
    """A change that is about to be made. Written before anything is done."""

    id: str
    step: int
    at_s: float
    target: Allocation
    previous: Allocation | None
    undoes: str | None = None


@dataclass(frozen=True, slots=True)
class IntentStep:
    """The next sub-step of a change. Written before it is done."""

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
    """A change ended: what runs now, and why it is not what was wanted."""

    intent: str
    at_s: float
    ending: Ending
    running: Allocation | None
    why: str = ""
    downtime_s: float | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The loop's state and the policy's knowledge after all records before it, as JSON."""

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
    """Return the kind's name; an error for a thing that is no record."""
    kind = KIND_OF.get(type(record))
    if kind is None:
        raise InvalidValue(f"a {type(record).__name__} is no record of a journal; records are: {', '.join(KINDS)}")
    return kind


def check_kinds(kinds: Sequence[str]) -> None:
    """Refuse names that no record has: a misspelt one would otherwise find nothing."""
    for kind in kinds:
        if kind not in KINDS:
            raise InvalidValue(f"unknown kind of record {kind!r}, {nearest(kind, KINDS)}")
