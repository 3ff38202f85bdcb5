"""A tuning: the steps between a load that moved and a size that is right for it.

ContTune's controller (section 3 of its paper) starts one when the job has to be looked at again, and a method of
several steps, such as Big and then Small, has to know where in it a step is. The memo carries that from step to step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from rheostat.policy.demand import demand
from rheostat.ports import Situation


@dataclass(frozen=True, slots=True)
class Tuning:
    """Where a tuning is."""

    demand: Mapping[str, float]
    """Records/s that every operator had to serve when it began."""
    open: bool = True
    small: bool = False
    """Whether the Small phase was reached: from then on Big is not used again."""
    explored: bool = False
    """Whether the last step trusted the linear suggestion somewhere."""
    asked: bool = False
    """Whether the last step asked for a change."""
    changed_at_s: float | None = None
    """When the last change had ended, as that step knew it."""

    @staticmethod
    def at(situation: Situation[Any], trigger: float) -> Tuning | None:
        """Return the tuning that this step belongs to; None when nothing calls for one.

        One begins when there is none yet, when a demand has moved by the share `trigger`, or under back pressure.
        """
        needed, memo = demand(situation), situation.memo.get("tuning")
        last = Tuning(**{name: memo[name] for name in FIELDS if name in memo}) if memo else None
        if last is None or moved(last.demand, needed, trigger):
            return Tuning(needed, changed_at_s=situation.changed_at_s)
        if last.open:
            return last
        under = bool(situation.window.overloaded)
        return replace(last, open=True, small=False, asked=False, demand=needed) if under else None

    def made(self, situation: Situation[Any]) -> bool:
        """Whether the change that the last step asked for was made; a guard may have stopped it."""
        return self.asked and situation.changed_at_s != self.changed_at_s

    def memo(self, situation: Situation[Any], **now: Any) -> dict[str, Any]:
        """Return the memo that hands this tuning to the next step."""
        last = replace(self, **{"asked": False, "changed_at_s": situation.changed_at_s, **now})
        return {"tuning": {name: getattr(last, name) for name in FIELDS}}


FIELDS = tuple(field.name for field in fields(Tuning))


def moved(before: Mapping[str, float], now: Mapping[str, float], share: float) -> bool:
    """Whether a demand has moved by more than a share of the larger one."""
    if before.keys() != now.keys():
        return True
    return any(abs(rate - before[name]) > share * max(rate, before[name]) for name, rate in now.items())
