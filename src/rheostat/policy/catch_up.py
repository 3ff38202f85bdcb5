"""The frame of Algorithm 3: the rate at which a backlog must fall, a larger allocation until it has, and the return.

AuTraScale+ (TPDS 2024), section IV-E and V-A. The policies differ in how they select the larger allocation: ELO
searches for it, and the paper's baselines Max, Proportion and Exponent have a rule each. A baseline is a policy of its
own that only handles backlogs: its steady allocation is the one that runs at the start.

Ours: the job returns as soon as the backlog is back at the level that the objective allows. If it is not when the limit
ends, the job stays larger for a while, because returning early only builds up the same backlog again. A backlog that
the two restarts alone would cause does not trigger a change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Reason, changes, direction
from rheostat.job.frozen import check_number
from rheostat.job.record import Record
from rheostat.model.experience import Experience, fold
from rheostat.policy.explanation import rate, sustains
from rheostat.ports import Policy, Situation

LIMIT_S = 480.0
"""T_limit in seconds where neither the policy nor the SLO sets one: the middle of the paper's 6 to 10 minutes."""
OVERTIME = 1.5
"""Multiple of the limit after which the job returns with any backlog."""
GONE_S = 0.05
"""Backlog beyond the objective, in seconds of load, that counts as cleared: no measurement is exact."""
REACHED = 0.98
"""Share of the target from which on a throughput counts as reached."""

At = Situation[Experience]


@dataclass(frozen=True, slots=True)
class Need:
    """A backlog that must be cleared."""

    load_per_s: float
    excess: float
    """Records beyond the backlog that the objective allows (Eq 11)."""
    target_per_s: float
    """V_t (Eq 12)."""
    limit_s: float


def limit_of(situation: At, own_s: float | None) -> float:
    """Return T_limit: the policy's own, the SLO's recovery time, or the paper's."""
    return own_s or situation.slo.max_recovery_s or LIMIT_S


def need_of(situation: At, own_s: float | None) -> Need | None:
    """Return the backlog to clear, if event-time latency is above its objective and the job is too slow to clear it."""
    window, objective_s = situation.window, situation.slo.max_latency_s
    latency, backlog, load = window.latency, window.backlog, window.load_per_s
    if objective_s is None or latency is None or not backlog or not load or latency.event_p50_s <= objective_s:
        return None
    over = _excess(situation, situation.running.tasks, backlog, load, objective_s)
    restarts = 2.0 * load * (window.downtime_s or 0.0)
    limit_s = limit_of(situation, own_s)
    target = catch_up_per_s(load, over, limit_s)
    if over <= restarts or (window.throughput_per_s or 0.0) >= target:
        return None
    return Need(load, over, target, limit_s)


def _excess(situation: At, steady: Mapping[str, int], backlog: float, load: float, objective_s: float) -> float:
    """Return Eq 11 with the processing latency of the steady allocation, if it was measured, else the present one."""
    latency = situation.window.latency
    now_s = latency.p50_s if latency else 0.0
    steady_s = [s.latency_s for s in situation.knowledge.at(load) if s.tasks == steady and s.latency_s]
    return excess(backlog, load, objective_s, min(steady_s[-1] if steady_s else now_s, objective_s))


def start_boost(
    situation: At, need: Need, larger: Allocation, why: str, **evidence: float
) -> tuple[Decision, dict[str, Any]]:
    """Return the change to a larger allocation, and the state of the catch-up for the next steps."""
    state: dict[str, Any] = {
        "steady": dict(situation.running.tasks),
        "target_per_s": need.target_per_s,
        "limit_s": need.limit_s,
        "changed_at_s": situation.changed_at_s,
        "begun_s": situation.window.at_s,
        "steps": 0,
    }
    because = f"the backlog exceeds the objective by {need.excess:.3g} records; {rate(need.target_per_s)} clear it in "
    sentence = f"{changes(situation.running, larger)}: {because}{need.limit_s:g} s; {why}"
    evidence = {"target_per_s": need.target_per_s, "excess": need.excess, **evidence}
    decision = Decision(larger, direction(situation.running, larger), sentence, evidence, sustains(need.load_per_s))
    return decision, state


