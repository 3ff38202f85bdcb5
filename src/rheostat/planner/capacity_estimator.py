"""The capacity estimator: the maximum sustainable rate (MST) of an allocation, measured on a testbed.

StreamBed, section IV. A warm-up at full rate fills state and buffers and gives the first upper bound; then every
iteration cools down, ramps up to a target rate and observes. A rate is sustained when 99 % of it is processed; the next
target lies midway between the largest sustained and the smallest failed rate. The search ends when two targets are
close, or after a number of iterations.

| paper | here |
|---|---|
| max_r, min_r | `high`, `low` |
| 120 s warm-up, then 15 + 30 + 30 s | `Phases`; 645 s = 120 + 7 x 75 makes the warm-up the first iteration |
| 99 % | `Phases.sustained` |

Ours: with an injector that ignores back pressure (a testbed that only runs whole trials) a warm-up at full rate would
only build up a backlog, so the upper bound is found by doubling. Our own estimator is in `sequential_estimator.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from rheostat.errors import EngineError, describe
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Interval, Measurement
from rheostat.job.observation import Observation
from rheostat.job.plan import Estimate
from rheostat.planner.rig import UNLIMITED_PER_S, Feed, start_rig
from rheostat.ports import Rig, Testbed

BUSY = 0.9
"""Useful time below which an operator does not limit the job."""
DOUBLINGS = 24
"""Most rates tried to find an upper bound."""


@dataclass(frozen=True, slots=True)
class Phases:
    """Durations of the phases, and the end of the search; the defaults are the paper's for q1, q2 and q11."""

    warm_up_s: float = 120.0
    cool_down_s: float = 15.0
    ramp_up_s: float = 30.0
    observe_s: float = 30.0
    iterations: int = 8
    """Most iterations; the warm-up is the first."""
    within: float = 0.005
    """Relative difference of two targets that ends the search. The paper's example of 1 % would end it after 9.5
    minutes; its runs take 10.75, all eight iterations."""
    sustained: float = 0.99
    """Share of the target that must be processed."""
    cool_down_share: float = 0.01
    """Rate of a cool-down, as a share of the upper bound."""
    sample_s: float = 5.0
    """Length of a sample in our own estimator; the paper's metrics have the same."""


SIMPLE = Phases()
COMPLEX = Phases(warm_up_s=450.0, iterations=7)
"""The paper's phases for q5 and q8: 900 s in total."""


class NoMeasurement(Exception):  # noqa: N818 - the testbed's failure, not ours
    """A run on the testbed gave no measurement."""


@dataclass
class Bench:
    """A rig that counts the seconds used, and keeps the observed windows."""

    rig: Rig
    feed: Feed
    phases: Phases
    seconds: float = 0.0
    slot_seconds: float = 0.0
    windows: list[Observation] = field(default_factory=list)
    rates_tried: int = 0

    def look(self, rate_per_s: float, seconds: float, *before: tuple[float, float]) -> float:
        """Play (seconds, rate) phases, then observe a rate; return the records processed per second."""
        played = [self.feed.phase(s, r) for s, r in before if s > 0] + [self.feed.phase(seconds, rate_per_s, True)]
        measured: Measurement = self.rig.play(played)
        self.seconds += measured.seconds
        self.slot_seconds += measured.slot_seconds
        window = measured.observation
        if measured.problem is not None or window is None:
            raise NoMeasurement(measured.problem or "the testbed observed nothing")
        processed = window.throughput_per_s
        if processed is None:
            raise NoMeasurement("the testbed does not report the processed records")
        self.windows.append(window)
        return min(processed, rate_per_s)

    def cool_down(self, high: float) -> tuple[float, float]:
        """Return the seconds and the rate of a cool-down."""
        return self.phases.cool_down_s, self.phases.cool_down_share * high

    def injector_is_the_limit(self, target_per_s: float, processed_per_s: float) -> bool:
        """Whether less than the target was processed although no operator is busy."""
        window = self.windows[-1]
        names = () if window.running is None else tuple(window.running.tasks)
        shares = [window.operator(name).useful_share for name in names]
        measured = [share for share in shares if share is not None]
        idle = bool(measured) and max(measured) < BUSY and not window.overloaded
        return idle and processed_per_s < self.phases.sustained * target_per_s


Search = Callable[[Bench, float | None], Estimate]
"""(bench, expected rate) -> estimate; `estimate` fills in `allocation`, `at_s` and the costs."""


