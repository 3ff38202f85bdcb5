"""TWRES: the smallest scale-out for the forecast load, and one worker more if latency is too high.

Hu, Kang, Zheng: "Stream data load prediction for resource scaling using online support vector regression", Algorithms
2019, as Phoebe's section IV-C describes it: the same profile, forecast and interval as Phoebe, without recovery times.
The capacities are corrected by the running job as Phoebe's are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rheostat.job.decision import Decision, Reason, changes, direction
from rheostat.job.frozen import check_number
from rheostat.policy.explanation import rate, sustains
from rheostat.policy.phoebe.forecasting import At, IntervalPolicy, Refresh
from rheostat.policy.phoebe.knowledge import allowed_sizes, forecast_rates, scale_out
from rheostat.policy.phoebe.policy import projected_load


@dataclass(frozen=True)
class TWRES(IntervalPolicy):
    """Sizes for the forecast by T_max alone, and adds a worker when latency exceeds its limit."""

    name: ClassVar[str] = "twres"

    max_latency_s: float = 2.0
    """Latency limit, in seconds; the paper's is 2000 ms."""
    refresh: Refresh = "full"
    """What corrects the profile: windows in which the job is at its capacity, or nothing."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("max_latency_s of policy 'twres'", self.max_latency_s, least=1e-9)

    def decide(self, situation: At) -> Decision:
        """Select the smallest scale-out whose T_max is above the forecast load."""
        if trials := self.profiling(situation):
            return trials
        window, running, knowledge = situation.window, situation.running, situation.knowledge
        if window.at_s < (due_s := self.due_s(situation)):
            sentence = f"twres: the next evaluation is in {due_s - window.at_s:.0f} s"
            return Decision.hold(Reason.WAITING, sentence, memo=situation.memo)
        capacity = knowledge.capacity(self.refresh)
        if capacity is None or knowledge.load.newest is None:
            sentence = "twres: the job's capacity is not known yet: there is no profile and no busy window"
            return Decision.hold(Reason.WAITING, sentence, memo=situation.memo)
        load = projected_load(forecast_rates(situation, self.forecast, self.horizon_s), 5)
        choices = allowed_sizes(situation, self.smallest, self.largest)
        sufficient = [pair for pair in choices if capacity.per_s(pair[0]) >= load]
        size, target = sufficient[0] if sufficient else choices[-1]
        latency_s = window.latency.event_p95_s if window.latency else None
        now = scale_out(running)
        because = f"{rate(load)} are expected, and {size} workers process {capacity.per_s(size):,.0f}/s"
        if capacity.per_s(now) >= load and latency_s is not None and latency_s > self.max_latency_s:
            more = [pair for pair in choices if pair[0] > now]
            size, target = more[0] if more else choices[-1]
            because = f"latency is {latency_s:.1f} s, the limit {self.max_latency_s:g} s"
        evidence = {"load_per_s": load, "t_max_per_s": capacity.per_s(size)}
        memo = self.next(situation)
        expects = sustains(load) if capacity.per_s(size) >= load else sustains(None)
        if target == running:
            reason = Reason.STEADY if sufficient else Reason.UNDER_PROVISIONED
            return Decision.hold(reason, f"twres: {because}", evidence=evidence, expects=expects, memo=memo)
        sentence = f"twres: {changes(running, target)}, because {because}"
        return Decision(target, direction(running, target), sentence, evidence, expects, memo)
