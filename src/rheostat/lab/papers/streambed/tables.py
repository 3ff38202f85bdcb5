"""The paper's tables and figures from our runs and from its recorded measurements."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rheostat.lab.papers.result import Cell, mean_with_interval
from rheostat.lab.papers.streambed import paper
from rheostat.lab.papers.streambed.paper import QUERIES, SLOTS_PER_MANAGER
from rheostat.lab.papers.streambed.recorded import table_iv_points
from rheostat.lab.papers.streambed.runs import ESTIMATORS, HELD, WAYS, Found, median
from rheostat.planner.extrapolation import Points, fitted, selected
from rheostat.planner.plan import make_plan

SUITE = "streambed"
NEVER = -1.0
"""Printed where no number of slots is enough."""
SIMULATED, RECORDED = ", simulated", ", recorded measurements"


def _shown(value: float) -> float:
    return value if math.isfinite(value) else NEVER


def table_3(found: Found) -> Iterator[Cell]:
    """Yield Table III: calls, minutes, how often the paper's family is chosen, and the recorded fit's coefficients."""
    for way in WAYS:
        for query, asked in QUERIES.items():
            runs = found.explored[query][way]
            theirs = way == paper.RULE
            for name, values, printed, unit in (
                ("III, calls of the optimizer", [float(r.calls_co) for r in runs], asked.calls_co, ""),
                ("III, calls of the estimator", [float(len(r.estimates)) for r in runs], asked.calls_ce, ""),
                ("III, minutes", [r.minutes for r in runs], asked.minutes, "min"),
            ):
                ours, low, high = mean_with_interval(values)
                yield Cell(SUITE, name, way, query, float(printed) if theirs else None, ours, unit, False, low, high)
    for query, asked in QUERIES.items():
        chosen = [float(r.family == asked.family) for r in found.explored[query][paper.RULE]]
        name = "III, share of runs that choose the paper's family"
        yield Cell(SUITE, name, paper.RULE, query, 1.0, sum(chosen) / len(chosen), "", False)
    for query, asked in QUERIES.items():
        if found.recorded[query].estimates:
            points = Points.of(table_iv_points(query, found.recorded[query]))
            fit = fitted(points, asked.family)
            yield Cell(SUITE, f"III{RECORDED}", "b", query, asked.b, fit.b, "", False)
            yield Cell(SUITE, f"III{RECORDED}", "c", query, asked.c, fit.c, "", False)
            same = float(selected(points).family == asked.family)
            yield Cell(SUITE, f"III{RECORDED}", "the rule chooses the paper's family", query, 1.0, same, "", False)


def table_4(found: Found) -> Iterator[Cell]:
    """Yield Table IV: slots for the requested rates, by profile."""
    for gb in paper.GB:
        for query, asked in QUERIES.items():
            if gb not in asked.slots:
                continue
            yield from _recorded(found, query, gb)
            name = f"IV, {gb:g} GB{SIMULATED}"
            for way in WAYS:
                values = [run.slots[gb] for run in found.explored[query][way] if gb in run.slots]
                if values:
                    printed = float(asked.slots[gb]) if way == paper.RULE else None
                    yield Cell(SUITE, name, way, query, printed, _shown(median(values)), "slots", False)
            yield Cell(SUITE, name, paper.TRUTH, query, None, _shown(found.needed[query][gb]), "slots", False)


def _recorded(found: Found, query: str, gb: float) -> Iterator[Cell]:
    asked, measured = QUERIES[query], found.recorded[query]
    if not measured.estimates:
        return
    name, memory = f"IV, {gb:g} GB{RECORDED}", round(1024 * gb * SLOTS_PER_MANAGER)
    points = Points.of(table_iv_points(query, measured))
    printed = float(asked.slots[gb])
    for row, fit in ((paper.FAMILY, fitted(points, asked.family)), (paper.RULE, selected(points))):
        slots = fit.slots_for(asked.rate_per_s, memory)
        yield Cell(SUITE, name, row, query, printed, _shown(float(slots or math.inf)), "slots", False)
    if gb == max(asked.gb):
        plan = make_plan(measured.spec, measured.estimates, asked.rate_per_s, memories_mb=(memory,))
        low, high = plan.slots.low, plan.slots.high
        middle = _shown(plan.slots.middle)
        yield Cell(SUITE, name, paper.OURS, query, printed, middle, "slots", False, low, high if high < 1e6 else None)


def extrapolation(found: Found) -> Iterator[Cell]:
    """Yield how far the simulated plans are from what is really needed, at 4 GB."""
    for way in WAYS:
        for query in QUERIES:
            needed = found.needed[query][4.0]
            off = [abs(run.slots[4.0] / needed - 1) for run in found.explored[query][way] if math.isfinite(needed)]
            if off and math.isfinite(median(off)):
                name = "IV, distance from the slots really needed"
                yield Cell(SUITE, name, way, query, None, 100 * median(off), "%", False)
    for query in QUERIES:
        plans = [run.plan for run in found.explored[query][paper.OURS] if run.plan is not None]
        needed = found.needed[query][4.0]
        inside = [float(plan.slots.low <= needed <= plan.slots.high) for plan in plans]
        name = "IV, share of our intervals that hold the slots really needed"
        yield Cell(SUITE, name, paper.OURS, query, None, sum(inside) / len(inside), "", False)


def figure_9(found: Found) -> Iterator[Cell]:
    """Yield Figure 9: of all budgets, how many sustain their estimate, and fail at half as much again."""
    for way in ESTIMATORS:
        for query in QUERIES:
            runs = found.replayed[query][way]
            printed = 1.0 if query in paper.SIMPLE_QUERIES and way == paper.DICHOTOMIC else None
            held = [float(run.share >= HELD) for run in runs]
            failed = [float(run.share_150 < HELD) for run in runs]
            least = min((run.share for run in runs), default=math.nan)
            minutes, _, _ = mean_with_interval([run.minutes for run in runs])
            for what, value, theirs in (
                ("sustained at 100 %", sum(held) / len(held), printed),
                ("failing at 150 %", sum(failed) / len(failed), printed),
                ("least processed at 100 %", least, 0.95 if printed else None),
            ):
                yield Cell(SUITE, f"Figure 9, {what}", way, query, theirs, value, "", False)
            yield Cell(SUITE, "Figure 9, minutes per estimate", way, query, None, minutes, "min", False)


def figure_10(found: Found) -> Iterator[Cell]:
    """Yield Figure 10: useful share of every operator at the largest size, at 100 % of its estimate."""
    for query in QUERIES:
        runs = found.replayed[query][paper.DICHOTOMIC]
        largest = max(runs, key=lambda run: (run.slots, run.gb))
        for operator, (tasks, useful) in largest.useful.items():
            printed = 0.6 if (query, operator) == ("q8", "join") else None
            name = f"Figure 10, {query}"
            yield Cell(SUITE, name, operator, "tasks", None, float(tasks), "", False)
            yield Cell(SUITE, name, operator, "useful share", printed, useful, "", False)


def figure_11(found: Found) -> Iterator[Cell]:
    """Yield Figure 11: what the planned size processes of 100, 120 and 150 % of the request."""
    for query in QUERIES:
        for name, shares in found.verified[query].items():
            for share, processed in shares.items():
                printed = 1.0 if share == "100 %" and name.startswith("Table IV") else None
                yield Cell(SUITE, f"Figure 11, {name}", share, query, printed, processed, "", False)
