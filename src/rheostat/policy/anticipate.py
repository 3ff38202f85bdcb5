"""Ours: keep the promise about recovery with learned downtimes, and change only when it is needed or pays.

What differs from Phoebe:
- D is not a constant: it is learned from the failures of this job, by source offsets (`model/outage.py`), and the
  promise takes its upper quantile (`promise`). Before the first failure a prior stands in for it.
- T_max is corrected by every window's records per useful second, not only while the job catches up.
- The promise must hold for a failure at any moment until a change could help (`soon_s`), not only now.
- It looks at every step. It grows when the promise would break, for `grow_for_s`; it shrinks when that lasts for
  `stay_s`. No change is smaller than the share `step` of the largest size, so changes are few.
- While a job catches up it is left alone, unless it never would.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Expectation, Interval, Reason
from rheostat.job.frozen import check_number
from rheostat.model.ahead import needed_later_per_s
from rheostat.model.capacity import Capacity
from rheostat.model.downtime import Downtimes
from rheostat.model.outage import NORMAL_LAG_S, PREDICTED, Outages
from rheostat.model.recovery import Course, Floats, recovery_time_s
from rheostat.policy.explain import changes, direction, rate
from rheostat.policy.foresight import Foresight, course, forecast, scale_out, sizes
from rheostat.policy.looking_ahead import At, LookingAhead
from rheostat.policy.phoebe import TARGET_S


@dataclass(frozen=True)
class Outlook:
    """What lies ahead of the running job."""

    load: Floats
    """The forecast, step by step."""
    peaks: Floats
    """The ability that the promise takes up to each of the coming steps."""
    step_s: float
    target_s: float
    downtime_s: float
    """That the promise reckons with."""
    recovery_s: float
    """If the job failed now, with the mean downtime."""
    recovery_high_s: float
    """The same with the promised quantile."""

    def needed_per_s(self, within_s: float) -> float:
        """Return the ability that keeps the promise for so long."""
        return float(self.peaks[min(int(within_s / self.step_s), len(self.peaks) - 1)])


@dataclass(frozen=True)
class Anticipate(LookingAhead):
    """Keeps a promised recovery time with a promised probability, in few changes."""

    name: ClassVar[str] = "anticipate"

    target_s: float | None = None
    """Longest recovery time, in seconds; left out, `Slo.max_recovery_s`, or 180."""
    promise: float = 0.9
    """Share of failures that must be over within the target."""
    prior_downtime_s: float = 60.0
    """Downtime before a failure was seen, in seconds; it counts as one failure."""
    soon_s: float = 90.0
    """How far ahead the promise must hold with the present size, in seconds: until a change could help."""
    grow_for_s: float = 600.0
    """For how long a larger size must be enough, in seconds."""
    stay_s: float = 600.0
    """For how long a smaller size must be enough, in seconds."""
    step: float = 0.25
    """Smallest change, as a share of the largest size that is allowed."""
    worth: float = 0.2
    """Share of the slots that shrinking must save."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("target_s of policy 'anticipate'", self.target_s, least=1e-9)
        check_number("promise of policy 'anticipate'", self.promise, least=0.01, most=0.999)
        for what in ("prior_downtime_s", "soon_s", "grow_for_s", "stay_s"):
            check_number(f"{what} of policy 'anticipate'", getattr(self, what), most=86_400.0)
        for what in ("step", "worth"):
            check_number(f"{what} of policy 'anticipate'", getattr(self, what), most=1.0)

    def initial(self) -> Foresight:
        """Return nothing but the prior."""
        return Foresight(outages=Outages(Downtimes(assumed_s=self.prior_downtime_s)))

    def decide(self, situation: At) -> Decision:
        """Grow when the promise would break, shrink when it pays."""
        if asked := self.profiling(situation):
            return asked
        seen, running = situation.knowledge, situation.running
        capacity = seen.capacity("busy")
        if capacity is None or seen.load.newest is None:
            sentence = "anticipate: neither a profile nor a busy window tells what the job is able to do"
            return Decision.hold(Reason.WAITING, sentence)
        now = scale_out(running)
        outlook = self.outlook(situation, capacity.per_s(now))
        choices = sizes(situation, self.smallest, self.largest)
        soon = outlook.needed_per_s(self.soon_s)
        kept = capacity.per_s(choices[-1][0]) >= soon
        told = f"{outlook.recovery_high_s:.0f} s" if math.isfinite(outlook.recovery_high_s) else "for ever"
        load = float(outlook.load[0])
        because = f"{rate(load)} arrive and a failure now would take up to {told} with {now} workers"
        if not kept:
            because += f"; no size recovers in {outlook.target_s:g} s {self.promise:.0%} of the time: promise broken"
        if capacity.far(now):
            because += "; far from anything that was seen"
        evidence = self.evidence(seen, outlook, capacity.per_s(now))
        most = max(outlook.recovery_s, outlook.recovery_high_s, outlook.target_s)
        expects = Expectation(float(outlook.load.max()), recovery_s=Interval(0.0, outlook.recovery_s, most))
        behind = seen.outages.under_way or (situation.window.lag_s or 0.0) > 4 * NORMAL_LAG_S
        if behind and capacity.per_s(now) > float(outlook.load.max()):
            sentence = f"anticipate: the job catches up and is left alone; {because}"
            return Decision.hold(Reason.WAITING, sentence, evidence=evidence)
        target = self.choose(outlook, capacity, choices, now)
        if target is None or target == running:
            reason = Reason.STEADY if kept else Reason.UNDER_PROVISIONED
            return Decision.hold(reason, f"anticipate: {because}", evidence=evidence, expects=expects)
        sentence = f"anticipate: {changes(running, target)}, because {because}"
        return Decision(target, direction(running, target), sentence, evidence, expects)

    def choose(
        self, outlook: Outlook, capacity: Capacity, choices: list[tuple[int, Allocation]], now: int
    ) -> Allocation | None:
        """Return the size to change to; None to stay."""
        largest = choices[-1][0]
        least = max(1, round(self.step * largest))

        def smallest(needed_per_s: float, at_least: int = 0) -> tuple[int, Allocation]:
            able = (pair for pair in choices if pair[0] >= at_least and capacity.per_s(pair[0]) >= needed_per_s)
            return next(able, choices[-1])

        if smallest(outlook.needed_per_s(self.soon_s))[0] > now:
            until = max(self.grow_for_s, self.soon_s)
            return smallest(outlook.needed_per_s(until), min(now + least, largest))[1]
        size, target = smallest(outlook.needed_per_s(self.stay_s))
        return target if size <= min(now - least, (1 - self.worth) * now) else None

    def outlook(self, situation: At, able_per_s: float) -> Outlook:
        """Forecast the load, and what the promise takes under it."""
        seen = situation.knowledge
        target_s = self.target_s or situation.slo.max_recovery_s or TARGET_S
        # A failure falls anywhere between two checkpoints; downtimes are learned with the same half interval.
        back_s = 0.5 * (situation.spec.checkpoint_interval_s or 0.0)
        longest = max(self.soon_s, self.grow_for_s, self.stay_s)
        path = forecast(seen, self.forecast, min(longest, self.horizon_s) + target_s)
        around, downtimes, step_s = course(seen, path), seen.outages.downtimes, seen.load.step_s
        promised_s = downtimes.quantile(self.promise)
        later = step_s * np.arange(int(longest / step_s) + 1, dtype=np.float64)
        needed = needed_later_per_s(target_s, around, back_s, promised_s, later)

        def takes(around: Course, downtime_s: float) -> float:
            return recovery_time_s(able_per_s, around, back_s, downtime_s)

        return Outlook(
            path,
            np.maximum.accumulate(needed),
            step_s,
            target_s,
            promised_s,
            takes(around, downtimes.expected_s()),
            takes(around, promised_s),
        )

    def evidence(self, seen: Foresight, outlook: Outlook, able_per_s: float) -> dict[str, float]:
        """Return the numbers behind a decision, and how the last failure compares with what was said of it."""
        found = {
            "load_per_s": float(outlook.load[0]),
            "t_max_per_s": able_per_s,
            "downtime_s": outlook.downtime_s,
            PREDICTED: outlook.recovery_s,
            "recovery_high_s": outlook.recovery_high_s,
            "target_s": outlook.target_s,
        }
        if seen.outages.recoveries:
            last = seen.outages.recoveries[-1]
            found["last_recovery_s"] = last.took_s
            if last.predicted_s is not None:
                found["last_predicted_s"] = last.predicted_s
        return found
