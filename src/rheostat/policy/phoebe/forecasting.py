"""What Phoebe, TWRES and ours share: a profile first, then a forecast; Phoebe and TWRES also an evaluation interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from rheostat.job.decision import Decision, Reason
from rheostat.job.frozen import check_number, check_whole
from rheostat.job.record import Record
from rheostat.planner.profiling import Profiling, clip_to_limits
from rheostat.policy.phoebe.knowledge import CHOSEN, Knowledge, fold, next_trials
from rheostat.ports import Policy, Situation

At = Situation[Knowledge]
Refresh = Literal["full", "never"]
ForecasterName = Literal[
    "chosen", "trend", "last value", "drift", "autoregression", "profile", "holt-winters", "ces", "arima"
]

DECIDED = "at_s"
"""Key of the memo with the moment of the last decision."""


@dataclass(frozen=True)
class ForecastingPolicy(Policy[Knowledge]):
    """Profiles first, then decides with a forecast of the load."""

    horizon_s: float = 600.0
    """Seconds ahead that the forecast covers."""
    forecast: ForecasterName = "trend"
    """The forecaster; `chosen` uses the control loop's. The last three (statsforecast) take longer than a step."""
    profile: bool = True
    """Whether to profile the job on a testbed first; if false, or without a testbed, its live windows are used."""
    smallest: int = 2
    """Smallest profiled scale-out."""
    largest: int = 24
    """Largest profiled scale-out; also the largest size of a job without a bound."""
    deployments: int = 8
    """Number of profiled scale-outs, equally spaced."""
    rate_step_per_s: float = 20_000.0
    """First rate of the profile, and the increase from round to round, in records/s."""
    settle_s: float = 300.0
    """Seconds before a profiled deployment is observed."""
    observe_s: float = 120.0
    """Observed seconds of a profiled deployment."""

    def __post_init__(self) -> None:
        where = f"of policy {self.name!r}"
        check_number(f"horizon_s {where}", self.horizon_s, least=1.0)
        check_whole(f"largest {where}", self.largest, 1)
        _ = self.plan

    @property
    def wants_forecast(self) -> bool:  # type: ignore[override]
        """Whether the control loop forecasts the load with the model that its back-test selects."""
        return self.forecast == CHOSEN

    @property
    def plan(self) -> Profiling:
        """Scale-outs, rates and durations of the profile."""
        return Profiling(
            self.smallest, self.largest, self.deployments, self.rate_step_per_s, self.settle_s, self.observe_s
        )

    def initial(self) -> Knowledge:
        """Return no knowledge."""
        return Knowledge()

    def learn(self, knowledge: Knowledge, record: Record) -> Knowledge:
        """Store windows, failures and measurements."""
        return fold(knowledge, record)

    def profiling(self, situation: At) -> Decision | None:
        """Request the next round of the profile; None if it is complete, or cannot be measured."""
        knowledge = situation.knowledge
        # The first decision comes after the profile.
        if not self.profile or knowledge.profile_problem or DECIDED in situation.memo:
            return None
        trials = next_trials(clip_to_limits(self.plan, situation.limits), situation, knowledge.profile)
        if not trials:
            return None
        phase = trials[0].phases[-1]
        rate = sum(phase.rates_per_s.values())
        sentence = f"{self.name}: profiles {len(trials)} deployments at {rate:,.0f}/s first"
        evidence = {"profiled": float(len(knowledge.profile)), "rate_per_s": rate}
        return Decision.hold(Reason.TRIAL, sentence, evidence=evidence, memo=situation.memo, trials=trials)


@dataclass(frozen=True)
class IntervalPolicy(ForecastingPolicy):
    """Decides once every `evaluation_s`."""

    forecast: ForecasterName = "autoregression"
    """The forecaster; the paper also fits its forecaster to the job's series."""
    evaluation_s: float = 600.0
    """Seconds between two evaluations (E)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number(f"evaluation_s of policy {self.name!r}", self.evaluation_s, least=1.0)

    def due_s(self, situation: At) -> float:
        """Return the moment of the next evaluation: an interval after the last one, and after the end of a change."""
        now, due = situation.window.at_s, float(situation.memo.get("due_s", situation.window.at_s))
        if situation.changed_at_s is not None and situation.changed_at_s > float(situation.memo.get(DECIDED, 0.0)):
            due = max(due, situation.changed_at_s + self.evaluation_s)
        # A clock that was set back must not delay the policy for ever.
        return now if due > now + 2 * self.evaluation_s else due

    def next(self, situation: At) -> dict[str, Any]:
        """Return the memo with the moment of the next evaluation, an interval from now."""
        now = situation.window.at_s
        return {DECIDED: now, "due_s": now + self.evaluation_s}
