"""The recovery-time objective as a limit: it raises the smallest size before any policy decides.

Learned capacities, downtimes of past failures and the forecast give the capacity with which the job would catch up in
time after a failure at any moment of the next minutes. That capacity gives the fewest tasks of every operator. So even
a policy that knows nothing of failures meets the objective. Where no allowed size meets it, the largest is asked for,
and the decision says that the objective is broken.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from statistics import NormalDist

from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, GuardNote, Interval, Reason
from rheostat.job.fit import MOST_TASKS, fit_suggestions, round_up
from rheostat.job.forecast import Forecast
from rheostat.job.graph import JobSpec
from rheostat.job.observation import MOST, Observation, Status
from rheostat.job.record import Record, Run
from rheostat.job.slo import SLO, Bounds, Limits
from rheostat.model.capacity import Floats
from rheostat.model.downtime import LEGACY_PRIOR, Downtimes, state_of
from rheostat.model.downtime import fold as fold_downtimes
from rheostat.model.history import History
from rheostat.model.history import fold as fold_history
from rheostat.model.loglog import LogLog
from rheostat.model.recovery import Course, needed_capacity_per_s, recovery_time_s
from rheostat.policy.demand import measured_selectivity

DEFAULT_QUANTILE = 0.9
"""Share of failures that must meet the objective, where the SLO does not say."""
CHECKPOINT_S = 10.0
"""Seconds between checkpoints, where the engine does not say."""
LEAD_S = 120.0
"""Seconds ahead for which a failure is provided for now. Later failures only stop shrinking and set how far growth
goes: the next decisions can still provide for them."""
ROOM = 0.05
"""Extra growth as a share of the need, so that a load that varies by a few per cent costs no restart a minute."""
SPARE = 0.15
"""Share of the running tasks that must be spare before the job shrinks."""
GUESSED = " (no failure yet: say slo.downtime_s where you know it; `rheostat drill` measures it)"
UNBOUNDED_TASKS = 200
"""Fewest sizes to consider where an operator has no upper bound; twice the running tasks where that is more."""


@dataclass(frozen=True)
class Recoveries:
    """What the recovery floor is computed from; a fold over the journal."""

    capacities: History = field(default_factory=History)
    downtimes: Downtimes = field(default_factory=Downtimes)


def fold(known: Recoveries, record: Record, spec: JobSpec | None) -> Recoveries:
    """Fold one record in: capacities from ordinary windows, downtimes from failures and drills."""
    if isinstance(record, Run):
        mean_s, spread = record.prior_downtime or LEGACY_PRIOR
        known = replace(known, downtimes=known.downtimes.with_prior(mean_s, spread))
    known = replace(known, capacities=fold_history(known.capacities, record))
    interval_s = (spec.checkpoint_interval_s if spec else None) or CHECKPOINT_S
    return replace(
        known,
        downtimes=fold_downtimes(
            known.downtimes, record, interval_s, lambda window: _served_share(known, window, spec) if spec else None
        ),
    )


def _served_share(known: Recoveries, window: Observation, spec: JobSpec) -> float | None:
    """Return the capacity of the job over its load: of the operator that has least."""
    demand = _demand(window, spec)
    shares = []
    for name, tasks in (window.running.tasks if window.running else {}).items():
        curve = _curve(known, name, tasks)
        if curve is None or demand is None:
            return None
        if demand[name] > 0:
            shares.append(float(curve[tasks - 1]) / demand[name])
    return min(shares, default=None)


@dataclass(frozen=True, eq=False)
class Floor:
    """What the recovery-time objective needs: the fewest tasks, and whether they meet it."""

    tasks: Mapping[str, int]
    """The fewest tasks of every operator whose capacity is known."""
    met: bool
    why: str
    needed_per_s: float
    """Records/s at the sources that the job must be able to do."""
    downtime_s: float
    interval_s: float
    course: Course
    """The load that a failure now would meet."""
    capacities_per_s: Mapping[str, Floats]
    """Operator -> what 1, 2, 3 ... of its tasks can do, in records/s at the sources."""

    def expected_s(self, allocation: Allocation) -> float | None:
        """Return the recovery time of an allocation, of its slowest operator; None where that is not known."""
        able = []
        for name, curve in self.capacities_per_s.items():
            tasks = allocation.tasks.get(name, 0)
            if not 1 <= tasks <= curve.size:
                return None
            able.append(float(curve[tasks - 1]))
        return recovery_time_s(min(able), self.course, self.interval_s, self.downtime_s) if able else None


def recovery_floor(
    limits: Limits, spec: JobSpec, slo: SLO, window: Observation, known: Recoveries, forecast: Forecast | None
) -> Floor | None:
    """Return the fewest tasks that meet `slo.max_recovery_s`; None where there is no objective, or no sample yet.

    There is none either while the job catches up with a failure and can: a change would only stop it again.
    """
    demand, load, running = _demand(window, spec), window.load_per_s, window.running
    if slo.max_recovery_s is None or demand is None or load is None or running is None:
        return None
    if window.status is Status.RECOVERING and (_served_share(known, window, spec) or 0.0) > 1.0:
        return None
    quantile = doubt(slo.recovery_quantile)
    downtime_s = known.downtimes.quantile(quantile, state_of(window))
    interval_s = spec.checkpoint_interval_s or CHECKPOINT_S
    soon, later = _courses(load, forecast, quantile, LEAD_S), _courses(load, forecast, 0.5, math.inf)
    needed, at_last = (
        max(needed_capacity_per_s(slo.max_recovery_s, course, interval_s, downtime_s) for course in courses)
        for courses in (soon, later)
    )
    suggestions: dict[str, float] = {}
    capacities: dict[str, Floats] = {}
    for name, tasks in running.tasks.items():
        top = limits.operators[name].max or max(UNBOUNDED_TASKS, 2 * tasks)
        curve = _curve(known, name, top)
        if curve is None or not demand[name] > 0:
            continue
        # In units of the sources: an operator that takes in a tenth of the records needs a tenth of the capacity.
        capacities[name] = curve * (load / demand[name])
        suggestions[name] = _steady(_enough(capacities[name], needed), _enough(capacities[name], at_last), tasks, top)
    if not suggestions:
        return None
    tasks_left = fit_suggestions(
        limits, {name: suggestions.get(name, float(limits.operators[name].min)) for name in running.tasks}
    )
    # Bounds, quantum and slots may cut the suggestion: what is left must still be enough.
    late = [name for name, able in capacities.items() if not able[min(tasks_left[name], able.size) - 1] >= needed]
    floor = {name: tasks_left[name] for name in suggestions}
    downtime = f"downtime {downtime_s:.0f} s{GUESSED if known.downtimes.guessed else ''}"
    why = _why(slo.max_recovery_s, floor, late, downtime, downtime_s >= slo.max_recovery_s, forecast)
    return Floor(floor, not late, why, needed, downtime_s, interval_s, soon[0], capacities)


def doubt(quantile: float | None) -> float:
    """Return the quantile of each of two independent doubts, downtime and load, that together give this one."""
    normal = NormalDist()
    return normal.cdf(normal.inv_cdf(quantile or DEFAULT_QUANTILE) / math.sqrt(2))


def _enough(capacities_per_s: Floats, needed_per_s: float) -> int | None:
    able = capacities_per_s >= needed_per_s
    return int(able.argmax()) + 1 if able.any() else None


def _steady(soon: int | None, later: int | None, running: int, top: int) -> float:
    """Return the tasks to ask for: the running ones if enough and not far too many, else the need plus room."""
    if soon is None:
        return float(top)
    most = max(soon, later or top)
    if running < soon:
        return float(max(round_up(soon * (1 + ROOM)), most))
    least = round_up(most * (1 + ROOM))
    return float(running if least > running * (1 - SPARE) else least)


def _why(
    most_s: float, floor: Mapping[str, int], late: list[str], downtime: str, impossible: bool, forecast: Forecast | None
) -> str:
    basis = f"{downtime}, {f'forecast by {forecast.model}' if forecast else 'no forecast'}"
    sizes, objective = (
        ", ".join(f"{name} {tasks}" for name, tasks in floor.items()),
        f"recovery within {most_s:g} s",
    )
    if impossible:
        return f"{objective} is broken at any size: {basis}"
    if late:
        return f"{objective} is broken: {', '.join(late)} cannot be large enough, the most is {sizes} ({basis})"
    return f"{objective} needs at least {sizes} ({basis})"


def raise_limits(limits: Limits, floor: Floor) -> Limits:
    """Return the limits with the floor in them."""
    operators = dict(limits.operators)
    for name, least in floor.tasks.items():
        bounds = operators[name]
        operators[name] = Bounds(max(bounds.min, least), bounds.max)
    return Limits(operators, limits.slots, limits.quantum)


def explain_floor(decision: Decision, floor: Floor, limits: Limits, running: Allocation) -> Decision:
    """Say in the decision what the floor did; where it holds below the floor, grow to it."""
    below = {n: max(running.tasks[n], least) for n, least in floor.tasks.items() if running.tasks[n] < least}
    if decision.target is None and below and decision.reason is not Reason.NO_POLICY:
        target = running.with_tasks(fit_suggestions(limits, {**running.tasks, **below}))
        if target != running:
            sentence = f"{floor.why}; {decision.sentence}"
            decision = replace(decision, target=target, reason=Reason.UNDER_PROVISIONED, sentence=sentence)
    size = decision.target or running
    evidence = {
        **decision.evidence,
        "recovery.downtime_s": floor.downtime_s,
        "recovery.needed_per_s": floor.needed_per_s,
    }
    evidence |= {f"recovery.{name}.least_tasks": float(least) for name, least in floor.tasks.items()}
    expects, expected = decision.expects, floor.expected_s(size)
    if expected is not None and expects.recovery_s is None:
        expects = replace(expects, recovery_s=Interval.at_most(expected))
    at_floor = any(size.tasks[name] <= least for name, least in floor.tasks.items())
    notes = (GuardNote("recovery", floor.why),) if at_floor or not floor.met else ()
    return replace(decision, evidence=evidence, expects=expects, guards=(*decision.guards, *notes))


def _courses(load_per_s: float, forecast: Forecast | None, quantile: float, ahead_s: float) -> list[Course]:
    """Return the load as a failure now would meet it, and one at every step of the time ahead."""
    if forecast is None or not forecast.rates_per_s:
        return [Course.constant(load_per_s)]
    path, step_s = forecast.path(quantile), forecast.step_s
    ahead = len(path) - 1 if math.isinf(ahead_s) else min(math.ceil(ahead_s / step_s), len(path) - 1)
    return [Course.of([load_per_s, *path[:k]], path[k:], step_s) for k in range(ahead + 1)]


def _demand(window: Observation, spec: JobSpec) -> dict[str, float] | None:
    rates = {source.name: source.rate_per_s for source in window.sources}
    known = {name: rates.get(name) for name in spec.graph.sources}
    if any(rate is None or not 0 <= rate < MOST for rate in known.values()):
        return None
    sources = {name: rate for name, rate in known.items() if rate is not None}
    return spec.graph.demand_per_s(sources, measured_selectivity(spec.graph, window))


def _curve(known: Recoveries, operator: str, most: int) -> Floats | None:
    """Return the expected capacities at 1, 2, 3 ... tasks; None where nothing is known."""
    samples = known.capacities.samples(operator)
    if not samples or not 1 <= most <= MOST_TASKS:
        return None
    curve = LogLog.fit(samples).curve(min(most, 10 * UNBOUNDED_TASKS))
    return curve.capacity_per_s
