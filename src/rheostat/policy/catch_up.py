"""Algorithm 3's frame: how fast a backlog must go, a larger allocation until it has gone, and the return.

AuTraScale+ (TPDS 2024), section IV-E and V-A. How the larger allocation is chosen differs: ELO searches for it, and
the paper's baselines Max, Proportion and Exponent have a rule each. A baseline is a policy of its own that does nothing
else: the steady allocation is what it finds running.

Ours: it returns as soon as the backlog is back at what the objective allows, and stays a while over time when not,
because to return with a rest of it only brings the same again; and a backlog that two restarts alone would cause is not
worth them.
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
from rheostat.policy.explain import rate, sustains
from rheostat.ports import Policy, Situation

LIMIT_S = 480.0
"""T_limit where neither the policy nor the SLO says one: the middle of the paper's 6 to 10 minutes."""
OVERTIME = 1.5
"""After so many times the limit it returns, whatever is left."""
GONE_S = 0.05
"""A backlog of so many seconds beyond what is promised has gone: no look is exact."""
REACHED = 0.98
"""A throughput this near to its target has reached it."""

At = Situation[Experience]


@dataclass(frozen=True, slots=True)
class Need:
    """A backlog that must go."""

    load_per_s: float
    excess: float
    """Records to be worked off (Eq 11)."""
    target_per_s: float
    """V_t (Eq 12)."""
    limit_s: float


def limit_of(situation: At, own_s: float | None) -> float:
    """Return T_limit: the policy's own, the SLO's time to recover, or the paper's."""
    return own_s or situation.slo.max_recovery_s or LIMIT_S


def need_of(situation: At, own_s: float | None) -> Need | None:
    """Return what must be worked off: event-time latency is above its objective, and the job is too slow by itself."""
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
    """Return Eq 11 with the latency through the job in its steady state, where it was ever seen in it."""
    latency = situation.window.latency
    now_s = latency.p50_s if latency else 0.0
    known = [s.latency_s for s in situation.knowledge.at(load) if s.tasks == steady and s.latency_s]
    return excess(backlog, load, objective_s, min(known[-1] if known else now_s, objective_s))


def boost(
    situation: At, need: Need, larger: Allocation, why: str, **evidence: float
) -> tuple[Decision, dict[str, Any]]:
    """Return the change to a larger allocation, and what the next steps must know about it."""
    kept: dict[str, Any] = {
        "steady": dict(situation.running.tasks),
        "target_per_s": need.target_per_s,
        "limit_s": need.limit_s,
        "changed_at_s": situation.changed_at_s,
        "begun_s": situation.window.at_s,
        "steps": 0,
    }
    told = f"{need.excess:.3g} records wait beyond what is promised; {rate(need.target_per_s)} work them off in "
    sentence = f"{changes(situation.running, larger)}: {told}{need.limit_s:g} s; {why}"
    evidence = {"target_per_s": need.target_per_s, "excess": need.excess, **evidence}
    decision = Decision(larger, direction(situation.running, larger), sentence, evidence, sustains(need.load_per_s))
    return decision, kept


def ride(situation: At, kept: Mapping[str, Any]) -> tuple[Decision, Mapping[str, Any] | None]:
    """Return the next step while a backlog is worked off, and what to keep: nothing once it has returned."""
    window, steady = situation.window, situation.fit(kept["steady"])
    if steady == situation.running:
        if situation.changed_at_s == kept["changed_at_s"]:
            return Decision.hold(Reason.WAITING, "the larger allocation was not allowed; it is asked for again"), None
        return Decision.hold(Reason.STEADY, "the job is back at its steady allocation"), None
    load, backlog, objective_s = window.load_per_s or 0.0, window.backlog or 0.0, situation.slo.max_latency_s or 0.0
    left = _excess(situation, kept["steady"], backlog, load, objective_s)
    since_s = window.at_s - kept["begun_s"]
    evidence = {"excess": left, "target_per_s": kept["target_per_s"]}
    gone = left <= GONE_S * load
    if since_s > kept["limit_s"] and not gone:
        evidence["unreachable"] = 1.0
    if gone or since_s >= OVERTIME * kept["limit_s"]:
        how = "the backlog has gone" if gone else f"after {since_s:.0f} s {left:.3g} records still wait"
        sentence = f"{changes(situation.running, steady)}: {how}"
        reason = direction(situation.running, steady)
        return Decision(steady, reason, sentence, evidence, sustains(load)), None
    done, target = window.throughput_per_s, kept["target_per_s"]
    sentence = f"{left:.3g} records are left after {since_s:.0f} s, at {rate(done)}"
    if done is not None and done < REACHED * target and not gone:
        evidence["unreachable"] = 1.0
        sentence += f"; {rate(target)} cannot be reached with {situation.running}"
    return Decision.hold(Reason.WAITING, sentence, evidence=evidence), kept


