"""AuTraScale+: first throughput, then processing latency, then event-time latency.

Zhang, Zheng, Zheng, Zhu, Li, Guo: "Bayesian-Driven Automated Scaling in Stream Computing With Multiple QoS Targets",
TPDS 2024.

| paper | here |
|---|---|
| v̄_i, true rate of an instance (Eq 2) | `OperatorReading.true_rate_per_s` |
| TO solver, π^t (Eq 3) | `throughput.py`: DS2's linear model, its end, the best size under an external limit |
| PLO solver, π^p (Algorithm 1) | `latency.py` |
| benefit F, L_p, α, w, s_l (Eq 4, 7, 8) | `benefit.py`, `processing_s`, `alpha`, `waste` |
| GP, Matérn, EI, ξ (Eq 5, 6) | `model/joint.py`, `xi`; candidates in `box.py` |
| S, M + N bootstrapping samples | trials on a testbed, `uniform` (M) |
| Algorithm 2, traditional transfer | `benefit.py`, `transfer`; α: `transfer_alpha`, Num: `transfer_iterations` |
| backlog model, V_t (Eq 9 to 12) | `policy/catch_up.py`, `SLO.max_latency_s` (L_e), `limit_s` (T_limit) |
| F_tp, β, ELO's s_l (Eq 13), Algorithm 3 | `eventtime.py`, `width`, `near`; the return in `catch_up` |
| l_p, l_e, averages | medians of the window |

TO hands over when it has finished (see there), PLO when its target is met with a score of at least s_l (or cannot be
met), and ELO acts on a steady job whose event-time latency is above L_e. The sequence begins again when a demand moves
by `trigger`, or when a steady job is overloaded; a target missed in two consecutive windows returns the job to PLO.
A catch-up outlasts a move of the demand, and an external limit ends when the throughput suffices.

Read differently, or decided because the paper does not say:
- Eq 3 multiplies by the rounded tasks of the upstream. DS2's unrounded demand gives fewer tasks, so it is the default
  of this policy; `literal` applies Eq 3 as printed, and is the default of the paper's rows in `rheostat reproduce`.
- TO also shrinks, because π^t is the fewest tasks; a size that ran before ends it, not only the last one.
- A throughput below V_t is insufficient, however near (Algorithm 3 only compares F_tp, and so does `literal`).
- Eq 8 ends a transfer, too (Algorithm 2 has "the terminational condition", section V-D the latency alone), and
  Algorithm 2 ends when this rate has as many samples as the other: "when the benefit model is not fully trained".
- D_c, the samples at the new rate, is what the job ran there so far within Ω: mostly π^t alone.
- A rate that was solved before gets the best of its feasible samples before any search. The paper only transfers.
- A target is met when that is probable (`benefit.feasible`): up to four windows near it are looked at.
- After `iterations` changes, or when no improvement is expected, PLO returns to the best measured size and reports that
  it gave up.
- Windows in which the job works off a backlog, or does not keep up, have no processing latency. A size that still works
  off its backlog after ten windows is too small.
- PLO and ELO have a bootstrapping set each: latencies are measured at the load, capacities far above it.
- Without a testbed there are no bootstrapping samples, and ELO sizes by the capacity of every operator.

Ours: `model=decomposed` sizes each operator for its part of the latency (`latency_model.py`) instead of PLO's search,
and by its own capacity in ELO; it needs no trials. `thrift` lets fewer tasks break ELO's ties.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from rheostat.job.decision import Decision, Reason
from rheostat.job.frozen import check_number, check_whole
from rheostat.job.record import Record
from rheostat.model.experience import Experience, fold, is_catching_up, is_settled, keeps_up
from rheostat.policy.autrascale.decomposed import decomposed_step
from rheostat.policy.autrascale.eventtime import EventSettings, boosted_step, event_step
from rheostat.policy.autrascale.latency import LatencySettings, latency_step, recall
from rheostat.policy.autrascale.stage import Profile, Search, Stage
from rheostat.policy.autrascale.throughput import throughput_step
from rheostat.policy.catch_up import need_of
from rheostat.policy.explanation import rate, sustains
from rheostat.ports import Policy, Situation

PATIENCE = 10
"""Windows to wait until a job has worked off its backlog."""
MISSES = 2
"""Consecutive windows above the target after which it counts as missed."""


@dataclass(frozen=True)
class AuTraScale(Policy[Experience]):
    """Keeps up with the load, then meets the processing-latency target, then clears backlogs in time."""

    name: ClassVar[str] = "autrascale"

    processing_s: float | None = None
    """L_p, the largest processing latency, in seconds; default: the SLO's max_latency_s."""
    limit_s: float | None = None
    """T_limit, the seconds in which a backlog must be cleared; default: the SLO's max_recovery_s, else 480."""
    model: Literal["benefit", "decomposed"] = "benefit"
    """Latency model: the paper's joint model of a benefit score, or ours, a sum over operators."""
    alpha: float = 0.8
    """Weight of latency in the benefit score; tasks have the rest (three published scores give 0.8)."""
    waste: float = 1.0
    """w, the accepted share of unneeded tasks (the published threshold of 0.9 is 1)."""
    xi: float = 0.01
    """Margin of an expected improvement over the best measured score; larger values explore more."""
    uniform: int = 6
    """Bootstrapping samples with equal tasks everywhere (M), besides one per operator; 0 disables bootstrapping."""
    iterations: int = 20
    """Changes, or trials, after which a search selects the best measured size."""
    transfer: Literal["light", "traditional", "none"] = "light"
    """Use of a model of another rate: Algorithm 2, the earlier paper's method, or none."""
    transfer_alpha: float = 1.0
    """Weight of a sample at the new rate relative to one at the old rate."""
    transfer_iterations: int = 12
    """Num: changes after which Algorithm 1 replaces Algorithm 2."""
    width: float = 0.25
    """β of the throughput score, as a share of the target."""
    near: float = 0.85
    """Throughput score from which on a profiled allocation is good enough."""
    trial_s: float = 60.0
    """Observed seconds of a trial; it settles for a quarter of them before."""
    literal: bool = False
    """Whether two lines apply as printed: Eq 3 sizes operators for the capacity of their upstreams' rounded tasks, and
    Algorithm 3 accepts a throughput below the target that is near enough."""
    thrift: bool = False
    """Ours: whether fewer tasks break the ties of Eq 13 between allocations with the same throughput."""
    trigger: float = 0.05
    """Share by which a demand must move for the sequence to begin again."""

    def __post_init__(self) -> None:
        where = "of policy 'autrascale'"
        for name in ("processing_s", "limit_s", "trial_s", "transfer_alpha", "width"):
            check_number(f"{name} {where}", getattr(self, name), least=1e-6)
        check_number(f"alpha {where}", self.alpha, most=1.0)
        check_number(f"waste {where}", self.waste, most=100.0)
        check_number(f"xi {where}", self.xi, most=1.0)
        check_number(f"near {where}", self.near, least=1e-6, most=1.0)
        check_number(f"trigger {where}", self.trigger, most=10.0)
        for name in ("uniform", "iterations", "transfer_iterations"):
            check_whole(f"{name} {where}", getattr(self, name), least=0)

    def initial(self) -> Experience:
        """Return no experience."""
        return Experience()

    def learn(self, knowledge: Experience, record: Record) -> Experience:
        """Store latencies and throughputs of windows and trials, and every π^t."""
        return fold(knowledge, record)

    def decide(self, situation: Situation[Experience]) -> Decision:
        """Let the active solver decide; one that has finished hands over in the same step."""
        stage, window = Stage.at(situation, self.trigger), situation.window
        if stage.profile.boost is not None:
            if stage.phase != "throughput" or keeps_up(window):
                return boosted_step(situation, stage, self._event())
            # The load has outgrown the larger allocation, so the one to return to is too small by far.
            stage = replace(stage, profile=Profile())
        if self._insufficient(situation, stage):
            stage = Stage(stage.demand, search=Search(recalled=True))
        target_s = self.processing_s or situation.slo.max_latency_s
        if stage.phase != "steady" and not stage.search.recalled and target_s is not None:
            recalled = recall(situation, stage, self._settings(target_s))
            if isinstance(recalled, Decision):
                return recalled
            stage = recalled
        if stage.phase == "throughput":
            if is_catching_up(window) and stage.sizing.waited < PATIENCE:
                return self._wait(situation, stage.sized(waited=stage.sizing.waited + 1))
            result = throughput_step(situation, stage, self.literal)
            if isinstance(result, Decision):
                return result
            stage = result
        if stage.limited and keeps_up(window):
            stage = replace(stage, limited=False, phase="latency")
        if stage.limited:
            sentence = f"autrascale: keeps {situation.running}; an external limit is below {rate(window.load_per_s)}"
            memo = stage.memo(phase="steady")
            return Decision.hold(
                Reason.UNDER_PROVISIONED, sentence, expects=sustains(window.throughput_per_s), memo=memo
            )
        if not is_settled(window) or stage.phase == "steady":
            need = need_of(situation, self.limit_s)
            if need is not None:
                return event_step(situation, stage, need, self._event())
        if stage.phase == "latency":
            return self._latency(situation, stage)
        return self._steady(situation, stage)

    @staticmethod
    def _insufficient(situation: Situation[Experience], stage: Stage) -> bool:
        """Whether the solved allocation does not keep up although there is no external limit."""
        if stage.phase == "throughput" or stage.limited or keeps_up(situation.window):
            return False
        if stage.phase == "latency":
            return stage.search.iterations == 0 or situation.running.tasks == stage.base
        return bool(situation.window.overloaded)

    def _latency(self, situation: Situation[Experience], stage: Stage) -> Decision:
        """Let PLO decide if there is a target, a latency and a job at its load."""
        window = situation.window
        target_s = self.processing_s or situation.slo.max_latency_s
        why = ""
        if target_s is None:
            why = "there is no latency objective"
        elif window.latency is None:
            why = "this window has no latency"
        elif not window.load_per_s:
            why = "no records arrive"
        if why:
            sentence = f"autrascale: {situation.running} keeps up with {rate(window.load_per_s)}; {why}"
            memo = stage.memo(phase="steady")
            return Decision.hold(Reason.STEADY, sentence, expects=sustains(window.load_per_s), memo=memo)
        if is_catching_up(window) and stage.search.waited < PATIENCE:
            return self._wait(situation, stage.searched(waited=stage.search.waited + 1))
        assert target_s is not None
        step = decomposed_step if self.model == "decomposed" else latency_step
        return step(situation, stage, self._settings(target_s))

    def _wait(self, situation: Situation[Experience], stage: Stage) -> Decision:
        """Hold while the job works off a backlog: its latency is then not that of its load."""
        sentence = f"autrascale: the job catches up: it processes {rate(situation.window.throughput_per_s)}"
        return Decision.hold(Reason.WAITING, sentence, memo=stage.memo())

    def _steady(self, situation: Situation[Experience], stage: Stage) -> Decision:
        """Hold while the target is met; a target missed repeatedly returns the job to PLO."""
        window, target_s = situation.window, self.processing_s or situation.slo.max_latency_s
        now_s = window.latency.p50_s if window.latency and is_settled(window) else None
        search = stage.search
        missed = target_s is not None and now_s is not None and now_s > target_s and not search.unreachable
        met = now_s is not None and (target_s is None or now_s <= target_s)
        search = replace(search, missed=search.missed + 1 if missed else 0, unreachable=search.unreachable and not met)
        stage = replace(stage, search=search)
        if search.missed >= MISSES and target_s is not None:
            # The search begins again, with what is known of this rate.
            again = recall(situation, replace(stage, search=Search(missed=search.missed)), self._settings(target_s))
            return again if isinstance(again, Decision) else self._latency(situation, replace(again, phase="latency"))
        latency = "" if now_s is None else f", {1e3 * now_s:.0f} ms"
        sentence = f"autrascale: {situation.running} serves {rate(window.load_per_s)}{latency}"
        reason = Reason.UNDER_PROVISIONED if search.unreachable else Reason.STEADY
        return Decision.hold(reason, sentence, expects=sustains(window.load_per_s), memo=stage.memo())

    def _settings(self, target_s: float) -> LatencySettings:
        return LatencySettings(
            target_s,
            self.alpha,
            self.waste,
            self.xi,
            self.uniform,
            self.iterations,
            self.transfer,
            self.transfer_alpha,
            self.transfer_iterations,
            self.trial_s,
        )

    def _event(self) -> EventSettings:
        return EventSettings(
            self.width,
            self.near,
            self.xi,
            self.uniform,
            self.iterations,
            self.trial_s,
            self.model == "decomposed",
            self.literal,
            self.thrift,
        )
