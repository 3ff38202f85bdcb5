"""When a driver is killed: a time after the repartition has begun, or the sight of a stage; drawn from a seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rheostat.lab.kills.evidence import Stage

LATEST = 1.2
"""Latest kill, as a share of the usual duration of a repartition: some fall after its end."""
NARROW = (Stage.COMMITTED, Stage.OFFSETS, Stage.EMPTY_COMMIT)
"""Stages too short for a random time to hit them."""


@dataclass(frozen=True)
class Moment:
    """The moment of one kill over a repartition."""

    stage: Stage | None = None
    """Kill at the sight of this stage; None for a kill by time."""
    share: float = 0.0
    """By time: share of the usual duration. At the sight of state: files of it per new partition."""

    def __str__(self) -> str:
        if self.stage is None:
            return f"at {self.share:.0%} of the usual duration"
        return f"at the sight of: {self.stage}" + (f", {self.share:.0%}" if self.stage is Stage.STATE else "")


def draw_moments(kills: int, formats: int, rng: np.random.Generator) -> list[Moment]:
    """Draw the moments of all kills, of which kill i hits format i modulo `formats`.

    The first kill of every format leaves state without a commit, so that there is something to undo. Of the others
    every third waits for a stage that is too short for a random time; the rest are spread over the whole repartition.
    """
    first = [Moment(Stage.STATE, float(rng.uniform(0.1, 1.0))) for _ in range(min(kills, formats))]
    others = kills - len(first)
    narrow = [Moment(NARROW[number % len(NARROW)]) for number in range(others // 3)]
    timed = others - len(narrow)
    shares = rng.permutation((np.arange(timed) + rng.random(timed)) / max(timed, 1) * LATEST)
    rest = [*narrow, *(Moment(share=float(share)) for share in shares)]
    return [*first, *(rest[index] for index in rng.permutation(others))]
