"""Limits before a decision: bounds, quota and budget become what a decision may ask for."""

from __future__ import annotations

from collections.abc import Mapping

from rheostat.errors import InvalidValue, nearest
from rheostat.job.allocation import Allocation
from rheostat.job.graph import JobSpec
from rheostat.job.slo import Bounds, Limits, Slo


def limits(spec: JobSpec, slo: Slo) -> Limits:
    """Join the engine's bounds and quota with the Slo's bounds and budget; an error when nothing is left."""
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


def clip(target: Allocation, limits: Limits) -> tuple[Allocation, str]:
    """Return the nearest allocation that the limits allow, and why it is another ("" when it is not)."""
    tasks = {}
    for name, count in target.tasks.items():
        quantum = limits.quantum.get(name, 1)
        tasks[name] = limits.operators[name].clip(-(-count // quantum) * quantum)
    why = [f"{name} {target.tasks[name]} -> {tasks[name]}" for name in tasks if tasks[name] != target.tasks[name]]
    before = sum(tasks.values())
    _cut_to(limits, tasks, target.tasks)
    _fill_to(limits, tasks, target.tasks)
    if sum(tasks.values()) != before:
        why.append(f"{before} slots -> {sum(tasks.values())}, allowed are {_span(limits.slots)}")
    return Allocation(tasks, target.memory_mb), ", ".join(why)


def _cut_to(limits: Limits, tasks: dict[str, int], asked: Mapping[str, int]) -> None:
    """Take quanta away, always where most of what was asked is still granted, so that proportions stay."""
    while limits.slots.max is not None and sum(tasks.values()) > limits.slots.max:
        able = [n for n in tasks if tasks[n] - limits.quantum.get(n, 1) >= limits.operators[n].min]
        if not able:
            return
        name = max(able, key=lambda n: tasks[n] / asked[n])
        tasks[name] -= limits.quantum.get(name, 1)


def _fill_to(limits: Limits, tasks: dict[str, int], asked: Mapping[str, int]) -> None:
    """Add quanta up to the job's minimum, always where least of what was asked is granted."""
    while sum(tasks.values()) < limits.slots.min:
        tops = {n: limits.operators[n].max for n in tasks}
        able = [n for n, top in tops.items() if top is None or tasks[n] + limits.quantum.get(n, 1) <= top]
        if not able:
            return
        name = min(able, key=lambda n: tasks[n] / asked[n])
        tasks[name] += limits.quantum.get(name, 1)


def _span(bounds: Bounds) -> str:
    return f"at least {bounds.min}" if bounds.max is None else f"{bounds.min} to {bounds.max}"
