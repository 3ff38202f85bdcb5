"""The plan: from measurements to slots, memory and tasks for a rate, with an interval, a cost and warnings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rheostat.errors import RheostatError
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Interval
from rheostat.job.frozen import check_number
from rheostat.job.graph import JobSpec
from rheostat.job.plan import Choice, Estimate, NextMeasurement, Plan
from rheostat.planner.configuration_optimizer import MANY, OperatorCapacity, bids2, operator_capacities
from rheostat.planner.evidence import Evidence, Production
from rheostat.planner.failures import drop_doubtful, find_doubtful
from rheostat.planner.memory import regimes
from rheostat.planner.scaling import QUANTILES, Floats, Scaling

FAR = 25.0
"""Ratio of the planned to the largest measured size above which the plan carries a warning."""
WIDE = 2.0
"""Ratio of an interval's ends above which the plan carries a warning."""
BEYOND = 256
"""Largest considered size, as a multiple of the largest measured one."""
FALLS = 0.9
"""Ratio of two measured rates below which the larger size counts as slower."""
OUTCOMES = 15
"""Simulated outcomes of a candidate measurement."""
WORTH = 0.8
"""Share of the largest gain, in logarithms, at which a smaller measurement is preferred."""

Prices = Mapping[int | None, float]
"""Memory profile -> price of a slot per hour; None stands for all others."""


class NotPlannable(RheostatError):  # noqa: N818
    """The measurements do not allow a plan."""


def fitted_capacities(scaling: Scaling, spec: JobSpec, bounded: bool = True) -> tuple[OperatorCapacity, ...]:
    """Return every operator's most likely curve, within the job's bounds or without upper ones."""
    levels, exponents = scaling.levels(), scaling.exponents()
    return tuple(
        OperatorCapacity(
            a.name,
            levels.get(a.name, math.inf),
            exponents.get(a.name, 1.0),
            a.least,
            a.most if bounded else MANY // a.quantum * a.quantum,
            a.quantum,
        )
        for a in operator_capacities(spec, {}, {})
    )


def slots_for_rate(scaling: Scaling, rate_per_s: float, memory_mb: int | None, least: int) -> Interval:
    """Return the slots for a rate, with their 90 % interval; infinite if no size up to `BEYOND` is enough."""
    top = int(scaling.runs.slots.max()) * BEYOND
    grid = np.unique(np.round(np.geomspace(least, top, 56)))
    below = scaling.share_below(grid, memory_mb, rate_per_s)
    # The optimistic quantile needs the fewest slots.
    few, middle, many = (_smallest_reaching(scaling, grid, below, k, memory_mb, rate_per_s) for k in (2, 1, 0))
    return Interval(few, max(few, middle), max(few, middle, many))


def _smallest_reaching(
    scaling: Scaling, grid: Floats, below: Floats, quantile: int, memory_mb: int | None, rate_per_s: float
) -> float:
    """Return the size at which a quantile first reaches the rate; between two sizes it follows a power law."""
    enough = np.flatnonzero(below < QUANTILES[quantile])
    if not len(enough):
        return math.inf
    k = int(enough[0])
    if k == 0:
        return float(grid[0])
    less, more = scaling.rates(grid[k - 1 : k + 1], memory_mb)[:, quantile]
    step = math.log(rate_per_s / less) / math.log(more / less)
    return float(math.ceil(grid[k - 1] * (grid[k] / grid[k - 1]) ** step - 1e-6))


