"""The page of a plan: the answer and its uncertainty, the measurements, the response surface and the fits."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rheostat.job.plan import Estimate, Plan
from rheostat.planner.configuration_optimizer import readings
from rheostat.planner.extrapolation import FAMILIES, fit_family
from rheostat.planner.extrapolation import Points as Runs
from rheostat.planner.failures import drop_doubtful, find_doubtful
from rheostat.planner.memory import regime_of
from rheostat.planner.scaling import Scaling
from rheostat.report import words
from rheostat.report.chart.figure import Area, Axis, Figure, Heat, Line, Panel, Points, Trace
from rheostat.report.chart.markup import Floats
from rheostat.report.chart.pens import Colour, Pen, pens
from rheostat.report.html import Cell, Plot, Table, render

FITS = (
    "Rheostat's law with its 90 % band, and StreamBed's three families, all fitted to the same runs. "
    "The line across is the rate to sustain, headroom included."
)
RATE, SLOTS = Axis(scale="log"), Axis("slots", "log", unit=" slots")


def plan_page(plan: Plan, estimates: Sequence[Estimate]) -> str:
    """Return one HTML document about a plan."""
    memories = list(dict.fromkeys(choice.memory_mb for choice in plan.choices))
    wanted = plan.rate_per_s * (1 + plan.headroom)
    plots = [
        ("Rate over slots", Plot("fits", scaling_figure(list(estimates), plan.allocation.memory_mb, wanted), FITS)),
        (
            "Response surface",
            Plot("surface", surface_figure(estimates, memories, plan), "Expected records/s for each size and memory."),
        ),
        (
            "Operators",
            Plot("operators", operators_figure(estimates), "Measured true rate of one task, by number of tasks."),
        ),
    ]
    return render(
        "plan.html.j2",
        title=f"A plan for {plan.job} at {words.number(plan.rate_per_s)} records/s",
        answer=_answer(plan),
        warnings=plan.warnings,
        facts=_facts(plan),
        tasks=Table(
            ("operator", "tasks"), [[Cell(n), Cell(str(c), "number")] for n, c in plan.allocation.tasks.items()]
        ),
        measured=_measurements(estimates),
        plots=plots,
    )


def _answer(plan: Plan) -> str:
    memory = "" if plan.allocation.memory_mb is None else f" of {plan.allocation.memory_mb} MB"
    return (
        f"{plan.allocation.slots} slots{memory}, between {words.number(plan.slots.low)} and "
        f"{'any number' if math.isinf(plan.slots.high) else words.number(plan.slots.high)} with 90 % probability."
    )


def _facts(plan: Plan) -> dict[str, str]:
    low, high = words.number(plan.capacity_per_s.low), words.number(plan.capacity_per_s.high)
    facts = {
        "headroom": f"{plan.headroom:.0%}",
        "capacity of this size": f"{low} to {high}/s",
        "extrapolation": f"{plan.reach:.1f} times the largest measured size, {plan.measured_slots} slots",
        "measurements": f"{plan.measurements}, {plan.minutes:.0f} minutes, {plan.slot_hours:.1f} slot hours",
        "laws": ", ".join(f"{name} {weight:.0%}" for name, weight in plan.weights.items()),
    }
    if plan.cost_per_hour is not None:
        facts["cost per hour"] = f"{plan.cost_per_hour:.2f}"
    if (more := plan.next_measurement) is not None:
        where = "" if more.inside else ", beyond the testbed"
        narrows = f"narrows the interval from a factor of {more.width_now:.2f} to about {more.width_then:.2f}"
        facts["next measurement"] = f"{more.slots} slots{where}: {narrows}"
    facts |= {f"verified at {share}": verdict for share, verdict in plan.verified.items()}
    return facts


def _measurements(estimates: Sequence[Estimate]) -> Table:
    odd = find_doubtful(estimates)
    rows = []
    for e in estimates:
        rate = "-" if e.rate_per_s is None else words.number(e.rate_per_s.middle)
        doubt = "not used: far below what other sizes predict" if any(e is other for other in odd) else ""
        note = e.problem or ("the load injector is the bottleneck" if e.limited_by == "injector" else doubt)
        rows.append(
            [
                Cell(str(e.allocation)),
                Cell(rate, "number"),
                Cell(f"{e.seconds / 60:.1f}", "number"),
                Cell(e.why),
                Cell(note),
            ]
        )
    return Table(("allocation", "records/s", "minutes", "why", "note"), rows)


def surface_figure(estimates: Sequence[Estimate], memories: Sequence[int | None], plan: Plan) -> Figure:
    """Return the expected rate over slots and memory as a heat map, with the measured sizes on it."""
    good = drop_doubtful(estimates)
    top = max(2.0 * plan.allocation.slots, 4.0 * plan.measured_slots)
    slots = np.unique(np.round(np.geomspace(min(e.slots for e in good), top, 30)))
    rates = np.array([Scaling.fit(regime_of(good, memory)).rates(slots, memory)[:, 1] for memory in memories])
    size = plan.allocation
    # A measured memory that is not among the choices has a row without cells.
    every = dict.fromkeys([*memories, *(e.memory_mb for e in good), size.memory_mb])
    rows = {memory: float(k) for k, memory in enumerate(every)}
    names = tuple(_memory(memory) for memory in every)
    traces: list[Trace] = [
        Heat(
            _edges(slots),
            np.linspace(-0.5, len(memories) - 0.5, len(memories) + 1),
            rates,
            [
                [f"{s:g} slots, {name}: {words.number(rate)}/s" for s, rate in zip(slots, row, strict=True)]
                for name, row in zip(names, rates, strict=False)
            ],
            bar="records/s",
        ),
        Points(
            "measured",
            np.array([float(e.slots) for e in good]),
            np.array([rows[e.memory_mb] for e in good]),
            Pen("ink", symbol="ring"),
            texts=[f"measured: {e.slots} slots, {_memory(e.memory_mb)}" for e in good],
        ),
        Points(
            "plan",
            np.array([float(size.slots)]),
            np.array([rows[size.memory_mb]]),
            Pen("vermilion", symbol="star"),
            15.0,
            texts=[f"plan: {size.slots} slots, {_memory(size.memory_mb)}"],
        ),
    ]
    edges = _edges(slots)
    x = Axis("slots", "log", float(edges[0]), float(edges[-1]))
    panel = Panel("Memory", max(60.0 * len(names), 110.0), traces, Axis(labels=names))
    return Figure("Expected rate over slots and memory", x, [panel])


def _memory(memory_mb: int | None) -> str:
    return "any memory" if memory_mb is None else f"{memory_mb} MB"


def _edges(values: Floats) -> Floats:
    """Return the edges of cells around these values on a log axis."""
    if len(values) < 2:
        return np.array([values[0] / 1.1, values[0] * 1.1])
    middles = np.sqrt(values[1:] * values[:-1])
    return np.concatenate([[values[0] ** 2 / middles[0]], middles, [values[-1] ** 2 / middles[-1]]])


def operators_figure(estimates: Sequence[Estimate]) -> Figure:
    """Return every operator's measured true rate per task over its tasks."""
    measured: dict[str, list[tuple[int, float]]] = {}
    for e in drop_doubtful(estimates):
        for name, rate in readings(e)[0].items():
            measured.setdefault(name, []).append((e.allocation.tasks[name], rate))
    looks = pens(list(measured))
    traces = []
    for name, pairs in measured.items():
        tasks, rates = np.array(sorted(pairs), dtype=float).T
        texts = [f"{name}, {t:g} tasks: {words.number(r)}/s" for t, r in zip(tasks, rates, strict=True)]
        traces.append(Points(name, tasks, rates, looks[name], texts=texts))
    panel = Panel("Records/s of one task", 280, traces, RATE)
    return Figure("True rate of one task over tasks", Axis("tasks", "log", unit=" tasks"), [panel])


