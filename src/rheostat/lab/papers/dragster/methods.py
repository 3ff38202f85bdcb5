"""The methods of the comparison, with the parameters of their own papers, and ours beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

from rheostat.engine.simulated import Plant
from rheostat.job.decision import Decision
from rheostat.lab.experiment.clairvoyant import Clairvoyant
from rheostat.lab.papers.dragster import paper
from rheostat.lab.papers.dragster.play import Method
from rheostat.lab.papers.tuning import LOOK_S
from rheostat.policy.conttune.policy import ContTune
from rheostat.policy.demand import demand
from rheostat.policy.dhalion import Dhalion
from rheostat.policy.dragster.policy import Dragster
from rheostat.ports import Policy, Situation

CLEARLY = 0.02
"""An ability that is less than this below the demand may be noise."""


@dataclass(frozen=True)
class FirstDhalion(Dhalion):
    """A Dhalion that looks at the first operator that cannot serve the load, not at the root of back pressure."""

    name: ClassVar[str] = "dhalion-first"

    def decide(self, situation: Situation[None]) -> Decision:
        """Relieve the first operator whose ability is below its demand, as long as there is back pressure."""
        window = situation.window
        if window.overloaded:
            needed = demand(situation)
            short = [
                name
                for name in situation.spec.tunable_names
                if (window.operator(name).ability_per_s or 0.0) < (1 - CLEARLY) * needed[name]
            ]
            situation = replace(situation, window=replace(window, overloaded=tuple(short[:1]) or window.overloaded))
        return super().decide(situation)


def dhalion(idle_below: float, first: bool = False) -> Dhalion:
    """Return Dhalion as the paper describes it: one task more, or one task less below a CPU threshold."""
    return (FirstDhalion if first else Dhalion)(max_scale_up=1.0, scale_down=1.0, idle_below=idle_below)


def late(plant: Plant, levels: Sequence[float]) -> Policy[Any]:
    """Return one who knows every curve, and the load of the slot that has just ended."""

    def seen(start_s: float, _: float) -> dict[str, float]:
        level = levels[min(int((start_s - 1.0) // LOOK_S), len(levels) - 1)]
        return {name: unit * level for name, unit in plant.unit_per_s.items()}

    return Clairvoyant(plant.ability_per_s, seen, worth=0.0)


def named(name: str, make: Callable[[], Policy[Any]]) -> Method:
    """Return a method whose policy needs to know nothing of the plant."""
    return Method(name, lambda plant, levels: make())


def methods(idle_below: float) -> list[Method]:
    """Return the rows of every table."""
    return [
        named(paper.DHALION, partial(dhalion, idle_below)),
        named(paper.SADDLE, Dragster),
        named(paper.GRADIENT, partial(Dragster, variant="gradient")),
        named(paper.OURS, partial(ContTune, big=False, model="loglog", refine=True)),
        Method(paper.LATE, late),
    ]
