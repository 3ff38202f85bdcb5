"""The paper's tables and figures from our runs and from its recorded measurements."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from rheostat.job.allocation import Allocation
from rheostat.job.decision import Interval
from rheostat.lab.jobs import job
from rheostat.lab.papers.streambed import paper
from rheostat.lab.papers.streambed.paper import QUERIES, SLOTS_PER_MANAGER
from rheostat.lab.papers.streambed.production import brackets, with_other_profile
from rheostat.lab.papers.streambed.recordings import table_iv_points
from rheostat.lab.papers.streambed.runs import ESTIMATORS, HELD, RULE, TABLE_IV, WAYS, Found, median
from rheostat.lab.papers.streambed.truth import Truth
from rheostat.lab.papers.table import Cell, Table
from rheostat.planner.extrapolation import Points, fit_family, select_fit
from rheostat.planner.plan import make_plan

NEVER = -1.0
"""Printed if no number of slots suffices."""
MOST_PLANNED = 1e6
"""Slots from which the upper end of an interval means that none suffice."""
SIMULATED, RECORDED = ", simulated", ", recorded measurements"
CHOOSES = "the rule chooses the paper's family"
COVERED = "Figure 11, recorded measurements: share of profiles whose production run meets our interval"
WIDTH = "Figure 11, recorded measurements: width of our interval"
BY_RULE = "sustained at 100 % by the paper's 99 %"
RUNS = "share of runs"
NEARER = "IV, share of runs in which our plan is nearer to the slots really needed"
NEAR_PERCENT = 8.0
NEAR = f"IV, share of plans within {NEAR_PERCENT:g} % of the slots really needed"


def _finite_or_never(value: float) -> float:
    return value if math.isfinite(value) else NEVER


def table_2(_: Found) -> Iterator[Cell]:
    """Yield Table II: the rate of one task per operator, to which the simulated queries' curves are fitted."""
    table = Table("II, rate of single tasks", "records/s")
    for query, settings in QUERIES.items():
        plant = job(settings.job)
        single = Allocation(dict.fromkeys(plant.spec().tunable_names, 1), 4096)
        yield table.exact("simulated", query, Truth(plant).sustained_per_s(single), settings.single_per_s, True)


def table_3(found: Found) -> Iterator[Cell]:
    """Yield Table III: calls, minutes, the share of the paper's family, and the coefficients of the recorded fit."""
    for way in WAYS:
        for query, settings in QUERIES.items():
            runs = found.explored[query][way]
            for table, values, printed in (
                (Table("III, calls of the optimizer"), [float(r.calls_co) for r in runs], settings.calls_co),
                (Table("III, calls of the estimator"), [float(len(r.estimates)) for r in runs], settings.calls_ce),
                (Table("III, minutes", "min"), [r.minutes for r in runs], settings.minutes),
            ):
                yield table.mean(way, query, values, float(printed) if way == paper.RULE else None)
    table = Table("III, share of runs that choose the paper's family", RUNS)
    for query, settings in QUERIES.items():
        same = [run.family == settings.family for run in found.explored[query][paper.RULE]]
        yield table.share(paper.RULE, query, same, True)
    table = Table(f"III{RECORDED}")
    for query, settings in QUERIES.items():
        if found.recorded[query].estimates:
            points = Points.of(table_iv_points(query, found.recorded[query]))
            fit = fit_family(points, settings.family)
            # q11's rows are chosen so that its coefficients come out.
            chosen = query == "q11"
            yield table.exact("a", query, fit.a, settings.a, chosen)
            yield table.exact("b", query, fit.b, settings.b, chosen)
            yield table.exact("c", query, fit.c, settings.c, chosen)
            same_family = float(select_fit(points).family == settings.family)
            yield table.exact(CHOOSES, query, same_family, 1.0, chosen, flags=True)