def continue_boost(situation: At, state: Mapping[str, Any]) -> tuple[Decision, Mapping[str, Any] | None]:
    """Return the next step of a catch-up and its state: None once the job has returned."""
    window, steady = situation.window, situation.fit(state["steady"])
    if steady == situation.running:
        if situation.changed_at_s == state["changed_at_s"]:
            sentence = "a guard stopped the larger allocation; the policy requests it again"
            return Decision.hold(Reason.WAITING, sentence), None
        return Decision.hold(Reason.STEADY, "the job is back at its steady allocation"), None
    load, backlog, objective_s = window.load_per_s or 0.0, window.backlog or 0.0, situation.slo.max_latency_s or 0.0
    left = _excess(situation, state["steady"], backlog, load, objective_s)
    since_s = window.at_s - state["begun_s"]
    evidence = {"excess": left, "target_per_s": state["target_per_s"]}
    gone = left <= GONE_S * load
    if since_s > state["limit_s"] and not gone:
        evidence["unreachable"] = 1.0
    if gone or since_s >= OVERTIME * state["limit_s"]:
        how = "the backlog is cleared" if gone else f"{left:.3g} records of the backlog are left after {since_s:.0f} s"
        sentence = f"{changes(situation.running, steady)}: {how}"
        reason = direction(situation.running, steady)
        return Decision(steady, reason, sentence, evidence, sustains(load)), None
    done, target = window.throughput_per_s, state["target_per_s"]
    sentence = f"{left:.3g} records of the backlog are left after {since_s:.0f} s, at {rate(done)}"
    if done is not None and done < REACHED * target and not gone:
        evidence["unreachable"] = 1.0
        sentence += f"; {situation.running} does not reach {rate(target)}"
    return Decision.hold(Reason.WAITING, sentence, evidence=evidence), state


@dataclass(frozen=True)
class CatchUp(Policy[Experience]):
    """A baseline of section V-A; a subclass defines the larger allocation."""

    rule: ClassVar[str] = ""
    """The rule in a few words."""
    repeats: ClassVar[bool] = False
    """Whether the rule is applied until the throughput reaches the target."""

    limit_s: float | None = None
    """T_limit, in seconds; default: the SLO's max_recovery_s, else 480."""

    def __post_init__(self) -> None:
        check_number(f"limit_s of policy {self.name!r}", self.limit_s, least=1e-3)

    def initial(self) -> Experience:
        """Return no experience; only latencies of the steady allocation are used."""
        return Experience()

    def learn(self, knowledge: Experience, record: Record) -> Experience:
        """Store the latencies of allocations."""
        return fold(knowledge, record)

    def decide(self, situation: At) -> Decision:
        """Clear the backlog beyond the objective, then return."""
        state = situation.memo.get("boost")
        if state is not None:
            further = self._further(situation, state)
            if further is not None and further != situation.running:
                sentence = f"{self.name}: {changes(situation.running, further)}, towards {rate(state['target_per_s'])}"
                memo = {"boost": {**state, "steps": state["steps"] + 1}}
                reason = direction(situation.running, further)
                return Decision(further, reason, sentence, {"target_per_s": state["target_per_s"]}, memo=memo)
            decision, after = continue_boost(situation, state)
            return self._with_memo(decision, after)
        need = need_of(situation, self.limit_s)
        load = situation.window.load_per_s
        if need is None:
            sentence = f"{self.name}: {rate(load)} arrive and no backlog must be cleared"
            return Decision.hold(Reason.STEADY, sentence, expects=sustains(load))
        larger = self.larger(situation, need.target_per_s)
        if larger == situation.running:
            sentence = f"{self.name}: the backlog needs {rate(need.target_per_s)}, and {larger} is the largest size"
            evidence = {"target_per_s": need.target_per_s, "excess": need.excess, "unreachable": 1.0}
            return Decision.hold(Reason.UNDER_PROVISIONED, sentence, evidence=evidence)
        decision, after = start_boost(situation, need, larger, self.rule)
        return self._with_memo(decision, after)

    def _with_memo(self, decision: Decision, state: Mapping[str, Any] | None) -> Decision:
        memo = {} if state is None else {"boost": dict(state)}
        return replace(decision, sentence=f"{self.name}: {decision.sentence}", memo=memo)

    def larger(self, situation: At, target_per_s: float) -> Allocation:
        """Return the larger allocation."""
        raise NotImplementedError(f"policy {self.name!r} has no larger allocation")

    def _further(self, situation: At, state: Mapping[str, Any]) -> Allocation | None:
        """Return an even larger allocation while the target is not reached, if the rule repeats."""
        done, backlog = situation.window.throughput_per_s, situation.window.backlog or 0.0
        steady = situation.running.tasks == state["steady"]
        if not self.repeats or steady or done is None or backlog <= done:
            return None
        target: float = state["target_per_s"]
        return None if done >= REACHED * target else self.larger(situation, target)


def steady_backlog(load_per_s: float, event_s: float, processing_s: float) -> float:
    """Return R_lag^(s), the backlog at which event-time latency is exactly its objective (Eq 9 and 10)."""
    return load_per_s * max(event_s - processing_s, 0.0)


def excess(backlog: float, load_per_s: float, event_s: float, processing_s: float) -> float:
    """Return R_lag^(t), the records to clear (Eq 11); zero if there are none."""
    return max(backlog - steady_backlog(load_per_s, event_s, processing_s), 0.0)


def catch_up_per_s(load_per_s: float, excess_records: float, limit_s: float) -> float:
    """Return V_t, the throughput that clears the excess within the limit (Eq 12)."""
    return load_per_s + excess_records / limit_s
