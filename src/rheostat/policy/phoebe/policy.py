"""Phoebe: the smallest scale-out that would recover from a failure in time and has normal latencies.

Geldenhuys, Scheinert, Kao, Thamsen: "Phoebe: QoS-aware distributed stream processing through anticipating dynamic
workloads", ICWS 2022.

| paper | here |
|---|---|
| profiling, T_max (III-C) | `planner/profiling.py`, `model/profile.py`, `capacity.py` |
| M_L (III-D) | `latency_surface.py` |
| M_R, R, c(n) (III-B) | `model/recovery.py` |
| I | the engine's checkpoint interval |
| D | `downtime_s`: a constant, known beforehand; the paper does not state it, 110 s was chosen by its savings |
| RC_tar | `target_s`, or `SLO.max_recovery_s` |
| E, H_max | `evaluation_s`, `horizon_s` |
| averaging bins | `projected_load` |
| Algorithm 1 | `optimise` |

Ours, where the paper does not say how models are continuously updated: T_max is corrected by the windows in which the
running job is at its capacity, which it is during a catch-up (`refresh: full`). At the start and after a failure the
policy waits for a whole interval of uptime.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rheostat.job.decision import Decision, Expectation, Interval, Reason, changes, direction
from rheostat.job.frozen import check_number, check_whole
from rheostat.model.recovery import Course, recovery_time_s
from rheostat.policy.explanation import rate
from rheostat.policy.phoebe.capacity import CapacityLine
from rheostat.policy.phoebe.forecasting import At, IntervalPolicy, Refresh
from rheostat.policy.phoebe.knowledge import allowed_sizes, forecast_rates, load_course
from rheostat.policy.phoebe.outage import PREDICTED

TARGET_S = 180.0
"""The paper's recovery target in seconds, if neither the policy nor the SLO sets one."""


@dataclass(frozen=True)
class Phoebe(IntervalPolicy):
    """Selects the smallest scale-out with a good recovery time and latency, once every evaluation interval."""

    name: ClassVar[str] = "phoebe"

    downtime_s: float = 110.0
    """D: seconds from a failure until records are processed again, a constant; the default is fitted to the paper."""
    target_s: float | None = None
    """RC_tar: longest recovery time, in seconds; default: the SLO's max_recovery_s, else 180."""
    bins: int = 5
    """Averaging bins over the forecast."""
    refresh: Refresh = "full"
    """What corrects the profile: windows in which the job is at its capacity, or nothing."""
    latency: bool = True
    """Whether a size must also have a normal latency by the latency model."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("downtime_s of policy 'phoebe'", self.downtime_s)
        check_number("target_s of policy 'phoebe'", self.target_s, least=1e-9)
        check_whole("bins of policy 'phoebe'", self.bins, 1)

    def decide(self, situation: At) -> Decision:
        """Wait for the next evaluation, and for an undisturbed job; then follow Algorithm 1."""
        if trials := self.profiling(situation):
            return trials
        window, memo = situation.window, situation.memo
        if window.at_s < (due_s := self.due_s(situation)):
            sentence = f"phoebe: the next evaluation is in {due_s - window.at_s:.0f} s"
            return Decision.hold(Reason.WAITING, sentence, memo=memo)
        if window.uptime_s < self.evaluation_s:
            sentence = f"phoebe: the job has been up for {window.uptime_s:.0f} s only: waits for another interval"
            return Decision.hold(Reason.WAITING, sentence, memo=self.next(situation))
        capacity = situation.knowledge.capacity(self.refresh)
        if capacity is None or situation.knowledge.load.newest is None:
            sentence = "phoebe: the job's capacity is not known yet: there is no profile and no busy window"
            return Decision.hold(Reason.WAITING, sentence, memo=memo)
        return self.optimise(situation, capacity)

    def optimise(self, situation: At, capacity: CapacityLine) -> Decision:
        """Follow Algorithm 1: loop over the sorted scale-outs and select the first that satisfies both models."""
        knowledge, running = situation.knowledge, situation.running
        path = forecast_rates(situation, self.forecast, self.horizon_s)
        course, load = load_course(knowledge, path), projected_load(path, self.bins)
        target_s = self.target_s or situation.slo.max_recovery_s or TARGET_S
        surface = knowledge.latency(self.refresh) if self.latency else None
        choices = allowed_sizes(situation, self.smallest, self.largest)
        size, target = choices[-1]
        recovery, met = self.recovery_s(situation, capacity, course, size), False
        for each, allocation in choices:
            seconds = self.recovery_s(situation, capacity, course, each)
            answer = surface.answer(each, load) if surface else None
            if seconds <= target_s and (answer is None or answer.normal):
                size, target, recovery, met = each, allocation, seconds, True
                break
        evidence = {
            "load_per_s": load,
            "t_max_per_s": capacity.per_s(size),
            PREDICTED: recovery,
            "target_s": target_s,
        }
        duration = f"{recovery:.0f} s" if math.isfinite(recovery) else "for ever"
        notes = "" if met else f"; no scale-out recovers within {target_s:g} s, so the largest is used"
        notes += "; this size is far from any profiled one" if capacity.is_far(size) else ""
        because = f"{rate(load)} are expected and recovery would take {duration} with {size} workers{notes}"
        expects = Expectation(load, recovery_s=Interval(0.0, recovery, max(recovery, target_s)))
        memo = self.next(situation)
        if target == running:
            reason = Reason.STEADY if met else Reason.UNDER_PROVISIONED
            return Decision.hold(reason, f"phoebe: {because}", evidence=evidence, expects=expects, memo=memo)
        sentence = f"phoebe: {changes(running, target)}, because {because}"
        return Decision(target, direction(running, target), sentence, evidence, expects, memo)

    def recovery_s(self, situation: At, capacity: CapacityLine, course: Course, size: int) -> float:
        """Return M_R: R of a scale-out for a failure now."""
        interval_s = situation.spec.checkpoint_interval_s or 0.0
        return recovery_time_s(capacity.per_s(size), course, interval_s, self.downtime_s)


def projected_load(path: Sequence[float] | np.ndarray[Any, np.dtype[np.float64]], bins: int) -> float:
    """Return the mean of the bin with the largest mean: the last for a rising load, the first for a falling one."""
    parts = np.array_split(np.asarray(path, dtype=float), min(bins, len(path)))
    return max(float(part.mean()) for part in parts)
