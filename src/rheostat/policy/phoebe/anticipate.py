"""Ours: keep the objective about recovery with learned downtimes, and change only when it is needed or pays.

What differs from Phoebe:
- D is not a constant: it is learned from the failures of this job, by source offsets (`outage.py`), and the
  objective takes its upper quantile (`objective`). Before the first failure a prior stands in for it.
- T_max is corrected by every window's records per useful second, not only while the job catches up.
- The objective must hold for a failure at any moment until a change could help (`soon_s`), not only now.
- A change has a price (`price_s`). It shrinks when what that would have saved so far has come to the price, not before;
  it grows when the objective would break, and then as far as what is not yet needed costs no more than two prices. So
  sizes follow a fast load in large steps and a slow one closely, without knowing which it is.
- While a job catches up it is left alone, unless it never would.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Expectation, Interval, Reason, changes, direction
from rheostat.job.frozen import check_number
from rheostat.model.downtime import Downtimes
from rheostat.model.recovery import Course, Floats, recovery_time_s
from rheostat.policy.explain import rate
from rheostat.policy.phoebe.ahead import needed_later_per_s
from rheostat.policy.phoebe.foresight import Known, course, forecast, scale_out, sizes
from rheostat.policy.phoebe.looking_ahead import At, LookingAhead
from rheostat.policy.phoebe.outage import NORMAL_LAG_S, PREDICTED, Outages
from rheostat.policy.phoebe.policy import TARGET_S

CONFIDENCE = 0.9
"""Where nobody says how sure an objective is."""
LONGEST_STEP_S = 300.0
"""A longer pause between two looks counts as so long: clocks jump."""


@dataclass(frozen=True)
class Outlook:
    """What lies ahead of the running job."""

    load: Floats
    """The forecast, step by step."""
    peaks: Floats
    """The capacity that the objective takes up to each of the coming steps."""
    step_s: float
    target_s: float
    objective: float
    downtime_s: float
    """That the objective reckons with."""
    recovery_s: float
    """If the job failed now, with the mean downtime."""
    recovery_high_s: float
    """The same with the promised quantile."""

    def place(self, within_s: float) -> int:
        """Return the step that lies so many seconds ahead."""
        return min(int(within_s / self.step_s), len(self.peaks) - 1)


@dataclass(frozen=True)
class Anticipate(LookingAhead):
    """Keeps a promised recovery time with a promised probability, in few changes."""

    name: ClassVar[str] = "anticipate"
    reads_partial_windows: ClassVar[bool] = True
    """Offsets are not late: right after a change nothing else is needed."""

    target_s: float | None = None
    """Longest recovery time, in seconds; left out, `SLO.max_recovery_s`, or 180."""
    objective: float | None = None
    """Share of failures that must be over within the target; left out, `SLO.recovery_quantile`, or 0.9."""
    prior_downtime_s: float = 60.0
    """Downtime before a failure was seen, in seconds; it counts as one failure."""
    horizon_s: float = 1800.0
    """How far the forecast goes, in seconds."""
    soon_s: float = 90.0
    """How far ahead the objective must hold with the present size, in seconds: until a change could help."""
    stay_s: float = 300.0
    """For how long a smaller size must be enough, in seconds."""
    price_s: float = 90.0
    """What a change is worth, in seconds of the largest size."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("target_s of policy 'anticipate'", self.target_s, least=1e-9)
        check_number("objective of policy 'anticipate'", self.objective, least=0.01, most=0.999)
        for what in ("prior_downtime_s", "soon_s", "stay_s", "price_s"):
            check_number(f"{what} of policy 'anticipate'", getattr(self, what), most=86_400.0)

    def initial(self) -> Known:
        """Return nothing but the prior."""
        return Known(outages=Outages(Downtimes(assumed_s=self.prior_downtime_s)))

    def decide(self, situation: At) -> Decision:
        """Grow when the objective would break, shrink when it pays."""
        seen, known = situation.knowledge, situation.window.running
        if known is None or set(known.tasks) != set(situation.spec.tunable_names):
            return Decision.hold(Reason.UNUSABLE, "anticipate: the running allocation is not known")
        if asked := self.profiling(situation):
            return asked
        running = situation.running
        capacity = seen.capacity("busy")
        if capacity is None or seen.load.newest is None:
            sentence = "anticipate: neither a profile nor a busy window tells what the job is able to do"
            return Decision.hold(Reason.WAITING, sentence, memo=situation.memo)
        now = scale_out(running)
        outlook = self.outlook(situation, capacity.per_s(now))
        choices = sizes(situation, self.smallest, self.largest)
        kept = capacity.per_s(choices[-1][0]) >= float(outlook.peaks[outlook.place(self.soon_s)])
        told = f"{outlook.recovery_high_s:.0f} s" if math.isfinite(outlook.recovery_high_s) else "for ever"
        load = float(outlook.load[0])
        because = f"{rate(load)} arrive and a failure now would take up to {told} with {now} workers"
        if not kept:
            because += (
                f"; no size recovers in {outlook.target_s:g} s {outlook.objective:.0%} of the time: objective broken"
            )
        if capacity.far(now):
            because += "; far from anything that was seen"
        evidence = self.evidence(seen, outlook, capacity.per_s(now))
        most = max(outlook.recovery_s, outlook.recovery_high_s, outlook.target_s)
        expects = Expectation(float(outlook.load.max()), recovery_s=Interval(0.0, outlook.recovery_s, most))
        behind = seen.outages.under_way or (situation.window.lag_s or 0.0) > 4 * NORMAL_LAG_S
        if behind and capacity.per_s(now) > float(outlook.load.max()):
            sentence = f"anticipate: the job catches up and is left alone; {because}"
            return Decision.hold(Reason.WAITING, sentence, evidence=evidence, memo=situation.memo)
        target, wasted = self.choose(situation, outlook, [(n, a, capacity.per_s(n)) for n, a in choices])
        memo = {"at_s": situation.window.at_s, "wasted": wasted}
        if target is None or target == running:
            reason = Reason.STEADY if kept else Reason.UNDER_PROVISIONED
            return Decision.hold(reason, f"anticipate: {because}", evidence=evidence, expects=expects, memo=memo)
        sentence = f"anticipate: {changes(running, target)}, because {because}"
        # From here on a failure meets the new size.
        after = self.outlook(situation, capacity.per_s(scale_out(target)))
        evidence |= {PREDICTED: after.recovery_s, "recovery_high_s": after.recovery_high_s}
        most = max(after.recovery_s, after.recovery_high_s, outlook.target_s)
        expects = replace(expects, recovery_s=Interval(0.0, after.recovery_s, most))
        return Decision(target, direction(running, target), sentence, evidence, expects, memo)

    def choose(
        self, situation: At, outlook: Outlook, choices: list[tuple[int, Allocation, float]]
    ) -> tuple[Allocation | None, float]:
        """Return the size to change to (None to stay), and the slot-seconds wasted so far by not shrinking."""
        now, step_s = scale_out(situation.running), outlook.step_s
        price = self.price_s * choices[-1][1].slots
        capacities = np.array([able for _, _, able in choices])
        # For every coming step the place of the smallest size that keeps the objective until then.
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
        passed = situation.window.at_s - float(situation.memo.get("at_s", situation.window.at_s))
        saved = (situation.running.slots - slots[stays]) * min(max(passed, 0.0), LONGEST_STEP_S)
        wasted = float(situation.memo.get("wasted", 0.0)) + float(saved)
        return (choices[stays][1], 0.0) if wasted >= price else (None, wasted)

    def outlook(self, situation: At, able_per_s: float) -> Outlook:
        """Forecast the load, and what the objective takes under it."""
        seen = situation.knowledge
        target_s = self.target_s or situation.slo.max_recovery_s or TARGET_S
        # A failure falls anywhere between two checkpoints; downtimes are learned with the same half interval.
        back_s = 0.5 * (situation.spec.checkpoint_interval_s or 0.0)
        longest = max(self.soon_s, self.stay_s, self.horizon_s)
        path = forecast(situation, self.forecast, longest + target_s)
        around, downtimes, step_s = course(seen, path), seen.outages.downtimes, seen.load.step_s
        objective = self.objective or situation.slo.recovery_quantile or CONFIDENCE
        promised_s = downtimes.quantile(objective)
        later = step_s * np.arange(int(longest / step_s) + 1, dtype=np.float64)
        needed = needed_later_per_s(target_s, around, back_s, promised_s, later)

        def takes(around: Course, downtime_s: float) -> float:
            return recovery_time_s(able_per_s, around, back_s, downtime_s)

        return Outlook(
            path,
            np.maximum.accumulate(needed),
            step_s,
            target_s,
            objective,
            promised_s,
            takes(around, downtimes.expected_s()),
            takes(around, promised_s),
        )

    def evidence(self, seen: Known, outlook: Outlook, able_per_s: float) -> dict[str, float]:
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
