"""A tuning: the steps between a change of load and the right size for it.

ContTune's controller (section 3 of its paper) starts one when the job must be sized again. A method with several steps,
such as Big and then Small, needs to know its position; the memo carries it from step to step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from rheostat.policy.demand import demand
from rheostat.ports import Situation

PATIENCE = 3
"""Looks in a row at which an operator's demand must be lower, while the sources' rates are as before: a selectivity
that alternates is served at its larger value."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """The position in a tuning."""

    demand: Mapping[str, float]
    """Demand of every operator, in records/s, when it began."""
    open: bool = True
    small: bool = False
    """Whether the Small phase was reached; Big is not used afterwards."""
    explored: bool = False
    """Whether the last step used the linear suggestion for an operator."""
    asked: bool = False
    """Whether the last step requested a change."""
    changed_at_s: float | None = None
    """End of the last change, as of that step."""
    lower: int = 0
    """Looks in a row at which a demand was lower by `trigger`, while the sources' rates were as before."""

    @staticmethod
    def at(situation: Situation[Any], trigger: float) -> Tuning:
        """Return the tuning of this step; it is closed if none is needed.

        A tuning begins at the first step, when a demand has moved by the share `trigger`, or under back pressure.
        """
        needed, memo = demand(situation), situation.memo.get("tuning")
        last = Tuning(**{name: memo[name] for name in FIELDS if name in memo}) if memo else None
        if last is None or last.demand.keys() != needed.keys():
            return Tuning(needed, changed_at_s=situation.changed_at_s)
        moved = [name for name, rate in needed.items() if is_other(last.demand[name], rate, trigger)]
        at_once = any(name in situation.spec.graph.sources or needed[name] > last.demand[name] for name in moved)
        if at_once or (moved and last.lower + 1 >= PATIENCE):
            return Tuning(needed, changed_at_s=situation.changed_at_s)
        last = replace(last, lower=last.lower + 1 if moved else 0)
        if not last.open and situation.window.overloaded:
            return replace(last, open=True, small=False, asked=False, demand=last.served(needed))
        return last

    def served(self, needed: Mapping[str, float]) -> dict[str, float]:
        """Return the demand to be served: that of the tuning where the present one is lower, which may not last."""
        return {name: max(rate, self.demand[name]) for name, rate in needed.items()}

    def was_applied(self, situation: Situation[Any]) -> bool:
        """Whether the change that the last step requested was applied; a guard may have stopped it."""
        return self.asked and situation.changed_at_s != self.changed_at_s

    def memo(self, situation: Situation[Any], **now: Any) -> dict[str, Any]:
        """Return the memo that passes this tuning to the next step."""
        last = replace(self, **{"asked": False, "changed_at_s": situation.changed_at_s, **now})
        # A journal from before `lower` replays to the letter.
        return {"tuning": {name: getattr(last, name) for name in FIELDS if name != "lower" or last.lower}}


FIELDS = tuple(field.name for field in fields(Tuning))


def has_moved(before: Mapping[str, float], now: Mapping[str, float], share: float) -> bool:
    """Whether a demand has moved by more than a share of the larger value."""
    return before.keys() != now.keys() or any(is_other(before[name], rate, share) for name, rate in now.items())


def is_other(before: float, now: float, share: float) -> bool:
    """Whether two rates differ by more than a share of the larger one."""
    return abs(now - before) > share * max(now, before)
