"""Dragster as in ContTune's comparison: "separate Bayesian Optimization models for different upstream data rates of
each operator" (section 1), which are retained for a rate that returns (section 7.1)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from rheostat.job.decision import Decision
from rheostat.job.frozen import FrozenMap
from rheostat.job.observation import Observation
from rheostat.job.record import Record
from rheostat.policy.dragster.policy import Dragster, Knowledge
from rheostat.ports import Policy, Situation

SAME = 0.04
"""Share by which rates of one model may differ."""

PerRate = Mapping[int, Knowledge]


@dataclass(frozen=True)
class DragsterPerRate(Policy[PerRate]):
    """A Dragster for every rate of the sources."""

    name: ClassVar[str] = "dragster-per-rate"
    own: Dragster = Dragster()

    def initial(self) -> PerRate:
        """Return knowledge without any rate."""
        return FrozenMap()

    def learn(self, knowledge: PerRate, record: Record) -> PerRate:
        """Fold the window into the knowledge of its rate."""
        if not isinstance(record, Observation):
            return knowledge
        rate = rate_of(record)
        before = knowledge.get(rate, self.own.initial())
        after = self.own.learn(before, record)
        return knowledge if after is before else FrozenMap({**knowledge, rate: after})

    def decide(self, situation: Situation[PerRate]) -> Decision:
        """Return the decision of the Dragster of the window's rate."""
        own_knowledge = situation.knowledge.get(rate_of(situation.window), self.own.initial())
        return self.own.decide(replace(situation, knowledge=own_knowledge))  # type: ignore[arg-type]


def rate_of(window: Observation) -> int:
    """Return the class of a window's rate."""
    total = sum(source.rate_per_s or 0.0 for source in window.sources)
    return round(math.log(max(total, 1.0)) / math.log1p(SAME))
