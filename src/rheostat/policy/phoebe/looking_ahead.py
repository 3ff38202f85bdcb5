"""What Phoebe, TWRES and ours share: a profile before anything else, and a forecast; the first two an interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from rheostat.job.decision import Decision, Reason
from rheostat.job.frozen import check_number, check_whole
from rheostat.job.record import Record
from rheostat.planner.profiling import Profiling, clip_to_limits
from rheostat.policy.phoebe.foresight import CHOSEN, Known, fold, next_trials
from rheostat.ports import Policy, Situation

At = Situation[Known]
ForecasterName = Literal[
    "chosen", "trend", "last value", "drift", "autoregression", "profile", "holt-winters", "ces", "arima"
]


@dataclass(frozen=True)
class LookingAhead(Policy[Known]):
    """Profiles first, then decides with a forecast of the load."""

    horizon_s: float = 600.0
    """How far the forecast goes, in seconds."""
    forecast: ForecasterName = "trend"
    """The forecaster, or `chosen`: the loop's, by back-test. The last three (statsforecast) take longer than a step."""
    profile: bool = True
    """Whether the job is profiled on a testbed first; off, or without a testbed, what the running job shows must do."""
    smallest: int = 2
    """Smallest scale-out that is profiled."""
    largest: int = 24
    """Largest scale-out that is profiled, and that is chosen where nothing bounds the job."""
    deployments: int = 8
    """Scale-outs that are profiled, equally spaced."""
    rate_step_per_s: float = 20_000.0
    """First rate of the profile, and the step from one to the next, in records/s."""
    settle_s: float = 300.0
    """Seconds before a profiled deployment is looked at."""
    observe_s: float = 120.0
    """Seconds for which it is then looked at."""

    def __post_init__(self) -> None:
        who = f"of policy {self.name!r}"
        check_number(f"horizon_s {who}", self.horizon_s, least=1.0)
        check_whole(f"largest {who}", self.largest, 1)
        _ = self.plan

    @property
    def wants_forecast(self) -> bool:  # type: ignore[override]
        """Whether the loop is to forecast the load, with a model that it chooses itself."""
        return self.forecast == CHOSEN

    @property
    def plan(self) -> Profiling:
        """What is profiled."""
        return Profiling(
            self.smallest, self.largest, self.deployments, self.rate_step_per_s, self.settle_s, self.observe_s
        )

    def initial(self) -> Known:
        """Return nothing seen yet."""
        return Known()

    def learn(self, knowledge: Known, record: Record) -> Known:
        """Fold windows, failures and measurements."""
        return fold(knowledge, record)

    def profiling(self, situation: At) -> Decision | None:
        """Ask for the next round of the profile; None when it is done, or cannot be had."""
        seen = situation.knowledge
        if not self.profile or seen.profile_problem:
            return None
        trials = next_trials(clip_to_limits(self.plan, situation.limits), situation, seen.profile)
        if not trials:
            return None
        phase = trials[0].phases[-1]
        rate = sum(phase.rates_per_s.values())
        sentence = f"{self.name}: profiles {len(trials)} deployments at {rate:,.0f}/s first"
        evidence = {"profiled": float(len(seen.profile)), "rate_per_s": rate}
        return Decision.hold(Reason.TRIAL, sentence, evidence=evidence, memo=situation.memo, trials=trials)


@dataclass(frozen=True)
class Evaluating(LookingAhead):
    """Decides every `evaluation_s` only."""

    forecast: ForecasterName = "autoregression"
    """The forecaster; the paper's was fitted to its series, too."""
    evaluation_s: float = 600.0
    """Seconds between two evaluations (E)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number(f"evaluation_s of policy {self.name!r}", self.evaluation_s, least=1.0)

    def due_s(self, situation: At) -> float:
        """Return when the next evaluation is: an interval after the last one, and after the last change's end."""
        now, due = situation.window.at_s, float(situation.memo.get("due_s", situation.window.at_s))
        if situation.changed_at_s is not None and situation.changed_at_s > float(situation.memo.get("at_s", 0.0)):
            due = max(due, situation.changed_at_s + self.evaluation_s)
        # A clock that was set back must not keep the policy waiting for ever.
        return now if due > now + 2 * self.evaluation_s else due

    def next(self, situation: At) -> dict[str, Any]:
        """Return the memo that names the next evaluation, an interval from now."""
        now = situation.window.at_s
        return {"at_s": now, "due_s": now + self.evaluation_s}
