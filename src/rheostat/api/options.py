"""The rare knobs of `autoscale` and `start`, in one frozen value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rheostat.engine.batches.offsets import OffsetCounter
from rheostat.job.forecast import Foresight
from rheostat.job.frozen import FrozenMap, check_number, check_whole, put
from rheostat.job.guards import Guards
from rheostat.job.record import RETENTION_S
from rheostat.ports import Testbed


@dataclass(frozen=True, slots=True)
class Options:
    """The rare knobs of `autoscale` and `start`; every default has its reason in docs/defaults.md."""

    name: str | None = None
    """The job's name in the journal; left out, the queries' names, or the name of the function that starts it."""
    interval_s: float = 5.0
    """Seconds between two decisions."""
    window_s: float | None = None
    """Seconds that a decision looks back; left out, 30, or as long as three batches if that is longer."""
    guards: Guards = Guards()
    """What may stop or delay a change."""
    forecast: Foresight = Foresight()
    """How the load is forecast, where an objective or the policy needs a forecast."""
    seed: int = 0
    """Seed of a policy's random choices."""
    counters: Mapping[str, OffsetCounter] = field(default_factory=FrozenMap)
    """Query name -> a counter of records for a source whose offsets Rheostat cannot count by itself."""
    rename_state: bool = False
    """Whether state of a checkpoint that real-time mode made itself may be renamed for repartitioning."""
    retention_s: float | None = RETENTION_S
    """Seconds for which records stay in the journal; none keeps them for ever."""
    testbed: Testbed | None = None
    """Where a policy makes its trials; without one, trials are not run."""

    def __post_init__(self) -> None:
        check_number("interval_s", self.interval_s, least=1e-3)
        if self.window_s is not None:
            check_number("window_s", self.window_s, least=1e-3)
        check_number("retention_s", self.retention_s, least=1.0)
        check_whole("seed", self.seed, least=0)
        put(self, counters=FrozenMap(self.counters))
