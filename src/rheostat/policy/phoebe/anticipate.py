"""Ours: meet the recovery-time objective with learned downtimes, and change only when it is needed or pays.

Differences from Phoebe:
- D is not a constant: it is learned from failures and drills of this job (`model/downtime.py`), and the objective uses
  its upper quantile (`confidence`). Before the first one a wide prior replaces it, so the job is large until then.
- T_max is corrected by every window's records per useful second, not only during a catch-up.
- The objective must hold for a failure at any moment until a change could help (`soon_s`), not only now.
- A change has a price (`price_s`). The job shrinks only when the slot-seconds wasted so far equal the price. It grows
  when the objective would be missed, and then as far as the slots that are not needed yet cost at most two prices. So
  sizes follow a fast load in large steps and a slow one closely, without knowing which it is.
- A job that catches up is left alone, unless it never would.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Expectation, Interval, Reason, changes, direction
from rheostat.job.frozen import check_number
from rheostat.model.downtime import PRIORS, Downtimes, Kind
from rheostat.model.recovery import Course, Floats, recovery_time_s
from rheostat.policy.explanation import rate
from rheostat.policy.phoebe.forecasting import DECIDED, At, ForecastingPolicy
from rheostat.policy.phoebe.knowledge import Knowledge, allowed_sizes, forecast_rates, load_course, scale_out
from rheostat.policy.phoebe.later_failures import needed_later_per_s
from rheostat.policy.phoebe.outage import NORMAL_LAG_S, PREDICTED, Outages
from rheostat.policy.phoebe.policy import TARGET_S

CONFIDENCE = 0.9
"""Share of failures that meet the objective if neither the policy nor the SLO sets one."""
LONGEST_STEP_S = 300.0
"""Longest counted pause between two windows, in seconds: clocks jump."""


@dataclass(frozen=True)
class Outlook:
    """The forecast load, and what the objective needs under it."""

    load: Floats
    """The forecast, one rate per step."""
    peaks: Floats
    """Capacity that the objective needs up to each of the coming steps."""
    step_s: float
    target_s: float
    confidence: float
    downtime_s: float
    """Quantile of the downtime at this confidence."""
    recovery_s: float
    """Recovery time of a failure now with the mean downtime."""
    recovery_high_s: float
    """Recovery time of a failure now with the quantile of the downtime."""

    def place(self, within_s: float) -> int:
        """Return the index of the step that lies this many seconds ahead."""
        return min(int(within_s / self.step_s), len(self.peaks) - 1)


@dataclass(frozen=True)
class Anticipate(ForecastingPolicy):
    """Meets the recovery-time objective with a given confidence, in few changes."""

    name: ClassVar[str] = "anticipate"
    reads_partial_windows: ClassVar[bool] = True
    """Source offsets are current even in the windows right after a change, and the policy needs nothing else then."""

    target_s: float | None = None
    """Longest recovery time, in seconds; default: the SLO's max_recovery_s, else 180."""
    confidence: float | None = None
    """Share of failures that must recover within the target; default: the SLO's recovery_quantile, else 0.9."""
    prior_downtime_s: float = PRIORS[Kind.RESTART][0]
    """Mean of the downtime before the first failure or drill, in seconds."""
    prior_spread: float = PRIORS[Kind.RESTART][1]
    """Its standard deviation as a share of it; at 0.15, the scatter of one job's downtimes, the prior has the weight of
    one failure, and a wide one next to none."""
    horizon_s: float = 1800.0
    """Seconds ahead that the forecast covers."""
    soon_s: float = 90.0
    """Seconds ahead for which the present size must meet the objective: until a change could help."""
    stay_s: float = 300.0
    """Seconds for which a smaller size must be enough."""
    price_s: float = 90.0
    """Price of a change, in seconds of the largest size."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("target_s of policy 'anticipate'", self.target_s, least=1e-9)
        check_number("confidence of policy 'anticipate'", self.confidence, least=0.01, most=0.999)
        check_number("prior_spread of policy 'anticipate'", self.prior_spread, least=1e-3, most=10.0)
        for what in ("prior_downtime_s", "soon_s", "stay_s", "price_s"):
            check_number(f"{what} of policy 'anticipate'", getattr(self, what), most=86_400.0)

    def initial(self) -> Knowledge:
        """Return the prior of the downtime."""
        return Knowledge(outages=Outages(Downtimes().with_prior(self.prior_downtime_s, self.prior_spread)))

    def decide(self, situation: At) -> Decision:
        """Grow when the objective would be missed, shrink when it pays."""
        knowledge, allocation = situation.knowledge, situation.window.running
        if allocation is None or set(allocation.tasks) != set(situation.spec.tunable_names):
            return Decision.hold(Reason.UNUSABLE, "anticipate: the running allocation is not known")
        if trials := self.profiling(situation):
            return trials
        running = situation.running
        capacity = knowledge.capacity("busy")
        if capacity is None or knowledge.load.newest is None:
            sentence = "anticipate: the job's capacity is not known yet: there is no profile and no busy window"
            return Decision.hold(Reason.WAITING, sentence, memo=situation.memo)
        now = scale_out(running)
        outlook = self.outlook(situation, capacity.per_s(now))
        choices = allowed_sizes(situation, self.smallest, self.largest)
        met = capacity.per_s(choices[-1][0]) >= float(outlook.peaks[outlook.place(self.soon_s)])
        load = float(outlook.load[0])
        because = f"{rate(load)} arrive and recovery from a failure now would take {_up_to(outlook.recovery_high_s)}"
        because += f" with {now} workers"
        if not met:
            because += f"; no size recovers within {outlook.target_s:g} s with {outlook.confidence:.0%} confidence"
        if knowledge.outages.downtimes.guessed:
            because += "; no failure has shown its downtime yet (`rheostat drill` measures it)"
        if capacity.is_far(now):
            because += "; this size is far from any measured one"
        evidence = self.evidence(knowledge, outlook, capacity.per_s(now))
        most = max(outlook.recovery_s, outlook.recovery_high_s, outlook.target_s)
        expects = Expectation(float(outlook.load.max()), recovery_s=Interval(0.0, outlook.recovery_s, most))
        behind = knowledge.outages.under_way or (situation.window.lag_s or 0.0) > 4 * NORMAL_LAG_S
        if behind and capacity.per_s(now) > float(outlook.load.max()):
            sentence = f"anticipate: the job catches up and is left alone; {because}"
            return Decision.hold(Reason.WAITING, sentence, evidence=evidence, memo=situation.memo)
        target, wasted = self.select(situation, outlook, [(n, a, capacity.per_s(n)) for n, a in choices])
        memo = {DECIDED: situation.window.at_s, "wasted": wasted}
        if target is None or target == running:
            reason = Reason.STEADY if met else Reason.UNDER_PROVISIONED
            return Decision.hold(reason, f"anticipate: {because}", evidence=evidence, expects=expects, memo=memo)
        sentence = f"anticipate: {changes(running, target)}, because {because}"
        # From now on a failure meets the new size.
        after = self.outlook(situation, capacity.per_s(scale_out(target)))
        evidence |= {PREDICTED: after.recovery_s, "recovery_high_s": after.recovery_high_s}
        most = max(after.recovery_s, after.recovery_high_s, outlook.target_s)
        expects = replace(expects, recovery_s=Interval(0.0, after.recovery_s, most))
        return Decision(target, direction(running, target), sentence, evidence, expects, memo)

    def select(
        self, situation: At, outlook: Outlook, choices: list[tuple[int, Allocation, float]]
    ) -> tuple[Allocation | None, float]:
        """Return the allocation to change to (None to stay), and the slot-seconds wasted so far by not shrinking."""
        now, step_s = scale_out(situation.running), outlook.step_s
        price = self.price_s * choices[-1][1].slots
        capacities = np.array([per_s for _, _, per_s in choices])
        # For every coming step the index of the smallest size that meets the objective until then.
        places = np.minimum(np.searchsorted(capacities, outlook.peaks * (1 - 1e-9)), len(choices) - 1)
        slots = np.array([allocation.slots for _, allocation, _ in choices], dtype=float)
        soon, stays = (int(places[outlook.place(seconds)]) for seconds in (self.soon_s, self.stay_s))
        if choices[soon][0] > now:
            for larger in range(soon + 1, int(places[-1]) + 1):
                until = int(np.argmax(places >= larger))
                if (slots[larger] - slots[places[:until]]).sum() * step_s <= 2.0 * price:
                    soon = larger
            return choices[soon][1], 0.0
        if choices[stays][0] >= now:
            return None, 0.0
        passed = situation.window.at_s - float(situation.memo.get(DECIDED, situation.window.at_s))
        saved = (situation.running.slots - slots[stays]) * min(max(passed, 0.0), LONGEST_STEP_S)
        wasted = float(situation.memo.get("wasted", 0.0)) + float(saved)
        return (choices[stays][1], 0.0) if wasted >= price else (None, wasted)

    def outlook(self, situation: At, capacity_per_s: float) -> Outlook:
        """Forecast the load, and compute what the objective needs under it."""
        knowledge = situation.knowledge
        target_s = self.target_s or situation.slo.max_recovery_s or TARGET_S
        # A failure falls anywhere between two checkpoints; downtimes are learned with the same half interval.
        back_s = 0.5 * (situation.spec.checkpoint_interval_s or 0.0)
        longest = max(self.soon_s, self.stay_s, self.horizon_s)
        path = forecast_rates(situation, self.forecast, longest + target_s)
        course, downtimes, step_s = load_course(knowledge, path), knowledge.outages.downtimes, knowledge.load.step_s
        confidence = self.confidence or situation.slo.recovery_quantile or CONFIDENCE
        downtime_s = downtimes.quantile(confidence)
        later = step_s * np.arange(int(longest / step_s) + 1, dtype=np.float64)
        needed = needed_later_per_s(target_s, course, back_s, downtime_s, later)

        def recovers_in(course: Course, downtime_s: float) -> float:
            return recovery_time_s(capacity_per_s, course, back_s, downtime_s)

        return Outlook(
            path,
            np.maximum.accumulate(needed),
            step_s,
            target_s,
            confidence,
            downtime_s,
            recovers_in(course, downtimes.expected_s()),
            recovers_in(course, downtime_s),
        )

    def evidence(self, knowledge: Knowledge, outlook: Outlook, capacity_per_s: float) -> dict[str, float]:
        """Return the numbers behind a decision, and the last failure with its prediction."""
        evidence = {
            "load_per_s": float(outlook.load[0]),
            "t_max_per_s": capacity_per_s,
            "downtime_s": outlook.downtime_s,
            PREDICTED: outlook.recovery_s,
            "recovery_high_s": outlook.recovery_high_s,
            "target_s": outlook.target_s,
        }
        if knowledge.outages.recoveries:
            last = knowledge.outages.recoveries[-1]
            evidence["last_recovery_s"] = last.took_s
            if last.predicted_s is not None:
                evidence["last_predicted_s"] = last.predicted_s
        return evidence


def _up_to(seconds: float) -> str:
    return f"up to {seconds:.0f} s" if math.isfinite(seconds) else "for ever"