def table_4(found: Found) -> Iterator[Cell]:
    """Yield Table IV: slots for the requested rates, by profile."""
    for gb in paper.GB:
        for query, settings in QUERIES.items():
            if gb not in settings.slots:
                continue
            yield from _recorded(found, query, gb)
            table = Table(f"IV, {gb:g} GB{SIMULATED}", "slots")
            for way in WAYS:
                values = [run.slots[gb] for run in found.explored[query][way] if gb in run.slots]
                if values:
                    printed = float(settings.slots[gb]) if way == paper.RULE else None
                    yield table.cell(way, query, _finite_or_never(median(values)), printed)
            yield table.exact(paper.TRUTH, query, _finite_or_never(found.needed[query][gb]))


def _recorded(found: Found, query: str, gb: float) -> Iterator[Cell]:
    settings, measured = QUERIES[query], found.recorded[query]
    if not measured.estimates:
        return
    table, memory = Table(f"IV, {gb:g} GB{RECORDED}", "slots"), round(1024 * gb * SLOTS_PER_MANAGER)
    points = Points.of(table_iv_points(query, measured))
    printed = float(settings.slots[gb])
    for row, fit in ((paper.FAMILY, fit_family(points, settings.family)), (paper.RULE, select_fit(points))):
        slots = fit.slots_for(settings.rate_per_s, memory)
        yield table.exact(row, query, _finite_or_never(float(slots or math.inf)), printed, query == "q11")
    if gb == max(settings.gb):
        slots_90 = make_plan(measured.spec, measured.estimates, settings.rate_per_s, memories_mb=(memory,)).slots
        yield table.exact(paper.OURS, query, _finite_or_never(slots_90.middle), printed)
        high = slots_90.high if slots_90.high < MOST_PLANNED else NEVER
        for end, value in (("from", slots_90.low), ("to", high)):
            yield table.exact(f"{paper.OURS}, 90 % {end}", query, value)


def production(found: Found) -> Iterator[Cell]:
    """Yield Figure 11's production runs beside our interval of their rate from the recorded small runs."""
    table = Table(f"Figure 11{RECORDED}: rate at Table IV's size with the most memory", "records/s")
    for query in QUERIES:
        runs = list(brackets(query, found.recorded[query]))
        if not runs:
            continue
        last = runs[-1]
        yield table.exact("sustained in production", query, last.sustained_per_s)
        yield table.exact("not sustained", query, last.failed_per_s)
        for row, rate in zip(("5 %", "median", "95 %"), _ends(last.predicted), strict=True):
            yield table.exact(f"{paper.OURS}, {row}", query, rate)
        if len(runs) > 1:
            informed = with_other_profile(query, found.recorded[query])
            for row, rate in zip(("5 %", "median", "95 %"), _ends(informed), strict=True):
                yield table.exact(f"{paper.OURS}, {row}, with the run of the next profile", query, rate)
        covered = float(np.mean([run.covered for run in runs]))
        yield Table(COVERED, "share").exact(paper.OURS, query, covered)
        widths = [run.predicted.high / run.predicted.low for run in runs]
        yield Table(WIDTH).exact(paper.OURS, query, float(np.median(widths)))


def _ends(interval: Interval) -> tuple[float, float, float]:
    """Return low end, middle and high end."""
    return interval.low, interval.middle, interval.high


def extrapolation(found: Found) -> Iterator[Cell]:
    """Yield the errors of the simulated plans at 4 GB."""
    table = Table("IV, distance from the slots really needed", "%")
    for query in QUERIES:
        needed = found.needed[query][4.0]
        if not math.isfinite(needed):
            continue
        off = {
            way: [abs(run.slots.get(4.0, math.inf) / needed - 1) for run in found.explored[query][way]] for way in WAYS
        }
        for way, errors in off.items():
            if math.isfinite(median(errors)):
                yield table.median(way, query, [100 * error for error in errors])
            yield Table(NEAR, RUNS).share(way, query, [100 * error <= NEAR_PERCENT for error in errors])
        nearer = [ours < theirs for ours, theirs in zip(off[paper.OURS], off[paper.RULE], strict=True)]
        yield Table(NEARER, RUNS).share(paper.OURS, query, nearer)
    table = Table("IV, share of our intervals that hold the slots really needed", RUNS)
    for query in QUERIES:
        needed = found.needed[query][4.0]
        at_4_gb = [c for run in found.explored[query][paper.OURS] for c in run.plan.choices if c.memory_mb == 4096]
        yield table.share(paper.OURS, query, [choice.slots.low <= needed <= choice.slots.high for choice in at_4_gb])


