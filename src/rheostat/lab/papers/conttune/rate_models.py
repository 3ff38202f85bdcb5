"""Dragster as ContTune's authors compare with it: "separate Bayesian Optimization models for different upstream data
rates of each operator" (section 1), with what was learned kept for a rate that comes again (section 7.1)."""

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
"""Rates that differ by less than this share are one."""

PerRate = Mapping[int, Knowledge]


@dataclass(frozen=True)
class DragsterPerRate(Policy[PerRate]):
    """A Dragster for every rate of the sources."""

    name: ClassVar[str] = "dragster-per-rate"
    own: Dragster = Dragster()

    def initial(self) -> PerRate:
        """Return no rate at all."""
        return FrozenMap()

    def learn(self, knowledge: PerRate, record: Record) -> PerRate:
        """Teach the Dragster of the window's rate."""
        if not isinstance(record, Observation):
            return knowledge
        rate = rate_of(record)
        before = knowledge.get(rate, self.own.initial())
        after = self.own.learn(before, record)
        return knowledge if after is before else FrozenMap({**knowledge, rate: after})

    def decide(self, situation: Situation[PerRate]) -> Decision:
        """Ask the Dragster of the window's rate."""
        known = situation.knowledge.get(rate_of(situation.window), self.own.initial())
        return self.own.decide(replace(situation, knowledge=known))  # type: ignore[arg-type]


def rate_of(window: Observation) -> int:
    """Return the class of rates that a window belongs to."""
    total = sum(source.rate_per_s or 0.0 for source in window.sources)
    return round(math.log(max(total, 1.0)) / math.log1p(SAME))