def make_plan(
    spec: JobSpec,
    estimates: Sequence[Estimate],
    rate_per_s: float,
    *,
    headroom: float = 0.1,
    memories_mb: Sequence[int | None] = (),
    prices: Prices | None = None,
    production: Sequence[Production] = (),
    most_slots: int | None = None,
    at_s: float = 0.0,
    seed: int = 0,
) -> Plan:
    """Return the cheapest measured memory profile's plan; NotPlannable if none of the profiles was measured.

    Without `memories_mb` all measured profiles are candidates.
    """
    check_number("rate_per_s", rate_per_s, least=1e-9)
    check_number("headroom", headroom)
    good = drop_doubtful(estimates)
    if not good:
        raise NotPlannable(_why_no_plan(estimates))
    bounds = operator_capacities(spec, {}, {})
    least = sum(a.least for a in bounds)
    wanted = rate_per_s * (1 + headroom)
    groups = regimes(good)
    every = list(dict.fromkeys(e.memory_mb for group in groups for e in group))
    requested = list(memories_mb) or every
    fitted = [(group, Scaling.fit(group, seed, production=production)) for group in groups]
    profiles = [
        Profile.of(scaling, Evidence.of(estimates, good, memory, production), memory, wanted, least, spec)
        for group, scaling in fitted
        for memory in requested
        if any(e.memory_mb == memory for e in group)
    ]
    if not profiles:
        names = ", ".join(f"{memory} MB" for memory in requested)
        raise NotPlannable(f"no run with {names} gave a rate: a profile that was not measured is not planned")
    choices = [(one, one.choice(price_of(prices, one.memory_mb))) for one in profiles]
    priced = any(choice.cost_per_hour is not None for _, choice in choices)
    chosen, cheapest = min(choices, key=lambda pair: preference(pair[1], priced))
    scaling, largest = chosen.scaling, max(e.slots for e in good if e.memory_mb == chosen.memory_mb)
    warnings = list(_warnings(estimates, good))
    warnings += [_unplanned(estimates, memory) for memory in requested if memory not in every]
    warnings += [text for group, next_ in pairwise(groups) if (text := _collapse(group, next_))]
    if math.isinf(cheapest.slots.middle):
        size, most = chosen.best(least)
        warnings.append(
            f"no number of slots is expected to sustain {wanted:,.0f}/s: the maximum is {most:,.0f}/s, "
            f"at {size} slots; further slots reduce it"
        )
    else:
        size = int(cheapest.slots.middle)
    split = bids2(fitted_capacities(scaling, spec, bounded=False), max(_whole_executors(size, spec), least))
    warnings += [
        f"the plan gives {a.name} {split.tasks[a.name]} tasks, and the job allows it at most {a.most}"
        for a in bounds
        if split.tasks[a.name] > a.most
    ]
    size = sum(split.tasks.values())
    capacity = chosen.capacity(size)
    smallest = chosen.capacity(least)
    if wanted <= smallest.middle and size == least:
        warnings.append(
            f"the smallest size already sustains {smallest.middle:,.0f}/s, more than {wanted:,.0f}/s: "
            "the plan has the fewest tasks that the job allows"
        )
    reach = size / largest
    if reach > FAR:
        warnings.append(f"the plan is {reach:.0f} times the largest measured size: it is a rough extrapolation")
    width = capacity.high / capacity.low
    if width > WIDE:
        warnings.append(
            f"the rate that {size} slots sustain is only known within a factor of {width:.1f}: "
            "the measured sizes leave open how the job scales"
        )
    if math.isinf(cheapest.slots.high) and math.isfinite(cheapest.slots.middle):
        warnings.append("perhaps no number of slots is enough")
    within = most_slots or largest
    return Plan(
        at_s,
        spec.name,
        rate_per_s,
        headroom,
        Allocation(dict(split.tasks), chosen.memory_mb),
        cheapest.slots,
        capacity,
        tuple(choice for _, choice in sorted(choices, key=lambda pair: requested.index(pair[0].memory_mb))),
        cheapest.cost_per_hour,
        largest,
        reach,
        tuple(warnings),
        scaling.weights(),
        next_measurement(scaling, float(size), chosen.memory_mb, within),
        len(estimates),
        sum(e.seconds for e in estimates) / 60,
        sum(e.slot_seconds for e in estimates) / 3600,
    )


