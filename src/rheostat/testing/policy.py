"""The rules for every policy: its decisions are pure, within the limits, explained, and never raise."""

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
    """Subclass it and implement `make_policy`; pytest then collects its tests."""

    @abstractmethod
    def make_policy(self) -> Policy[Any]:
        """Return a policy; every call returns an equal one."""

    def jobs(self) -> tuple[JobSpec, ...]:
        """Return the jobs of the tests. A policy whose options name operators overrides this."""
        return (word_count(), word_count(quantum=4), diamond(), diamond(Bounds(3, 3)))

    def situations(self) -> Iterator[tuple[str, Situation[Any]]]:
        """Return named situations, from ordinary to extreme but usable."""
        for spec in self.jobs():
            for name, observation in self._windows(spec):
                yield f"{spec.name}, {name}", self._situation(spec, observation)
                few = limits_of(spec, Bounds(1, 20))
                yield f"{spec.name}, {name}, few slots", self._situation(spec, observation, few)
            ordinary = window(spec, 1000.0, 4, 300.0)
            # The limits may change while the job runs.
            one = Limits({name: Bounds(1, 1) for name in spec.tunable_names}, Bounds())
            yield f"{spec.name}, one task each", self._situation(spec, ordinary, one)
            yield f"{spec.name}, headroom", replace(self._situation(spec, ordinary), slo=SLO(headroom=0.3))

    def _windows(self, spec: JobSpec) -> Iterator[tuple[str, Observation]]:
        for rate in (0.0, 1e-9, 1.0, 1000.0, 1e15):
            for true_rate in (1e-6, 300.0, 1e12):
                yield f"load {rate:g}, true rate {true_rate:g}", window(spec, rate, 4, true_rate)
        full = window(spec, 1000.0, 4, 300.0)
        missing: dict[str, Any] = dict.fromkeys(OPTIONAL)
        bare = replace(full, operators=tuple(replace(o, **missing) for o in full.operators))
        yield "only required readings", replace(bare, edges=(), overloaded=())
        yield "overload without a blocking share", replace(bare, overloaded=(spec.tunable_names[-1],))
        yield "overload everywhere", replace(full, overloaded=spec.graph.operators)
        yield "no throughput", self._without_throughput(full)

    @staticmethod
    def _without_throughput(full: Observation) -> Observation:
        idle: dict[str, Any] = {
            "records_in_per_s": 0.0,
            "true_rate_per_s": None,
            "useful_share": 0.0,
            "cpu_share": 0.0,
        }
        return replace(
            full,
            operators=tuple(replace(o, **idle) for o in full.operators),
            edges=tuple(replace(e, records_per_s=0.0) for e in full.edges),
        )

    def _situation(self, spec: JobSpec, observation: Observation, limits: Limits | None = None) -> Situation[Any]:
        return situation(spec, observation, self.make_policy().initial(), limits=limits)

    def decisions(self, rounds: int = 3) -> Iterator[tuple[str, Situation[Any], Decision]]:
        """Decide several times in every situation; each step gets the memo of the one before."""
        policy = self.make_policy()
        for name, start in self.situations():
            now = start
            for step in range(rounds):
                later_s = start.window.at_s + 60.0 * step
                later = replace(now.window, at_s=later_s, start_s=later_s - 60.0, end_s=later_s)
                now = replace(now, window=later, step=step)
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
        """A decision has a sentence, evidence without NaN, and a target that differs from the running allocation."""
        for name, at, decision in self.decisions():
            assert decision.sentence.strip(), name
            assert not any(math.isnan(value) for value in decision.evidence.values()), name
            assert "nan" not in decision.sentence.lower().split(), name
            assert decision.target != at.window.running, f"{name}: a hold has no target"

    def test_the_same_situation_gives_the_same_decision(self) -> None:
        """Repeated calls, and calls of two equal policies, return equal decisions."""
        policy, twin = self.make_policy(), self.make_policy()
        for name, at, decision in self.decisions():
            assert policy.decide(at) == decision, name
            assert twin.decide(at) == decision, name

    def test_decisions_survive_json(self) -> None:
        """The journaled decision equals the original, and its memo leads to the same next decision."""
        policy = self.make_policy()
        for name, at, decision in self.decisions():
            again = from_json(Decision, to_json(decision))
            assert again == decision, name
            after, journaled = replace(at, memo=decision.memo), replace(at, memo=again.memo)
            assert policy.decide(after) == policy.decide(journaled), name

    def test_the_situation_is_not_modified(self) -> None:
        """`decide` changes neither the memo nor the knowledge."""
        policy = self.make_policy()
        for name, at, _ in self.decisions():
            memo = copy.deepcopy(dict(at.memo))
            knowledge = copy.deepcopy(at.knowledge)
            policy.decide(at)
            assert at.memo == memo, name
            assert at.knowledge == knowledge, name

    def test_a_policy_that_reads_partial_windows_never_raises(self) -> None:
        """With missing operators, sources or running allocation, and with NaN, it holds or decides."""
        policy = self.make_policy()
        if not policy.reads_partial_windows:
            return
        for spec in self.jobs():
            full = replace(window(spec, 1000.0, 4, 300.0), problem="a part of it is missing")
            invalid = tuple(replace(o, cpu_share=math.nan, useful_share=None) for o in full.operators)
            for partial in (
                full,
                replace(full, operators=full.operators[:1], sources=()),
                replace(full, operators=invalid),
                replace(full, operators=(), edges=(), sources=()),
                replace(full, running=None),
                Observation.blind(60.0, "the engine did not answer"),
            ):
                assert policy.decide(self._situation(spec, partial)).sentence

    def test_learning_is_a_fold(self) -> None:
        """Equal records give equal knowledge, `learn` does not modify its argument, and knowledge survives JSON."""
        policy = self.make_policy()
        knowledge, twin = policy.initial(), self.make_policy().initial()
        for record in self.records():
            before, copied = knowledge, copy.deepcopy(knowledge)
            knowledge, twin = policy.learn(knowledge, record), self.make_policy().learn(twin, record)
            assert before == copied, f"learning from {type(record).__name__} modified the knowledge before it"
            assert knowledge == twin
        if knowledge is not None:
            assert from_json(type(policy.initial()), to_json(knowledge)) == knowledge

    def test_it_decides_with_its_knowledge(self) -> None:
        """`decide` accepts the knowledge that `learn` returns."""
        policy = self.make_policy()
        knowledge = policy.initial()
        for record in self.records():
            knowledge = policy.learn(knowledge, record)
        for name, at in self.situations():
            learned = replace(at, knowledge=knowledge)
            assert policy.decide(learned) == policy.decide(learned), name

    def records(self) -> Iterator[Record]:
        """Return the records of a short run: windows, decisions, a change, its end, its outcome."""
        policy = self.make_policy()
        spec = self.jobs()[0]
        for step in range(4):
            observation = window(spec, 500.0 * (step + 1), 4, 300.0, at_s=60.0 * (step + 1))
            decision = policy.decide(self._situation(spec, observation))
            yield observation
            yield decision
            if decision.target is not None:
                yield Intent(f"i{step}", step, observation.at_s, decision.target, observation.running)
                yield IntentEnd(f"i{step}", observation.at_s + 20, Ending.DONE, decision.target, downtime_s=20.0)
                yield Outcome(step, Verdict.KEPT, "it kept up", downtime_s=20.0)
        yield Observation.blind(300.0, "the engine did not answer")

    def test_options_survive_json_and_make_an_equal_policy(self) -> None:
        """The journaled options are enough to create the policy again."""
        policy = self.make_policy()
        again = from_json(type(policy), to_json(policy.options()))
        assert again == policy
        assert again.options() == policy.options()

    def test_its_factor_is_one_of_its_options(self) -> None:
        """An error about both the factor and the SLO's headroom can then name the option."""
        policy = self.make_policy()
        option, value = policy.factor()
        assert option == "" or policy.options()[option] == value
