"""What a bench prints, under stable names."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rheostat.errors import InvalidValue

COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">=": operator.ge,
}
Progress = Callable[[str], None]
"""Told what is being measured now."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One measured number beside what was promised."""

    bench: str
    measure: str
    value: float
    unit: str
    goal: str
    better: Literal["higher", "lower"]
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the goal (`<= 5`, `< 0.4`, `>= 300000`) is met; None where there is none."""
        if not self.goal:
            return None
        sign, _, bound = self.goal.partition(" ")
        return COMPARE[sign](self.value, float(bound))

    def as_dict(self) -> dict[str, Any]:
        """Return the row for a JSON file."""
        return {name: getattr(self, name) for name in ("bench", "measure", "value", "unit", "goal", "better")}


def data_folder() -> Path:
    """Return the folder with the papers' measured data: $RHEOSTAT_DATA, or `shared/data` beside the project."""
    told = os.environ.get("RHEOSTAT_DATA")
    places = [Path(told)] if told else [Path.cwd().parent, Path(__file__).resolve().parents[4]]
    for place in places:
        folder = place if told else place / "shared" / "data"
        if folder.is_dir():
            return folder
    raise InvalidValue(
        "the papers' measured data are not here: this bench reads them in place from `../shared/data`, "
        "or from the folder that $RHEOSTAT_DATA names"
    )
