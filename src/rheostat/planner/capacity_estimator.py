"""The capacity estimator: the largest rate that an allocation sustains (MST), found on a testbed.

StreamBed, section IV. A warm-up at full rate fills state and buffers and gives the first upper bound; then every
iteration cools down, ramps up to a target rate and observes. A rate is sustained when 99 % of it is processed; the next
target lies midway between the largest sustained and the smallest failed rate. It ends when two targets are within 1 %,
or after a number of iterations.

| paper | here |
|---|---|
| max_r, min_r | `high`, `low` |
| 120 s warm-up, then 15 + 30 + 30 s | `Phases`; 645 s = 120 + 7 x 75 makes the warm-up the first iteration |
| 99 % | `Phases.sustained` |

Where an injector does not heed back pressure (a testbed that only runs whole trials) a warm-up at full rate would only
pile records up: the upper bound is then looked for by doubling. Ours is in `sequential_estimator.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from rheostat.errors import EngineError
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Interval, Measurement
from rheostat.job.observation import Observation
from rheostat.job.plan import Estimate
from rheostat.planner.rig import UNLIMITED_PER_S, Feed, start
from rheostat.ports import Rig, Testbed

BUSY = 0.9
"""An operator that is useful for less than this is not what limits the job."""
DOUBLINGS = 24


@dataclass(frozen=True, slots=True)
class Phases:
    """How long everything takes, and when it ends; the defaults are the paper's for q1, q2 and q11."""

    warm_up_s: float = 120.0
    cool_down_s: float = 15.0
    ramp_up_s: float = 30.0
    observe_s: float = 30.0
    iterations: int = 8
    """The warm-up is the first."""
    within: float = 0.01
    sustained: float = 0.99
    cool_down_share: float = 0.01
    """Rate of a cool-down, relative to the upper bound."""
    sample_s: float = 5.0
    """Length of a sample in our own estimator: the paper's metrics have the same."""


SIMPLE = Phases()
COMPLEX = Phases(warm_up_s=450.0, iterations=7)
"""The paper's phases for q5 and q8: 900 s in all."""


class Unmeasured(Exception):  # noqa: N818 - not a failure of ours: the testbed could not tell
    """A run on the testbed gave nothing to measure."""


@dataclass
class Bench:
    """A rig with a clock that counts what was used, and the last that was seen."""

    rig: Rig
    feed: Feed
    phases: Phases
    seconds: float = 0.0
    slot_seconds: float = 0.0
    windows: list[Observation] = field(default_factory=list)
    rates_tried: int = 0

    def look(self, rate_per_s: float, seconds: float, *before: tuple[float, float]) -> float:
        """Play (seconds, rate) stretches, then observe a rate; return what was processed per second."""
        played = [self.feed.phase(s, r) for s, r in before if s > 0] + [self.feed.phase(seconds, rate_per_s, True)]
        measured: Measurement = self.rig.play(played)
        self.seconds += measured.seconds
        self.slot_seconds += measured.slot_seconds
        window = measured.observation
        if measured.problem is not None or window is None:
            raise Unmeasured(measured.problem or "the testbed saw nothing")
        taken = window.throughput_per_s
        if taken is None:
            raise Unmeasured("the testbed does not say how many records were processed")
        self.windows.append(window)
        return min(taken, rate_per_s)

    def cooled(self, high: float) -> tuple[float, float]:
        """Return the stretch of a cool-down."""
        return self.phases.cool_down_s, self.phases.cool_down_share * high

    def injector_is_the_limit(self, asked_per_s: float, got_per_s: float) -> bool:
        """Whether less came than was asked for although no operator is busy."""
        tasks = self.windows[-1].running
        names = () if tasks is None else tuple(tasks.tasks)
        busy = [self.windows[-1].operator(name).useful_share for name in names]
        known = [share for share in busy if share is not None]
        idle = bool(known) and max(known) < BUSY and not self.windows[-1].overloaded
        return idle and got_per_s < self.phases.sustained * asked_per_s


