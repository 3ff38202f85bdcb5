"""What the papers' pipelines have in common: named steps, and a batch computation that says what must come out.

A pipeline takes records of `source.stream` (value, timestamp) and derives every field from `value` by SQL
expressions, so that a result can be repeated and checked to the row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from rheostat.errors import InvalidValue
from rheostat.job.frozen import check_number

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Transform: TypeAlias = "Callable[[DataFrame], DataFrame]"
Around: TypeAlias = "Callable[[str, Transform], Transform]"
"""Puts something around a named step, such as probes or pacing."""


@dataclass(frozen=True)
class Step:
    """One operator as a user names it."""

    name: str
    apply: Transform
    narrow: bool = True
    """Works row by row, takes and passes on `value`; else it has a shuffle, and nothing can be put around it."""


def plain(_name: str, apply: Transform) -> Transform:
    """Return the step as it is."""
    return apply


@dataclass(frozen=True)
class Pipeline:
    """A streaming query: where its records come from is the caller's business, and so is the sink."""

    name: str
    unit_per_s: float
    """Records/s at level 1 of a load: a thousandth of ContTune's Table 3 (else of the paper's rate), for two cores."""
    steps: tuple[Step, ...]
    expected: Transform
    """The same result computed from a batch of records by other means, without watermarks: whole windows only."""
    output_mode: str = "append"

    def __post_init__(self) -> None:
        check_number(f"unit_per_s of pipeline {self.name}", self.unit_per_s, least=1e-12)
        names = [step.name for step in self.steps]
        if not names or len(set(names)) != len(names):
            raise InvalidValue(f"pipeline {self.name!r} needs steps with different names, not {names}")

    @property
    def stateful(self) -> bool:
        """Whether any step keeps state between batches."""
        return not all(step.narrow for step in self.steps)

    def build(self, events: DataFrame, around: Around = plain) -> DataFrame:
        """Chain the steps on the records; `around` is put around every narrow step."""
        for step in self.steps:
            events = events.transform(around(step.name, step.apply) if step.narrow else step.apply)
        return events
