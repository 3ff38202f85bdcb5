"""Limits before a decision: bounds, quota and budget become what a decision may ask for."""

from __future__ import annotations

from rheostat.errors import InvalidValue, nearest
from rheostat.job.graph import JobSpec
from rheostat.job.slo import SLO, Bounds, Limits


def limits(spec: JobSpec, slo: SLO) -> Limits:
    """Join the engine's bounds and quota with the SLO's bounds and budget; an error when nothing is left."""
    for name in slo.operators:
        if name not in spec.tunable_names:
            raise InvalidValue(f"slo.operators: {name!r} cannot be tuned, {nearest(name, spec.tunable_names)}")
    operators = {}
    for tunable in spec.tunable:
        wanted = slo.operators.get(tunable.operator, Bounds())
        try:
            both = tunable.bounds.within(wanted)
            operators[tunable.operator] = _whole_quanta(both, tunable.quantum)
        except InvalidValue as error:
            raise InvalidValue(f"bounds of operator {tunable.operator!r}: {error}") from error
    tops = {
        "slo.job.max": slo.job.max,
        "slo.budget": slo.budget.max_slots if slo.budget else None,
        "the engine's quota": spec.slots_available,
    }
    given = {name: top for name, top in tops.items() if top is not None}
    least = max(slo.job.min, sum(bounds.min for bounds in operators.values()))
    for name, top in given.items():
        if top < least:
            raise InvalidValue(f"{name} allows {top} slots, but the job needs at least {least}")
    return Limits(
        operators,
        Bounds(slo.job.min, min(given.values()) if given else None),
        {t.operator: t.quantum for t in spec.tunable},
    )


def _whole_quanta(bounds: Bounds, quantum: int) -> Bounds:
    low = -(-bounds.min // quantum) * quantum
    high = None if bounds.max is None else bounds.max // quantum * quantum
    return Bounds(low, high)
