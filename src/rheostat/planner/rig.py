"""Rigs on a testbed: a job that keeps running while its rate changes, or one run per rate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rheostat.errors import EngineError
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Measurement, Phase, Trial
from rheostat.job.frozen import FrozenMap
from rheostat.job.observation import EdgeReading, Observation, OperatorReading, SourceReading
from rheostat.ports import Rig, Testbed

UNLIMITED_PER_S = 1e12
"""A rate above that of any injector."""


@dataclass
class RestartingRig:
    """A rig on a testbed that can only run whole trials: every rate restarts the job and warms it up first."""

    testbed: Testbed
    allocation: Allocation
    warm_up_s: float
    holds_back: bool = False

    def play(self, phases: Sequence[Phase]) -> Measurement:
        """Warm up at the first observed rate, then play the observed phases."""
        observed = [phase for phase in phases if phase.observed]
        warm = Phase(self.warm_up_s, observed[0].rates_per_s)
        slots = self.allocation.slots
        trial = Trial(f"{slots} slots at {sum(warm.rates_per_s.values()):g}/s", self.allocation, (warm, *observed))
        return self.testbed.measure(trial)

    def stop(self) -> None:
        """Do nothing: every trial ends by itself."""


def start_rig(testbed: Testbed, allocation: Allocation, warm_up_s: float) -> Rig:
    """Return a running rig if the testbed has one, else one that restarts for every rate."""
    begin: Callable[[Allocation], Rig] | None = getattr(testbed, "start", None)
    if begin is not None:
        try:
            return begin(allocation)
        except EngineError as error:
            if "trial by trial" not in str(error):
                raise
    return RestartingRig(testbed, allocation, warm_up_s)


@dataclass(frozen=True)
class Feed:
    """The distribution of a total rate over the sources."""

    shares: Mapping[str, float]

    @staticmethod
    def of(sources: Sequence[str], units_per_s: Mapping[str, float] | None = None) -> Feed:
        """Distribute in proportion to the sources' usual rates, evenly where they are not given."""
        units = {name: (units_per_s or {}).get(name, 1.0) for name in sources}
        total = sum(units.values())
        return Feed(FrozenMap({name: unit / total for name, unit in units.items()}))

    def phase(self, seconds: float, rate_per_s: float, observed: bool = False) -> Phase:
        """Return a phase with a total rate."""
        return Phase(seconds, {name: rate_per_s * share for name, share in self.shares.items()}, observed)


def pool_windows(windows: Sequence[Observation]) -> Observation:
    """Return one window that covers several: rates are means, true rates are records over useful time."""
    last = windows[-1]
    if len(windows) == 1:
        return last
    operators = []
    for reading in last.operators:
        each = [window.operator(reading.name) for window in windows]
        records = [r.records_in_per_s for r in each if r.records_in_per_s is not None]
        useful = [r.useful_share for r in each if r.useful_share is not None]
        complete = len(records) == len(useful) == len(windows) and sum(useful) > 1e-6
        operators.append(
            OperatorReading(
                reading.name,
                reading.tasks,
                records_in_per_s=sum(records) / len(records) if records else None,
                useful_share=min(sum(useful) / len(useful), 1.0) if useful else None,
                true_rate_per_s=sum(records) / sum(useful) / reading.tasks if complete and sum(records) > 0 else None,
                blocking_share=_mean([r.blocking_share for r in each]),
                pending=reading.pending,
                state_bytes=reading.state_bytes,
            )
        )
    sources = tuple(
        SourceReading(s.name, _mean([r.rate_per_s for w in windows for r in w.sources if r.name == s.name]), s.backlog)
        for s in last.sources
    )
    edges = tuple(
        EdgeReading(e.upstream, e.downstream, _mean([w.edges[k].records_per_s for w in windows]))
        for k, e in enumerate(last.edges)
        if all(len(w.edges) == len(last.edges) for w in windows)
    )
    return Observation(
        at_s=last.at_s,
        start_s=windows[0].start_s,
        end_s=last.end_s,
        running=last.running,
        wanted=last.wanted,
        sources=sources,
        operators=tuple(operators),
        edges=edges,
        uptime_s=last.uptime_s,
    )


def _mean(values: Sequence[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return sum(present) / len(present) if present else None
