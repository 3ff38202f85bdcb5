"""A measured number under a stable name."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">=": operator.ge,
}
"""Sign of a goal -> comparison."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One measured number beside its goal."""

    bench: str
    measure: str
    value: float
    unit: str
    goal: str
    better: Literal["higher", "lower"]
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the goal (`<= 5`, `< 0.4`, `>= 300000`) is met; None without a goal."""
        if not self.goal:
            return None
        sign, _, bound = self.goal.partition(" ")
        return COMPARE[sign](self.value, float(bound))

    def as_dict(self) -> dict[str, Any]:
        """Return the row for a JSON file."""
        return {name: getattr(self, name) for name in ("bench", "measure", "value", "unit", "goal", "better")}