def figure_9(found: Found) -> Iterator[Cell]:
    """Yield Figure 9: the shares of budgets that sustain their estimate, and fail at 150 % of it."""
    for way in ESTIMATORS:
        for query in QUERIES:
            runs = found.replayed[query][way]
            printed = True if query in paper.SIMPLE_QUERIES and way == paper.DICHOTOMIC else None
            for what, flags in (
                ("sustained at 100 %", [run.share is not None and run.share >= HELD for run in runs]),
                (
                    "sustained at 100 % by the paper's 99 %",
                    [run.share is not None and run.share >= RULE for run in runs],
                ),
                ("failing at 150 %", [run.share_150 is not None and run.share_150 < HELD for run in runs]),
            ):
                yield Table(f"Figure 9, {what}", RUNS).share(way, query, flags, printed)
            least = min((run.share for run in runs if run.share is not None), default=0.0)
            yield Table("Figure 9, least processed at 100 %").cell(way, query, least, 0.95 if printed else None)
            minutes = [run.minutes for run in runs]
            yield Table("Figure 9, minutes per estimate", "min").mean(way, query, minutes)


def figure_9_spread(found: Found) -> Iterator[Cell]:
    """Yield Figure 9 as a distribution: the processed shares of all budgets, and how much they vary over time."""
    for way in ESTIMATORS:
        for query in QUERIES:
            runs = [run for run in found.replayed[query][way] if run.share is not None]
            for at, shares in (("100 %", [r.share for r in runs]), ("150 %", [r.share_150 for r in runs])):
                values = [share for share in shares if share is not None]
                for name, part in (("5 %", 0.05), ("median", 0.5), ("95 %", 0.95)):
                    value = float(np.quantile(values, part)) if values else 0.0
                    yield Table(f"Figure 9, processed share of {at}, {name} of the budgets").cell(way, query, value)
            deviations = [run.deviation for run in runs]
            yield Table("Figure 9, deviation over time at 100 %").mean(way, query, deviations or [0.0])


def figure_10(found: Found) -> Iterator[Cell]:
    """Yield Figure 10: useful share of every operator at the largest size, at 100 % of its estimate, over time."""
    for query in QUERIES:
        runs = found.replayed[query][paper.DICHOTOMIC]
        largest = max(runs, key=lambda run: (bool(run.useful), run.slots, run.gb))
        for operator, (tasks, useful) in largest.useful.items():
            printed, table = 0.6 if (query, operator) == ("q8", "join") else None, Table(f"Figure 10, {query}")
            yield table.cell(operator, "tasks", float(tasks))
            yield table.cell(operator, "useful share, median", float(np.median(useful)), printed)
            for name, part in (("5 %", 0.05), ("95 %", 0.95)):
                yield table.cell(operator, f"useful share, {name}", float(np.quantile(useful, part)))


def figure_11(found: Found) -> Iterator[Cell]:
    """Yield Figure 11: what the planned sizes process of 100, 120 and 150 %, and what is pending at the end."""
    for query in QUERIES:
        for name, shares in found.verified[query].items():
            for of, runs in shares.items():
                printed = 1.0 if of == "100 %" and name == TABLE_IV else None
                yield Table(f"Figure 11, {name}").mean(of, query, [run.processed for run in runs], printed)
                pending = Table(f"Figure 11, {name}, pending records", "s of the rate")
                yield pending.mean(of, query, [run.pending_s for run in runs])