def estimate(
    testbed: Testbed,
    allocation: Allocation,
    feed: Feed,
    phases: Phases = SIMPLE,
    search: Search | None = None,
    *,
    expected_per_s: float | None = None,
    at_s: float = 0.0,
    why: str = "",
) -> Estimate:
    """Measure the sustainable rate of an allocation; a failure of the testbed is recorded in the estimate."""
    bench: Bench | None = None
    result = Estimate(at_s, allocation, None)
    try:
        bench = Bench(start_rig(testbed, allocation, phases.warm_up_s), feed, phases)
        result = (search or dichotomic)(bench, expected_per_s)
    except NoMeasurement as failure:
        result = Estimate(at_s, allocation, None, problem=str(failure))
    except EngineError as error:
        result = Estimate(at_s, allocation, None, problem=describe(error))
    finally:
        if bench is not None:
            bench.rig.stop()
    return Estimate(
        at_s,
        allocation,
        result.rate_per_s,
        bench.seconds if bench else 0.0,
        bench.slot_seconds if bench else 0.0,
        result.observation,
        expected_per_s,
        result.limited_by,
        bench.rates_tried if bench else 0,
        why,
        result.problem,
    )


def dichotomic(bench: Bench, expected_per_s: float | None) -> Estimate:
    """Search by bisection, as in the paper."""
    phases = bench.phases
    low, high, early = upper_bound(bench, expected_per_s)
    if early is not None:
        return early
    sustained = bench.windows[-1] if low > 0 else None
    # The warm-up was the first iteration.
    target, before = (low + high) / 2, None
    for _ in range(phases.iterations - 1):
        if before is not None and abs(target - before) <= phases.within * before:
            break
        bench.rates_tried += 1
        processed = bench.look(target, phases.observe_s, bench.cool_down(high), (phases.ramp_up_s, target))
        if processed >= phases.sustained * target:
            low, sustained = target, bench.windows[-1]
        else:
            high = target
        before, target = target, (low + high) / 2
    return conclude(low, low, high, sustained)


def upper_bound(bench: Bench, expected_per_s: float | None) -> tuple[float, float, Estimate | None]:
    """Return the largest sustained and the smallest failed rate so far, or an estimate that ends the search."""
    phases = bench.phases
    bench.rates_tried += 1
    if bench.rig.holds_back:
        observe_s = min(phases.observe_s, phases.warm_up_s)
        warm = (phases.warm_up_s - observe_s, UNLIMITED_PER_S)
        processed = bench.look(UNLIMITED_PER_S, observe_s, warm)
        if bench.injector_is_the_limit(UNLIMITED_PER_S, processed):
            return 0.0, processed, injector_limit(bench, processed)
        return 0.0, processed, None if processed > 0 else conclude(0.0, 0.0, 0.0, None)
    return _bracket_by_doubling(bench, expected_per_s or 1000.0)


def _bracket_by_doubling(bench: Bench, target: float) -> tuple[float, float, Estimate | None]:
    """Bracket the rate by factors of two, one run each."""
    low, high = 0.0, float("inf")
    for _ in range(DOUBLINGS):
        processed = bench.look(target, bench.phases.observe_s)
        arrived = bench.windows[-1].load_per_s
        if arrived is not None and arrived < 0.9 * target and bench.injector_is_the_limit(target, processed):
            return low, high, injector_limit(bench, processed)
        if processed >= bench.phases.sustained * target:
            low = target
        else:
            high = min(target, max(2.0 * processed, low * 1.01)) if processed > low else target
        if low > 0 and high < float("inf"):
            return low, high, None
        bench.rates_tried += 1
        target = target * 2 if high == float("inf") else target / 2
    return low, high, conclude(low, low, low, bench.windows[-1] if low > 0 else None)


def injector_limit(bench: Bench, processed_per_s: float) -> Estimate:
    """Return the estimate of a run that the injector limits: a lower bound."""
    bound = Interval.at_least(processed_per_s)
    return Estimate(0.0, Allocation({}), bound, observation=bench.windows[-1], limited_by="injector")


def conclude(low: float, middle: float, high: float, window: Observation | None) -> Estimate:
    """Return the estimate of a finished search; a rate of zero is a problem."""
    if middle <= 0 or window is None:
        why = "it cannot sustain even the smallest rate that was tried"
        return Estimate(0.0, Allocation({}), None, problem=why)
    return Estimate(0.0, Allocation({}), Interval(low, middle, max(high, middle)), observation=window)
