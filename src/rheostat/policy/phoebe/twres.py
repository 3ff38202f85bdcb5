"""TWRES: the smallest scale-out that copes with the load to come; a step up where latency is broken.

Hu, Kang, Zheng: "Stream data load prediction for resource scaling using online support vector regression", Algorithms
2019, as Phoebe's section IV-C describes it: the same profile, forecast and interval as Phoebe, no thought of recovery.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rheostat.job.decision import Decision, Reason, changes, direction
from rheostat.job.frozen import check_number
from rheostat.policy.explain import rate, sustains
from rheostat.policy.phoebe.foresight import forecast, scale_out, sizes
from rheostat.policy.phoebe.looking_ahead import At, Evaluating
from rheostat.policy.phoebe.policy import projected


@dataclass(frozen=True)
class TWRES(Evaluating):
    """Sizes for the forecast by T_max alone, and adds a worker when the latency constraint is broken."""

    name: ClassVar[str] = "twres"

    max_latency_s: float = 2.0
    """The latency constraint, in seconds; the paper's is 2000 ms."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("max_latency_s of policy 'twres'", self.max_latency_s, least=1e-9)

    def decide(self, situation: At) -> Decision:
        """Choose the smallest scale-out whose T_max is above the load to come."""
        if asked := self.profiling(situation):
            return asked
        window, running, seen = situation.window, situation.running, situation.knowledge
        if window.at_s < (due_s := self.due_s(situation)):
            sentence = f"twres: the next evaluation is in {due_s - window.at_s:.0f} s"
            return Decision.hold(Reason.WAITING, sentence, memo=situation.memo)
        capacity = seen.capacity("never")
        if capacity is None or seen.load.newest is None:
            sentence = "twres: neither a profile nor a busy window tells what the job is able to do"
            return Decision.hold(Reason.WAITING, sentence, memo=situation.memo)
        load = projected(forecast(situation, self.forecast, self.horizon_s), 5)
        choices = sizes(situation, self.smallest, self.largest)
        able = [pair for pair in choices if capacity.per_s(pair[0]) >= load]
        size, chosen = able[0] if able else choices[-1]
        latency_s = window.latency.event_p95_s if window.latency else None
        now = scale_out(running)
        because = f"{rate(load)} are expected, and {size} workers do {capacity.per_s(size):,.0f}/s"
        if capacity.per_s(now) >= load and latency_s is not None and latency_s > self.max_latency_s:
            more = [pair for pair in choices if pair[0] > now]
            size, chosen = more[0] if more else choices[-1]
            because = f"latency is {latency_s:.1f} s, {self.max_latency_s:g} s are allowed"
        evidence = {"load_per_s": load, "t_max_per_s": capacity.per_s(size)}
        memo = self.next(situation)
        expects = sustains(load) if capacity.per_s(size) >= load else sustains(None)
        if chosen == running:
            reason = Reason.STEADY if able else Reason.UNDER_PROVISIONED
            return Decision.hold(reason, f"twres: {because}", evidence=evidence, expects=expects, memo=memo)
        sentence = f"twres: {changes(running, chosen)}, because {because}"
        return Decision(chosen, direction(running, chosen), sentence, evidence, expects, memo)
