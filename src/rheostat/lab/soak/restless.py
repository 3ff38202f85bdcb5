"""A policy that asks for random sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rheostat.job.decision import Decision, Reason
from rheostat.ports import Policy, Situation


@dataclass(frozen=True)
class Restless(Policy[None]):
    """Asks for a random size now and then."""

    name: ClassVar[str] = "restless"
    most: int = 4
    """Most tasks of a stage."""
    chance: float = 1.0
    """Probability of a draw per step."""

    def decide(self, situation: Situation[None]) -> Decision:
        """Draw a number of tasks for every operator."""
        rng = situation.rng()
        if rng.random() >= self.chance:
            return Decision.hold(Reason.STEADY, "restless: rests")
        drawn = {name: int(rng.integers(1, self.most + 1)) for name in situation.spec.tunable_names}
        return situation.change_to(situation.fit(drawn), "restless")