@dataclass(frozen=True)
class Profile:
    """One measured memory profile: the model of its regime, its own measurements, and its slots for the rate."""

    memory_mb: int | None
    scaling: Scaling
    evidence: Evidence
    slots: Interval

    @staticmethod
    def of(
        scaling: Scaling,
        evidence: Evidence,
        memory_mb: int | None,
        wanted: float,
        least: int,
        spec: JobSpec,
    ) -> Profile:
        """Size one profile by the model, and by what its measurements leave of it."""
        modelled = slots_for_rate(scaling, wanted, memory_mb, least)

        def reaching(size: int) -> float:
            return slots_for_rate(scaling, wanted, memory_mb, size).middle

        size = evidence.size(modelled.middle, wanted, reaching)
        if math.isfinite(size):
            size = float(_whole_executors(int(size), spec))
        slots = Interval(min(modelled.low, size), size, max(modelled.high, size))
        return Profile(memory_mb, scaling, evidence, slots)

    def choice(self, price: float | None) -> Choice:
        """Return the slots with their price; a rate that no size sustains has none."""
        cost = None if price is None or math.isinf(self.slots.middle) else price * self.slots.middle
        return Choice(self.memory_mb, self.slots, cost)

    def capacity(self, slots: int) -> Interval:
        """Return the rate of one size by the model, and by what was measured of that size."""
        return self.evidence.bound(slots, self.scaling.rate_per_s(slots, self.memory_mb))

    def best(self, least: int) -> tuple[int, float]:
        """Return the size with the highest rate, and the rate."""
        grid = np.unique(np.round(np.geomspace(least, float(self.scaling.runs.slots.max()) * BEYOND, 48)))
        rates = self.scaling.rates(grid, self.memory_mb)[:, 1]
        sizes = {int(s): float(r) for s, r in zip(grid, rates, strict=True) if s < self.evidence.top}
        sizes |= self.evidence.rates_per_s
        return max(((s, r) for s, r in sizes.items() if s not in self.evidence.failed), key=lambda pair: pair[1])


def preference(choice: Choice, priced: bool) -> tuple[bool, bool, float, float, int]:
    """Return the order of choices: a size that suffices, then a known price, then the lower one."""
    unknown = priced and choice.cost_per_hour is None
    impossible = math.isinf(choice.slots.middle)
    return impossible, unknown, choice.cost_per_hour or 0.0, choice.slots.middle, choice.memory_mb or 0


