"""Settings of the guards that stand between a decision and the running job."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from rheostat.errors import InvalidValue
from rheostat.job.frozen import check_number, check_whole

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class FrozenPeriod:
    """A stretch of time in which nothing is changed: once, or every day (`every_s` = 86400)."""

    start_s: float
    """First moment, in seconds since the epoch, or since midnight UTC for a daily one."""
    end_s: float
    """First moment after it."""
    every_s: float | None = None
    """Seconds after which it comes again."""

    def __post_init__(self) -> None:
        check_number("start of a frozen period", self.start_s)
        check_number("end of a frozen period", self.end_s)
        if self.every_s is None and self.end_s <= self.start_s:
            raise InvalidValue(f"a frozen period must end after it starts, not {self.start_s:g} to {self.end_s:g}")

    def covers(self, at_s: float) -> bool:
        """Whether the moment lies inside."""
        if self.every_s is None:
            return self.start_s <= at_s < self.end_s
        length = (self.end_s - self.start_s) % self.every_s or self.every_s
        return (at_s - self.start_s) % self.every_s < length

    @staticmethod
    def parse(text: str) -> FrozenPeriod:
        """Read `22:00-06:00` (every day, UTC) or `2026-12-24T00:00/2026-12-27T00:00` (once, UTC)."""
        try:
            if "/" in text:
                start, end = (datetime.fromisoformat(part) for part in text.split("/"))
                stamps = [(t if t.tzinfo else t.replace(tzinfo=UTC)).timestamp() for t in (start, end)]
                return FrozenPeriod(*stamps)
            start_s, end_s = (_seconds_of_day(part) for part in text.split("-"))
        except InvalidValue:
            raise
        except ValueError as error:
            raise InvalidValue(
                f"cannot read frozen period {text!r}: write 22:00-06:00 or 2026-12-24T00:00/2026-12-27T00:00 (UTC)"
            ) from error
        return FrozenPeriod(start_s, end_s, DAY_S)


def _seconds_of_day(text: str) -> float:
    hours, minutes = (int(part) for part in text.strip().split(":"))
    if not (0 <= hours <= 24 and 0 <= minutes < 60):
        raise ValueError(text)
    return hours * 3600.0 + minutes * 60.0


@dataclass(frozen=True, slots=True)
class Guards:
    """What may stop or delay a change; the defaults are those of a careful operator (docs/defaults.md)."""

    max_step_up: float | None = None
    """Largest growth of one operator in one step, as a ratio (2.0 = at most double; always at least one task)."""
    max_step_down: float | None = None
    """Largest cut of one operator in one step, as a ratio (0.5 = at most half; always at least one task)."""
    cooldown_up_s: float = 0.0
    """Seconds after a change before the job may grow."""
    cooldown_down_s: float = 300.0
    """Seconds after a change before the job may shrink."""
    shrink_after_s: float = 300.0
    """Seconds for which a smaller size must have been enough before the job shrinks, to the largest of that time."""
    max_changes_per_hour: int | None = 12
    """Most changes within an hour; only growth out of an overload or a broken objective exceeds it."""
    frozen: tuple[FrozenPeriod, ...] = ()
    """Periods in which nothing is changed."""
    shrink_while_recovering: bool = False
    """Whether the job may shrink before the backlog of a failure, a change or a peak is worked off."""
    shrink_over_slo: bool = False
    """Whether the job may shrink while its latency or lag is over the objective."""
    recovery_floor: bool = True
    """Whether the recovery-time objective raises the smallest size before a policy decides."""
    dry_run: bool = False
    """Decide and journal, but change nothing."""
    change_patience_s: float = 300.0
    """Seconds after which a change that does not show has failed, and is undone."""
    change_deadline_s: float = 1800.0
    """Seconds after which a change that is still under way has failed; what it does after that is refused."""
    explore: Literal["testbed", "live", "never"] = "testbed"
    """Where a policy may experiment: on a testbed, also on the live job, or nowhere."""

    def __post_init__(self) -> None:
        check_number("guards.max_step_up", self.max_step_up, least=1.0)
        check_number("guards.max_step_down", self.max_step_down, most=1.0)
        for name in ("cooldown_up_s", "cooldown_down_s", "shrink_after_s"):
            check_number(f"guards.{name}", getattr(self, name))
        if self.max_changes_per_hour is not None:
            check_whole("guards.max_changes_per_hour", self.max_changes_per_hour, least=1)
        check_number("guards.change_patience_s", self.change_patience_s, least=1.0)
        check_number("guards.change_deadline_s", self.change_deadline_s, least=1.0)
        if self.explore not in ("testbed", "live", "never"):
            raise InvalidValue(f"guards.explore must be testbed, live or never, not {self.explore!r}")


UNGUARDED = Guards(cooldown_down_s=0.0, shrink_after_s=0.0, max_changes_per_hour=None, shrink_over_slo=True)
"""A policy on its own, as its paper has it: what experiments run with. It still holds where acting would be blind."""