def scaling_figure(
    estimates: list[Estimate], memory_mb: int | None, wanted_per_s: float, needed: float = math.inf
) -> Figure:
    """Return rate over slots on two log axes."""
    good = drop_doubtful(estimates)
    scaling, points = Scaling.fit(regime_of(good, memory_mb)), Runs.of(good)
    top = max(needed * 2 if np.isfinite(needed) else 0.0, float(points.slots.max()) * 30)
    slots = np.unique(np.round(np.geomspace(float(points.slots.min()), top, 40)))
    low, middle, high = scaling.rates(slots, memory_mb).T
    traces: list[Trace] = [
        Area("90 % band", slots, low, high, Pen("blue")),
        Line("auto", slots, middle, Pen("blue"), "/s"),
    ]
    colours: tuple[Colour, ...] = ("vermilion", "green", "purple")
    for family, colour in zip(FAMILIES, colours, strict=True):
        fit = fit_family(points, family)
        rates = np.array([max(fit.rate_per_s(s, float(memory_mb or 1)), 1e-9) for s in slots.tolist()])
        # A fit that falls to nothing leaves the chart.
        shown = np.where(rates > 0.1 * float(points.rate_per_s.min()), rates, np.nan)
        traces.append(Line(family, slots, shown, Pen(colour, "dot"), "/s"))
    ends = slots[[0, -1]]
    traces += [
        Line("wanted", ends, np.full(2, wanted_per_s), Pen("limit"), "/s"),
        Points(
            "measured",
            points.slots,
            points.rate_per_s,
            Pen("ink", symbol="circle-open"),
            7.0,
            texts=[
                f"measured: {s:g} slots, {words.number(r)}/s"
                for s, r in zip(points.slots.tolist(), points.rate_per_s.tolist(), strict=True)
            ],
        ),
    ]
    if np.isfinite(needed):
        text = f"needed: {needed:g} slots for {words.number(wanted_per_s)}/s"
        place = np.array([needed]), np.array([wanted_per_s])
        traces.append(Points("needed", *place, Pen("limit", symbol="star"), 12.0, texts=[text]))
    return Figure("Rate over slots", SLOTS, [Panel("Records/s", 320, traces, RATE)])