Search = Callable[[Bench, float | None], Estimate]
"""(bench, what is expected) -> estimate; `allocation`, `at_s` and costs are filled in by `estimate`."""


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
    """Find what an allocation sustains; whatever goes wrong on the testbed is recorded in the estimate."""
    bench: Bench | None = None
    found = Estimate(at_s, allocation, None)
    try:
        bench = Bench(start(testbed, allocation, phases.warm_up_s), feed, phases)
        found = (search or dichotomic)(bench, expected_per_s)
    except Unmeasured as nothing:
        found = Estimate(at_s, allocation, None, problem=str(nothing))
    except EngineError as error:
        found = Estimate(at_s, allocation, None, problem=f"{type(error).__name__}: {error}")
    finally:
        if bench is not None:
            bench.rig.stop()
    return Estimate(
        at_s,
        allocation,
        found.rate_per_s,
        bench.seconds if bench else 0.0,
        bench.slot_seconds if bench else 0.0,
        found.observation,
        expected_per_s,
        found.limited_by,
        bench.rates_tried if bench else 0,
        why,
        found.problem,
    )


def dichotomic(bench: Bench, expected_per_s: float | None) -> Estimate:
    """Search as the paper does."""
    phases = bench.phases
    low, high, left = upper_bound(bench, expected_per_s)
    if left is not None:
        return left
    good = bench.windows[-1] if low > 0 else None
    # The warm-up was the first iteration.
    target, before = (low + high) / 2, None
    for _ in range(phases.iterations - 1):
        if before is not None and abs(target - before) <= phases.within * before:
            break
        bench.rates_tried += 1
        got = bench.look(target, phases.observe_s, bench.cooled(high), (phases.ramp_up_s, target))
        if got >= phases.sustained * target:
            low, good = target, bench.windows[-1]
        else:
            high = target
        before, target = target, (low + high) / 2
    return concluded(low, low, high, good)


def upper_bound(bench: Bench, expected_per_s: float | None) -> tuple[float, float, Estimate | None]:
    """Return the largest sustained and the smallest failed rate so far; or an estimate that ends the search."""
    phases = bench.phases
    bench.rates_tried += 1
    if bench.rig.holds_back:
        watched = min(phases.observe_s, phases.warm_up_s)
        warm = (phases.warm_up_s - watched, UNLIMITED_PER_S)
        got = bench.look(UNLIMITED_PER_S, watched, warm)
        if bench.injector_is_the_limit(UNLIMITED_PER_S, got):
            return 0.0, got, injected(bench, got)
        return 0.0, got, None if got > 0 else concluded(0.0, 0.0, 0.0, None)
    return _doubling(bench, expected_per_s or 1000.0)


def _doubling(bench: Bench, target: float) -> tuple[float, float, Estimate | None]:
    """Bracket the rate by factors of two, a run each."""
    low, high = 0.0, float("inf")
    for _ in range(DOUBLINGS):
        got = bench.look(target, bench.phases.observe_s)
        arrived = bench.windows[-1].load_per_s
        if arrived is not None and arrived < 0.9 * target and bench.injector_is_the_limit(target, got):
            return low, high, injected(bench, got)
        if got >= bench.phases.sustained * target:
            low = target
        else:
            high = min(target, max(2.0 * got, low * 1.01)) if got > low else target
        if low > 0 and high < float("inf"):
            return low, high, None
        bench.rates_tried += 1
        target = target * 2 if high == float("inf") else target / 2
    return low, high, concluded(low, low, low, bench.windows[-1] if low > 0 else None)


def injected(bench: Bench, got: float) -> Estimate:
    """Return the answer where the injector gave out first: at least this much."""
    most = Interval.at_least(got)
    return Estimate(0.0, Allocation({}), most, observation=bench.windows[-1], limited_by="injector")


def concluded(low: float, middle: float, high: float, seen: Observation | None) -> Estimate:
    """Return the answer; a rate of zero is none."""
    if middle <= 0 or seen is None:
        why = "it cannot sustain even the smallest rate that was tried"
        return Estimate(0.0, Allocation({}), None, problem=why)
    return Estimate(0.0, Allocation({}), Interval(low, middle, max(high, middle)), observation=seen)