def _whole_executors(size: int, spec: JobSpec) -> int:
    """Round up to whole executors."""
    step = max((tunable.quantum for tunable in spec.tunable), default=1)
    return -(-size // step) * step


def price_of(prices: Prices | None, memory_mb: int | None) -> float | None:
    """Return the price of a slot with this profile; None where it is not known."""
    if not prices:
        return None
    return prices.get(memory_mb, prices.get(None))


def _unplanned(estimates: Sequence[Estimate], memory_mb: int | None) -> str:
    """Return why a requested profile is not planned."""
    own = [e for e in estimates if e.memory_mb == memory_mb]
    if own and all(e.problem is not None for e in own):
        return f"with {memory_mb} MB every run failed: left out"
    return f"with {memory_mb} MB nothing was measured: left out"


def _collapse(more: Sequence[Estimate], less: Sequence[Estimate]) -> str:
    """Return the change of the rate between two regimes in words; "" if no size was measured in both."""
    common = {e.slots for e in more} & {e.slots for e in less}
    if not common:
        return ""
    with_more, with_less = (
        max(e.middle_per_s for e in group if e.slots == max(common)) for group in (more, less)
    )  # fmt: skip
    return (
        f"{max(common)} slots sustained {with_less:,.0f}/s with {less[0].memory_mb} MB and {with_more:,.0f}/s with "
        f"{more[-1].memory_mb} MB: these profiles are planned apart"
    )


def _why_no_plan(estimates: Sequence[Estimate]) -> str:
    if not estimates:
        return "nothing was measured"
    if limited := [e for e in estimates if e.limited_by == "injector" and e.rate_per_s is not None]:
        rate = max(e.rate_per_s.low for e in limited if e.rate_per_s is not None)
        return (
            f"the injector is the limit: it sends at most {rate:,.0f}/s, which every measured size sustains; "
            "give the testbed a faster source, or fewer slots"
        )
    return f"no size sustained any rate: {estimates[-1].problem}"


def _warnings(estimates: Sequence[Estimate], good: Sequence[Estimate]) -> Sequence[str]:
    warnings = []
    if limited := [e for e in estimates if e.limited_by == "injector"]:
        sizes = ", ".join(str(size) for size in sorted({e.slots for e in limited}))
        warnings.append(f"at {sizes} slots the injector was the limit: the job's capacity there was not measured")
    if doubtful := find_doubtful(estimates):
        sizes = ", ".join(str(e.slots) for e in doubtful)
        warnings.append(f"runs at {sizes} slots gave less than half of the rate that other sizes suggest: left out")
    for memory in dict.fromkeys(e.memory_mb for e in good):
        means: dict[int, list[float]] = {}
        for e in good:
            if e.memory_mb == memory:
                means.setdefault(e.slots, []).append(e.middle_per_s)
        rates = {slots: float(np.mean(values)) for slots, values in sorted(means.items())}
        for (small, less), (large, more) in zip(list(rates.items())[:-1], list(rates.items())[1:], strict=True):
            if more < FALLS * less:
                warnings.append(f"{large} slots sustained less ({more:,.0f}/s) than {small} ({less:,.0f}/s)")
    return warnings


def next_measurement(scaling: Scaling, target: float, memory_mb: int | None, most: int) -> NextMeasurement | None:
    """Return the measurement that is expected to narrow the interval at the target size most.

    Outcomes of a candidate are drawn from its posterior, and each of them reweighs the components of the mixture.
    """
    sizes = [float(s) for s in dict.fromkeys((most, 2 * most, 4 * most)) if s < target]
    if not sizes:
        return None
    law, draw = scaling.main_components()
    weight = scaling.weight[law, draw]
    mean, variance = scaling.log_rates(np.array([*sizes, target]), memory_mb)
    mean, variance = mean[law, draw], variance[law]
    noise = np.array([one.noise for one in scaling.laws])[law]
    now = _width(mean[:, -1], variance[:, -1], weight)
    places = (np.arange(OUTCOMES) + 0.5) / OUTCOMES
    candidates = []
    for k, size in enumerate(sizes):
        order = np.argsort(mean[:, k])
        picks = order[np.searchsorted(np.cumsum(weight[order]), places * weight.sum()).clip(max=len(order) - 1)]
        widths = []
        for outcome in mean[picks, k]:
            spread = variance[:, k] + noise**2
            reweighed = weight * np.exp(-0.5 * (outcome - mean[:, k]) ** 2 / spread) / np.sqrt(spread)
            if reweighed.sum() > 0:
                widths.append(_width(mean[:, -1], variance[:, -1], reweighed))
        candidates.append((size, float(np.exp(np.mean(np.log(widths))))))
    gain = max(now / then for _, then in candidates)
    size, then = next((s, w) for s, w in candidates if math.log(now / w) >= WORTH * math.log(gain) or now / w >= gain)
    return NextMeasurement(int(size), memory_mb, now, then, size <= most)


def _width(mean: Floats, variance: Floats, weight: Floats) -> float:
    """Return upper over lower end of the 90 % interval of a mixture."""
    spots = np.array([-1.0, 0.0, 1.0]) * 1.2247
    values = (mean[:, None] + np.sqrt(variance)[:, None] * spots).ravel()
    order = np.argsort(values)
    total = np.cumsum(np.repeat(weight, 3)[order])
    low, high = values[order][np.searchsorted(total, np.array([0.05, 0.95]) * total[-1]).clip(max=len(order) - 1)]
    return math.exp(float(high - low))
