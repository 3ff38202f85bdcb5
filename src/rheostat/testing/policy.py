"""What every policy keeps to, whatever it decides: pure, within the limits, explained, and never surprised."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from rheostat.job.decision import Decision, Outcome, Verdict
from rheostat.job.frozen import from_json, to_json
from rheostat.job.graph import JobSpec
from rheostat.job.observation import Observation
from rheostat.job.record import Ending, Intent, IntentEnd, Record
from rheostat.job.slo import SLO, Bounds, Limits
from rheostat.ports import Policy, Situation
from rheostat.testing.situations import diamond, limits_of, situation, window, word_count

OPTIONAL = (
    "useful_share",
    "cpu_share",
    "blocking_share",
    "pending",
    "state_bytes",
    "memory_bytes",
    "spilled_bytes",
)
"""Readings without which a window is still usable."""


class PolicyConformance(ABC):
    """Subclass it and say how the policy is made; its tests are then collected and run."""

    @abstractmethod
    def make_policy(self) -> Policy[Any]:
        """Return a policy; every call returns an equal one."""

    def jobs(self) -> tuple[JobSpec, ...]:
        """Return the jobs that it must decide about. A policy whose options name operators overrides this."""
        return (word_count(), word_count(quantum=4), diamond(), diamond(Bounds(3, 3)))

    def situations(self) -> Iterator[tuple[str, Situation[Any]]]:
        """Return named situations, from ordinary to absurd but usable."""
        for spec in self.jobs():
            for name, seen in self._windows(spec):
                yield f"{spec.name}, {name}", self._situation(spec, seen)
                yield f"{spec.name}, {name}, few slots", self._situation(spec, seen, limits_of(spec, Bounds(1, 20)))
            ordinary = window(spec, 1000.0, 4, 300.0)
            # The limits may have moved while the job ran.
            one = Limits({name: Bounds(1, 1) for name in spec.tunable_names}, Bounds())
            yield f"{spec.name}, one task each", self._situation(spec, ordinary, one)
            yield f"{spec.name}, headroom", replace(self._situation(spec, ordinary), slo=SLO(headroom=0.3))

    def _windows(self, spec: JobSpec) -> Iterator[tuple[str, Observation]]:
        for rate in (0.0, 1e-9, 1.0, 1000.0, 1e15):
            for true_rate in (1e-6, 300.0, 1e12):
                yield f"load {rate:g}, true rate {true_rate:g}", window(spec, rate, 4, true_rate)
        full = window(spec, 1000.0, 4, 300.0)
        nothing: dict[str, Any] = dict.fromkeys(OPTIONAL)
        bare = replace(full, operators=tuple(replace(o, **nothing) for o in full.operators))
        yield "only what is needed", replace(bare, edges=(), overloaded=())
        yield "overload without a measure", replace(bare, overloaded=(spec.tunable_names[-1],))
        yield "overload everywhere", replace(full, overloaded=spec.graph.operators)
        yield "nothing came through", self._stalled(full)

    @staticmethod
    def _stalled(full: Observation) -> Observation:
        still: dict[str, Any] = {
            "records_in_per_s": 0.0,
            "true_rate_per_s": None,
            "useful_share": 0.0,
            "cpu_share": 0.0,
        }
        return replace(
            full,
            operators=tuple(replace(o, **still) for o in full.operators),
            edges=tuple(replace(e, records_per_s=0.0) for e in full.edges),
        )

    def _situation(self, spec: JobSpec, seen: Observation, limits: Limits | None = None) -> Situation[Any]:
        return situation(spec, seen, self.make_policy().initial(), limits=limits)

    def decisions(self, rounds: int = 3) -> Iterator[tuple[str, Situation[Any], Decision]]:
        """Decide in every situation several times over, the memo of one step handed to the next."""
        policy = self.make_policy()
        for name, start in self.situations():
            now = start
            for step in range(rounds):
                later_s = start.window.at_s + 60.0 * step
                seen = replace(now.window, at_s=later_s, start_s=later_s - 60.0, end_s=later_s)
                now = replace(now, window=seen, step=step)
                decision = policy.decide(now)
                yield f"{name}, step {step}", now, decision
                now = replace(now, memo=decision.memo, asked=decision.target or now.asked)

    def test_targets_name_every_tunable_operator_and_stay_within_the_limits(self) -> None:
        """Bounds, quantum and slots hold in every situation."""
        for name, at, decision in self.decisions():
            if decision.target is None:
                continue
            assert tuple(decision.target.tasks) == at.spec.tunable_names, name
            for operator, count in decision.target.tasks.items():
                bounds, quantum = at.limits.operators[operator], at.limits.quantum.get(operator, 1)
                assert bounds.clip(count) == count, f"{name}: {operator} {count}"
                assert count % quantum == 0 or count in (bounds.min, bounds.max), f"{name}: {operator} {count}"
            least = sum(b.min for b in at.limits.operators.values())
            assert decision.target.slots <= max(at.limits.slots.max or math.inf, least), name

    def test_decisions_explain_themselves(self) -> None:
        """A sentence, numbers that can be compared, and a target that differs from what runs."""
        for name, at, decision in self.decisions():
            assert decision.sentence.strip(), name
            assert not any(math.isnan(value) for value in decision.evidence.values()), name
            assert "nan" not in decision.sentence.lower().split(), name
            assert decision.target != at.window.running, f"{name}: a hold has no target"

    def test_the_same_situation_gives_the_same_decision(self) -> None:
        """Asked twice, and by two policies that were made alike."""
        policy, twin = self.make_policy(), self.make_policy()
        for name, at, decision in self.decisions():
            assert policy.decide(at) == decision, name
            assert twin.decide(at) == decision, name

    def test_decisions_survive_json(self) -> None:
        """What the journal reads equals what was written, and the memo that comes back decides alike."""
        policy = self.make_policy()
        for name, at, decision in self.decisions():
            again = from_json(Decision, to_json(decision))
            assert again == decision, name
            after, journalled = replace(at, memo=decision.memo), replace(at, memo=again.memo)
            assert policy.decide(after) == policy.decide(journalled), name

    def test_nothing_that_it_is_given_is_changed(self) -> None:
        """The situation is only read."""
        policy = self.make_policy()
        for name, at, _ in self.decisions():
            memo = copy.deepcopy(dict(at.memo))
            knowledge = copy.deepcopy(at.knowledge)
            policy.decide(at)
            assert at.memo == memo, name
            assert at.knowledge == knowledge, name

    def test_partial_windows_are_no_surprise_to_a_policy_that_reads_them(self) -> None:
        """Operators, running allocation or sense may be missing: it holds or decides, and never raises."""
        policy = self.make_policy()
        if not policy.reads_partial_windows:
            return
        for spec in self.jobs():
            full = replace(window(spec, 1000.0, 4, 300.0), problem="a part of it is missing")
            torn = tuple(replace(o, cpu_share=math.nan, useful_share=None) for o in full.operators)
            for seen in (
                full,
                replace(full, operators=full.operators[:1], sources=()),
                replace(full, operators=torn),
                replace(full, operators=(), edges=(), sources=()),
                replace(full, running=None),
                Observation.blind(60.0, "the engine did not answer"),
            ):
                assert policy.decide(self._situation(spec, seen)).sentence

    def test_learning_is_a_fold(self) -> None:
        """Same records, same knowledge; what was known before stays as it was; knowledge survives JSON."""
        policy = self.make_policy()
        known, twin = policy.initial(), self.make_policy().initial()
        for record in self.records():
            before, copied = known, copy.deepcopy(known)
            known, twin = policy.learn(known, record), self.make_policy().learn(twin, record)
            assert before == copied, f"learning from {type(record).__name__} changed what was known"
            assert known == twin
        if known is not None:
            assert from_json(type(policy.initial()), to_json(known)) == known

    def test_it_decides_with_what_it_has_learned(self) -> None:
        """Knowledge from records never breaks a decision."""
        policy = self.make_policy()
        known = policy.initial()
        for record in self.records():
            known = policy.learn(known, record)
        for name, at in self.situations():
            learned = replace(at, knowledge=known)
            assert policy.decide(learned) == policy.decide(learned), name

    def records(self) -> Iterator[Record]:
        """Return records as a journal would hold them: windows, decisions, a change, its end, its outcome."""
        policy = self.make_policy()
        spec = self.jobs()[0]
        for step in range(4):
            seen = window(spec, 500.0 * (step + 1), 4, 300.0, at_s=60.0 * (step + 1))
            decision = policy.decide(self._situation(spec, seen))
            yield seen
            yield decision
            if decision.target is not None:
                yield Intent(f"i{step}", step, seen.at_s, decision.target, seen.running)
                yield IntentEnd(f"i{step}", seen.at_s + 20, Ending.DONE, decision.target, downtime_s=20.0)
                yield Outcome(step, Verdict.KEPT, "it kept up", downtime_s=20.0)
        yield Observation.blind(300.0, "the engine did not answer")

    def test_options_survive_json_and_make_an_equal_policy(self) -> None:
        """What the journal says about the policy is enough to make it again."""
        policy = self.make_policy()
        again = from_json(type(policy), to_json(policy.options()))
        assert again == policy
        assert again.options() == policy.options()

    def test_its_factor_is_one_of_its_options(self) -> None:
        """So that setting it and the SLO's headroom can be refused by name."""
        policy = self.make_policy()
        option, value = policy.factor()
        assert option == "" or policy.options()[option] == value
