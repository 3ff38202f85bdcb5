"""The methods of the comparison, with the parameters of their own papers, and ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

from rheostat.engine.simulated import Plant
from rheostat.job.decision import Decision, Reason, changes, direction
from rheostat.lab.experiment.oracle.sizes import smallest
from rheostat.lab.papers.capacity import rates_per_s
from rheostat.lab.papers.dragster import paper
from rheostat.lab.papers.play import Method
from rheostat.lab.papers.tuning import LOOK_S
from rheostat.policy.conttune.policy import ContTune
from rheostat.policy.demand import demand
from rheostat.policy.dhalion import Dhalion
from rheostat.policy.dragster.policy import TO_THE_LETTER, Dragster
from rheostat.ports import Policy, Situation

CLEARLY = 0.02
"""Share below the demand within which a capacity may be noise."""


@dataclass(frozen=True)
class FirstDhalion(Dhalion):
    """A Dhalion that scales the first operator with too little capacity, not the root of back pressure."""

    name: ClassVar[str] = "dhalion-first"

    def decide(self, situation: Situation[None]) -> Decision:
        """Scale the first operator whose capacity is below its demand while there is back pressure."""
        window = situation.window
        if window.overloaded:
            needed = demand(situation)
            short = [
                name
                for name in situation.spec.tunable_names
                if (window.operator(name).capacity_per_s or 0.0) < (1 - CLEARLY) * needed[name]
            ]
            situation = replace(situation, window=replace(window, overloaded=tuple(short[:1]) or window.overloaded))
        return super().decide(situation)


def dhalion(idle_below: float, first: bool = False) -> Dhalion:
    """Return the paper's Dhalion: one task more, or one task less below a CPU threshold."""
    return (FirstDhalion if first else Dhalion)(max_scale_up=1.0, scale_down=1.0, idle_below=idle_below)


@dataclass(frozen=True)
class LateOracle(Policy[None]):
    """Runs the fewest tasks for the load of the previous slot, by the true curves."""

    name: ClassVar[str] = "late-oracle"
    plant: Plant
    levels: tuple[float, ...]
    """Level of every slot."""

    def decide(self, situation: Situation[None]) -> Decision:
        """Change to the fewest tasks for the previous slot, with the SLO's headroom."""
        running, at_s = situation.running, situation.window.at_s
        rates = rates_per_s(self.plant, self.levels[min(int((at_s - 1.0) // LOOK_S), len(self.levels) - 1)])
        spare = 1.0 + situation.headroom()
        needed = situation.spec.graph.demand_per_s({name: rate * spare for name, rate in rates.items()})
        target = smallest(self.plant.capacity_per_s, needed, running, situation.limits)
        if target == running:
            return Decision.hold(Reason.STEADY, f"{running} suffices")
        return Decision(target, direction(running, target), f"{changes(running, target)}: enough for the previous slot")


def late(plant: Plant, levels: Sequence[float]) -> Method:
    """Return an oracle that knows every curve, and the load of the previous slot."""
    return Method(paper.LATE, partial(LateOracle, plant, tuple(levels)))


def letter(**departures: Any) -> Dragster:
    """Return a Dragster to the letter, which knows the throughput functions (section 6.1), with these departures."""
    return Dragster(**{**TO_THE_LETTER, "throughput": "graph", **departures})


PLAIN = {"multipliers": "ignored"}


def methods(idle_below: float) -> list[Method]:
    """Return the rows of every table but the last one, the oracle."""
    return [
        Method(paper.DHALION, partial(dhalion, idle_below)),
        Method(paper.SADDLE, letter),
        Method(paper.PLAIN, partial(letter, **PLAIN)),
        Method(paper.GRADIENT, partial(letter, variant="gradient")),
        Method(paper.OWN_SADDLE, Dragster),
        Method(paper.OWN_GRADIENT, partial(Dragster, variant="gradient")),
        Method(paper.OURS, partial(ContTune, big=False, model="loglog", refine=True)),
    ]


DEPARTURES = (
    Method(paper.MARGIN, partial(letter, **PLAIN, margin=None)),
    Method(paper.SHORTFALL, partial(letter, **PLAIN, shortfall=Dragster().shortfall)),
    Method(paper.DESCENT, partial(letter, variant="gradient", descends=True)),
    Method(paper.NO_MARGIN, partial(Dragster, margin=0.0)),
)
"""One of our departures each, and ours without one."""
SPLIT = Method(paper.SPLIT, partial(letter, **PLAIN, projection="balanced"))
REMEMBERS = Method(paper.REMEMBERS, partial(Dragster, forgets=False))
NO_CATCH_UP = Method(paper.NO_CATCH_UP, partial(Dragster, multipliers="ignored"))
