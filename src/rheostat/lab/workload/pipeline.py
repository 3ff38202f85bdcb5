"""A pipeline: named steps, and a batch computation of its expected result.

A pipeline reads records of `source.stream` (value, timestamp) and derives every field from `value` by SQL expressions,
so that its result can be repeated and checked row by row.
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
"""Wraps a named step, for example with probes or pacing."""


@dataclass(frozen=True)
class Step:
    """One named operator."""

    name: str
    apply: Transform
    narrow: bool = True
    """Whether it works row by row and passes `value` on; if not, it has a shuffle and cannot be wrapped."""


def plain(_name: str, apply: Transform) -> Transform:
    """Return the step unchanged."""
    return apply


@dataclass(frozen=True)
class Pipeline:
    """A streaming query without its source and sink, which the caller provides."""

    name: str
    unit_per_s: float
    """Records/s at level 1 of a load: a thousandth of ContTune's Table 3 (else of the paper's rate), for two cores."""
    steps: tuple[Step, ...]
    expected: Transform
    """The same result from a batch of records by other means, without watermarks: whole windows only."""
    output_mode: str = "append"

    def __post_init__(self) -> None:
        check_number(f"unit_per_s of pipeline {self.name}", self.unit_per_s, least=1e-12)
        names = [step.name for step in self.steps]
        if not names or len(set(names)) != len(names):
            raise InvalidValue(f"the steps of pipeline {self.name!r} need different names, not {names}")

    @property
    def stateful(self) -> bool:
        """Whether any step keeps state between batches."""
        return not all(step.narrow for step in self.steps)

    def build(self, events: DataFrame, around: Around = plain) -> DataFrame:
        """Chain the steps on the records; `around` wraps every narrow step."""
        for step in self.steps:
            events = events.transform(around(step.name, step.apply) if step.narrow else step.apply)
        return events