@dataclass(frozen=True)
class CatchUp(Policy[Experience]):
    """A baseline of section V-A: subclass it and say what the larger allocation is."""

    rule: ClassVar[str] = ""
    """The rule in a few words."""

    limit_s: float | None = None
    """T_limit, in seconds; left out, the SLO's max_recovery_s, else 480."""

    def __post_init__(self) -> None:
        check_number(f"limit_s of policy {self.name!r}", self.limit_s, least=1e-3)

    def initial(self) -> Experience:
        """Return no experience; it is only used for latencies in a steady state."""
        return Experience()

    def learn(self, knowledge: Experience, record: Record) -> Experience:
        """Remember what allocations did."""
        return fold(knowledge, record)

    def decide(self, situation: At) -> Decision:
        """Work off what waits beyond the objective, and return."""
        kept = situation.memo.get("boost")
        if kept is not None:
            further = self.further(situation, kept)
            if further is not None and further != situation.running:
                sentence = f"{self.name}: {changes(situation.running, further)}, towards {rate(kept['target_per_s'])}"
                memo = {"boost": {**kept, "steps": kept["steps"] + 1}}
                reason = direction(situation.running, further)
                return Decision(further, reason, sentence, {"target_per_s": kept["target_per_s"]}, memo=memo)
            decision, after = ride(situation, kept)
            return self._told(decision, after)
        need = need_of(situation, self.limit_s)
        load = situation.window.load_per_s
        if need is None:
            sentence = f"{self.name}: {rate(load)} leave no backlog that would have to be worked off"
            return Decision.hold(Reason.STEADY, sentence, expects=sustains(load))
        larger = self.larger(situation, need)
        if larger == situation.running:
            sentence = f"{self.name}: {rate(need.target_per_s)} would be needed, and {larger} is the most there is"
            evidence = {"target_per_s": need.target_per_s, "excess": need.excess, "unreachable": 1.0}
            return Decision.hold(Reason.UNDER_PROVISIONED, sentence, evidence=evidence)
        decision, after = boost(situation, need, larger, self.rule)
        return self._told(decision, after)

    def _told(self, decision: Decision, kept: Mapping[str, Any] | None) -> Decision:
        memo = {} if kept is None else {"boost": dict(kept)}
        return replace(decision, sentence=f"{self.name}: {decision.sentence}", memo=memo)

    def larger(self, situation: At, need: Need) -> Allocation:
        """Return the larger allocation."""
        raise NotImplementedError(f"policy {self.name!r} has no larger allocation")

    def further(self, situation: At, kept: Mapping[str, Any]) -> Allocation | None:
        """Return a still larger allocation while the target is not reached; most rules have none."""
        return None


def steady_backlog(load_per_s: float, event_s: float, processing_s: float) -> float:
    """Return R_lag^(s), the records that wait while event-time latency is as promised (Eq 9 and 10)."""
    return load_per_s * max(event_s - processing_s, 0.0)


def excess(backlog: float, load_per_s: float, event_s: float, processing_s: float) -> float:
    """Return R_lag^(t), the records to be worked off (Eq 11); zero when there is nothing to do."""
    return max(backlog - steady_backlog(load_per_s, event_s, processing_s), 0.0)


def catch_up_per_s(load_per_s: float, excess_records: float, limit_s: float) -> float:
    """Return V_t, the throughput that works off the excess within the limit (Eq 12)."""
    return load_per_s + excess_records / limit_s
