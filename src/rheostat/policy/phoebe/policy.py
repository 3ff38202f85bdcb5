"""Phoebe: the smallest scale-out that would recover from a failure in time, and has normal latencies.

Geldenhuys, Scheinert, Kao, Thamsen: "Phoebe: QoS-aware distributed stream processing through anticipating dynamic
workloads", ICWS 2022.

| paper | here |
|---|---|
| profiling, T_max (III-C) | `profiling.py`, `model/profile.py`, `capacity.py` |
| M_L (III-D) | `latency_surface.py` |
| M_R, R, c(n) (III-B) | `model/recovery.py` |
| I | the engine's checkpoint interval |
| D | `downtime_s`: a constant, known before |
| RC_tar | `target_s`, or `SLO.max_recovery_s` |
| E, H_max | `evaluation_s`, `horizon_s` |
| averaging bins | `projected` |
| Algorithm 1 | `optimise` |

The paper says that models are continuously updated, not how: here T_max is corrected by the windows in which the
running job did all it could, which it does while it catches up (`refresh: full`). At the start and after a failure it
waits for a whole interval of uptime.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from rheostat.job.decision import Decision, Expectation, Interval, Reason, changes, direction
from rheostat.job.frozen import check_number, check_whole
from rheostat.model.recovery import Course, recovery_time_s
from rheostat.policy.explain import rate
from rheostat.policy.phoebe.capacity import Capacity
from rheostat.policy.phoebe.foresight import course, forecast, sizes
from rheostat.policy.phoebe.looking_ahead import At, Evaluating
from rheostat.policy.phoebe.outage import PREDICTED

TARGET_S = 180.0
"""The paper's target, where nobody names one."""


@dataclass(frozen=True)
class Phoebe(Evaluating):
    """Chooses the smallest scale-out whose recovery time and latency are right, every evaluation interval."""

    name: ClassVar[str] = "phoebe"

    downtime_s: float = 110.0
    """D: seconds from a failure until records are processed again, a constant."""
    target_s: float | None = None
    """RC_tar: longest recovery time, in seconds; left out, `SLO.max_recovery_s`, or 180."""
    bins: int = 5
    """Averaging bins over the forecast."""
    refresh: Literal["full", "never"] = "full"
    """What corrects the profile: windows in which the job did all it could, or nothing."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("downtime_s of policy 'phoebe'", self.downtime_s)
        check_number("target_s of policy 'phoebe'", self.target_s, least=1e-9)
        check_whole("bins of policy 'phoebe'", self.bins, 1)

    def decide(self, situation: At) -> Decision:
        """Wait for the next evaluation, and for a job that runs undisturbed; then follow Algorithm 1."""
        if asked := self.profiling(situation):
            return asked
        window, memo = situation.window, situation.memo
        if window.at_s < (due_s := self.due_s(situation)):
            sentence = f"phoebe: the next evaluation is in {due_s - window.at_s:.0f} s"
            return Decision.hold(Reason.WAITING, sentence, memo=memo)
        if window.uptime_s < self.evaluation_s:
            sentence = f"phoebe: up for {window.uptime_s:.0f} s only: waits for another interval"
            return Decision.hold(Reason.WAITING, sentence, memo=self.next(situation))
        capacity = situation.knowledge.capacity(self.refresh)
        if capacity is None or situation.knowledge.load.newest is None:
            sentence = "phoebe: neither a profile nor a busy window tells what the job is able to do"
            return Decision.hold(Reason.WAITING, sentence, memo=memo)
        return self.optimise(situation, capacity)

    def optimise(self, situation: At, capacity: Capacity) -> Decision:
        """Follow Algorithm 1: loop over the sorted scale-outs, take the first that satisfies both models."""
        seen, running = situation.knowledge, situation.running
        path = forecast(situation, self.forecast, self.horizon_s)
        around, load = course(seen, path), projected(path, self.bins)
        target_s = self.target_s or situation.slo.max_recovery_s or TARGET_S
        surface = seen.latency(self.refresh)
        choices = sizes(situation, self.smallest, self.largest)
        size, chosen = choices[-1]
        recovery, met = self.recovery_s(situation, capacity, around, size), False
        for each, allocation in choices:
            seconds = self.recovery_s(situation, capacity, around, each)
            answer = surface.answer(each, load) if surface else None
            if seconds <= target_s and (answer is None or answer.normal):
                size, chosen, recovery, met = each, allocation, seconds, True
                break
        evidence = {
            "load_per_s": load,
            "t_max_per_s": capacity.per_s(size),
            PREDICTED: recovery,
            "target_s": target_s,
        }
        told = f"{recovery:.0f} s" if math.isfinite(recovery) else "for ever"
        notes = (
            "" if met else f"; no scale-out recovers within {target_s:g} s, so the largest is taken: objective broken"
        )
        notes += "; far from anything profiled" if capacity.far(size) else ""
        because = f"{rate(load)} are expected and a failure would take {told} with {size} workers{notes}"
        expects = Expectation(load, recovery_s=Interval(0.0, recovery, max(recovery, target_s)))
        memo = self.next(situation)
        if chosen == running:
            reason = Reason.STEADY if met else Reason.UNDER_PROVISIONED
            return Decision.hold(reason, f"phoebe: {because}", evidence=evidence, expects=expects, memo=memo)
        sentence = f"phoebe: {changes(running, chosen)}, because {because}"
        return Decision(chosen, direction(running, chosen), sentence, evidence, expects, memo)

    def recovery_s(self, situation: At, capacity: Capacity, around: Course, size: int) -> float:
        """Return M_R: R of a scale-out if it failed now."""
        interval_s = situation.spec.checkpoint_interval_s or 0.0
        return recovery_time_s(capacity.per_s(size), around, interval_s, self.downtime_s)


def projected(path: Sequence[float] | np.ndarray[Any, np.dtype[np.float64]], bins: int) -> float:
    """Return the mean of the bin with the largest mean: the furthest when load rises, the nearest when it falls."""
    parts = np.array_split(np.asarray(path, dtype=float), min(bins, len(path)))
    return max(float(part.mean()) for part in parts)
