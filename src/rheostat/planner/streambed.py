"""The paper's plan: its model solved for the rate, and one last pass of BIDS2 (section VI, model usage).

| paper | here |
|---|---|
| 110 % of the requested rate | `1 + headroom` |
| the family that extrapolates best, fitted to all measurements | `select_fit` |
| a final pass of BIDS2 from the largest run with the selected profile | `final_split` |

It has no interval, so both ends of the plan's intervals are its answer. It may plan profiles between measured ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from rheostat.job.allocation import Allocation
from rheostat.job.decision import Interval
from rheostat.job.frozen import check_number
from rheostat.job.graph import JobSpec
from rheostat.job.plan import Choice, Estimate, Plan
from rheostat.planner.configuration_optimizer import MANY, Split, bids2, operator_capacities, readings
from rheostat.planner.extrapolation import Points, select_fit
from rheostat.planner.plan import NotPlannable, Prices, preference, price_of
from rheostat.planner.resource_explorer import HELPER


def streambed_plan(
    spec: JobSpec,
    estimates: Sequence[Estimate],
    rate_per_s: float,
    *,
    headroom: float = 0.1,
    memories_mb: Sequence[int | None] = (),
    prices: Prices | None = None,
    at_s: float = 0.0,
) -> Plan:
    """Return the paper's plan; NotPlannable without a usable measurement."""
    check_number("rate_per_s", rate_per_s, least=1e-9)
    asked = [e for e in estimates if e.usable and not e.why.startswith(HELPER)]
    if not asked:
        raise NotPlannable("no budget of the exploration gave a rate")
    fit = select_fit(Points.of(asked))
    choices = []
    for memory in memories_mb or list(dict.fromkeys(e.memory_mb for e in asked)):
        slots = float(fit.slots_for(rate_per_s, float(memory or 1), 1 + headroom) or math.inf)
        price = price_of(prices, memory)
        cost = None if price is None or math.isinf(slots) else price * slots
        choices.append(Choice(memory, Interval(slots, slots, slots), cost))
    priced = any(choice.cost_per_hour is not None for choice in choices)
    chosen = min(choices, key=lambda choice: preference(choice, priced))
    largest = max(e.slots for e in asked)
    least = sum(a.least for a in operator_capacities(spec, {}, {}))
    size = max(int(chosen.slots.middle), least) if math.isfinite(chosen.slots.middle) else largest
    split = final_split(spec, estimates, size, chosen.memory_mb)
    tasks = Allocation(dict(split.tasks), chosen.memory_mb)
    rate = max(fit.rate_per_s(tasks.slots, float(chosen.memory_mb or 1)), 0.0)
    warnings = []
    if math.isinf(chosen.slots.middle):
        warnings.append(f"the {fit.family} model reaches {rate_per_s:,.0f}/s with no number of slots")
    return Plan(
        at_s,
        spec.name,
        rate_per_s,
        headroom,
        tasks,
        chosen.slots,
        Interval(rate, rate, rate),
        tuple(choices),
        chosen.cost_per_hour,
        largest,
        tasks.slots / largest,
        tuple(warnings),
        {fit.family: 1.0},
        None,
        len(estimates),
        sum(e.seconds for e in estimates) / 60,
        sum(e.slot_seconds for e in estimates) / 3600,
    )


def final_split(spec: JobSpec, estimates: Sequence[Estimate], slots: int, memory_mb: int | None) -> Split:
    """Split slots by the true rates of the largest run with this profile; of all runs, if the profile has none."""
    measured = [e for e in estimates if readings(e)[0]]
    own = [e for e in measured if e.memory_mb == memory_mb] or measured
    if not own:
        raise NotPlannable("no run has the true rates of its operators, by which slots are split")
    largest = max(own, key=lambda e: e.slots)
    capacities = operator_capacities(spec, *readings(largest))
    unbounded = [replace(a, most=MANY // a.quantum * a.quantum) for a in capacities]
    step = max(a.quantum for a in unbounded)
    return bids2(unbounded, -(-slots // step) * step)
