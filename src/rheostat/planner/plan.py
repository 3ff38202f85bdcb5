"""The plan: from measurements to slots, memory and tasks for a rate, with an interval, a cost and warnings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from rheostat.errors import RheostatError
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Interval
from rheostat.job.frozen import check_number
from rheostat.job.graph import JobSpec
from rheostat.job.plan import Choice, Estimate, NextMeasurement, Plan
from rheostat.planner.configuration_optimizer import MANY, OperatorCapacity, bids2, operator_capacities
from rheostat.planner.failures import drop_doubtful, find_doubtful
from rheostat.planner.scaling import Floats, Scaling

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
    rates = scaling.rates(grid, memory_mb)
    # The optimistic quantile needs the fewest slots.
    few, middle, many = (_smallest_reaching(grid, rates[:, k], rate_per_s) for k in (2, 1, 0))
    return Interval(few, max(few, middle), max(few, middle, many))


def _smallest_reaching(grid: Floats, rates: Floats, rate_per_s: float) -> float:
    """Return the size at which a quantile first reaches the rate; between two sizes it follows a power law."""
    enough = np.flatnonzero(rates >= rate_per_s)
    if not len(enough):
        return math.inf
    k = int(enough[0])
    if k == 0:
        return float(grid[0])
    step = math.log(rate_per_s / rates[k - 1]) / math.log(rates[k] / rates[k - 1])
    return float(math.ceil(grid[k - 1] * (grid[k] / grid[k - 1]) ** step - 1e-6))


def make_plan(
    spec: JobSpec,
    estimates: Sequence[Estimate],
    rate_per_s: float,
    *,
    headroom: float = 0.1,
    memories_mb: Sequence[int | None] = (None,),
    prices: Prices | None = None,
    most_slots: int | None = None,
    at_s: float = 0.0,
    seed: int = 0,
) -> Plan:
    """Return the cheapest memory profile's plan; NotPlannable if there is no usable measurement."""
    check_number("rate_per_s", rate_per_s, least=1e-9)
    check_number("headroom", headroom)
    good = drop_doubtful(estimates)
    if not good:
        raise NotPlannable(_why_no_plan(estimates))
    scaling = Scaling.fit(good, seed)
    least = sum(a.least for a in operator_capacities(spec, {}, {}))
    wanted = rate_per_s * (1 + headroom)
    crashed = crashed_memories(estimates)
    memories = [m for m in memories_mb if m not in crashed] or [good[-1].memory_mb]
    choices = []
    for memory in memories:
        slots = slots_for_rate(scaling, wanted, memory, least)
        price = _price(prices, memory)
        cost = None if price is None or math.isinf(slots.middle) else price * slots.middle
        choices.append(Choice(memory, slots, cost))
    cheapest = min(choices, key=lambda c: (c.cost_per_hour or 0.0, c.slots.middle, c.memory_mb or 0))
    largest = int(scaling.runs.slots.max())
    warnings = list(_warnings(estimates, good, crashed))
    if math.isinf(cheapest.slots.middle):
        grid = np.unique(np.round(np.geomspace(least, largest * BEYOND, 48)))
        size = int(grid[int(np.argmax(scaling.rates(grid, cheapest.memory_mb)[:, 1]))])
        most = scaling.rate_per_s(size, cheapest.memory_mb)
        warnings.append(
            f"no number of slots is expected to sustain {wanted:,.0f}/s: the maximum is {most.middle:,.0f}/s, "
            f"at {size} slots; further slots reduce it"
        )
    else:
        size = int(cheapest.slots.middle)
    split = bids2(fitted_capacities(scaling, spec, bounded=False), max(_whole_executors(size, spec), least))
    warnings += [
        f"the plan gives {a.name} {split.tasks[a.name]} tasks, and the job allows it at most {a.most}"
        for a in operator_capacities(spec, {}, {})
        if split.tasks[a.name] > a.most
    ]
    capacity = scaling.rate_per_s(sum(split.tasks.values()), cheapest.memory_mb)
    smallest = scaling.rate_per_s(least, cheapest.memory_mb)
    if wanted <= smallest.middle:
        warnings.append(
            f"the smallest size already sustains {smallest.middle:,.0f}/s, more than {wanted:,.0f}/s: "
            "the plan has the fewest tasks that the job allows"
        )
    reach = sum(split.tasks.values()) / largest
    if reach > FAR:
        warnings.append(f"the plan is {reach:.0f} times the largest measured size: it is a rough extrapolation")
    width = capacity.high / capacity.low
    if width > WIDE:
        warnings.append(
            f"the rate that {sum(split.tasks.values())} slots sustain is only known within a factor of {width:.1f}: "
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
        Allocation(dict(split.tasks), cheapest.memory_mb),
        cheapest.slots,
        capacity,
        tuple(choices),
        cheapest.cost_per_hour,
        largest,
        reach,
        tuple(warnings),
        scaling.weights(),
        next_measurement(scaling, float(sum(split.tasks.values())), cheapest.memory_mb, within),
        len(estimates),
        sum(e.seconds for e in estimates) / 60,
        sum(e.slot_seconds for e in estimates) / 3600,
    )


def _whole_executors(size: int, spec: JobSpec) -> int:
    """Round up to whole executors."""
    step = max((tunable.quantum for tunable in spec.tunable), default=1)
    return -(-size // step) * step


def _price(prices: Prices | None, memory_mb: int | None) -> float | None:
    if not prices:
        return None
    return prices.get(memory_mb, prices.get(None))


def crashed_memories(estimates: Sequence[Estimate]) -> tuple[int, ...]:
    """Return the memory profiles with which every run failed."""
    tried = {e.memory_mb for e in estimates if e.memory_mb is not None}
    ran = {e.memory_mb for e in estimates if e.problem is None}
    return tuple(sorted(m for m in tried - ran if m is not None))


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


def _warnings(estimates: Sequence[Estimate], good: Sequence[Estimate], crashed: Sequence[int]) -> Sequence[str]:
    warnings = []
    if limited := [e for e in estimates if e.limited_by == "injector"]:
        sizes = ", ".join(str(size) for size in sorted({e.slots for e in limited}))
        warnings.append(f"at {sizes} slots the injector was the limit: the job's capacity there was not measured")
    if doubtful := find_doubtful(estimates):
        sizes = ", ".join(str(e.slots) for e in doubtful)
        warnings.append(f"runs at {sizes} slots gave less than half of the rate that other sizes suggest: left out")
    warnings += [f"with {memory} MB every run failed: left out" for memory in crashed]
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
