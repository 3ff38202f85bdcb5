"""What every policy starts from: no knowledge, no own factor, options that are its dataclass fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, Generic, TypeVar

from rheostat.job.decision import Decision
from rheostat.job.record import Record
from rheostat.ports import Situation

K = TypeVar("K")


class BasePolicy(Generic[K]):
    """Subclass it as a frozen dataclass, give it a `name` and a `decide`; its fields are its options."""

    name: ClassVar[str] = ""
    reads_partial_windows: ClassVar[bool] = False
    wants_forecast: ClassVar[bool] = False
    """Whether it decides from `Situation.forecast`; it may still be None."""
    factor_option: ClassVar[str] = ""
    """The option that over-provisions, where the policy's paper has one of its own."""

    def options(self) -> Mapping[str, Any]:
        """Return the dataclass fields."""
        return {f.name: getattr(self, f.name) for f in fields(self)} if is_dataclass(self) else {}

    def factor(self) -> tuple[str, float | None]:
        """Return the policy's own over-provisioning option."""
        return self.factor_option, getattr(self, self.factor_option) if self.factor_option else None

    def initial(self) -> K:
        """Return no knowledge."""
        return None  # type: ignore[return-value]

    def learn(self, knowledge: K, record: Record) -> K:
        """Learn nothing."""
        return knowledge

    def decide(self, situation: Situation[K]) -> Decision:
        """Say what should run."""
        raise NotImplementedError(f"policy {self.name!r} has no decide")
