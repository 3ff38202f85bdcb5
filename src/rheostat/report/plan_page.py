"""The page of a plan: the answer and its doubts, what was measured, the response surface and the fits."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rheostat.job.plan import Estimate, Plan
from rheostat.planner.configuration_optimizer import readings
from rheostat.planner.extrapolation import FAMILIES, Points, fit_family
from rheostat.planner.failures import drop_doubtful, find_doubtful
from rheostat.planner.scaling import Scaling
from rheostat.report import words
from rheostat.report.drawing import MARGIN, SMALL, Figure, Trace, base, grid, label, pens
from rheostat.report.html import Cell, Plot, Table, render

LEGEND = {**SMALL, "orientation": "h", "x": 0, "y": 1.02, "xanchor": "left", "yanchor": "bottom"}
WITHIN = "Ours with its 90 % band, and the paper's three families, fitted to the same runs; the line is what is wanted."


def plan_page(plan: Plan, estimates: Sequence[Estimate]) -> str:
    """Return one HTML document about a plan."""
    memories = list(dict.fromkeys(choice.memory_mb for choice in plan.choices))
    wanted = plan.rate_per_s * (1 + plan.headroom)
    plots = [
        ("Rate over slots", Plot("fits", scaling_figure(list(estimates), plan.allocation.memory_mb, wanted), WITHIN)),
        ("Response surface", Plot("surface", surface_figure(estimates, memories, plan), "Expected records/s.")),
        (
            "Operators",
            Plot("operators", operators_figure(estimates), "True rate of one task over its tasks, as measured."),
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
        measured=_measured(estimates),
        plots=plots,
    )


def _answer(plan: Plan) -> str:
    memory = "" if plan.allocation.memory_mb is None else f" of {plan.allocation.memory_mb} MB"
    return (
        f"{plan.allocation.slots} slots{memory}, between {words.number(plan.slots.low)} and "
        f"{'any number' if math.isinf(plan.slots.high) else words.number(plan.slots.high)} with 90 % probability."
    )


def _facts(plan: Plan) -> dict[str, str]:
    facts = {
        "headroom": f"{plan.headroom:.0%}",
        "this size sustains": f"{words.number(plan.capacity_per_s.low)} to {words.number(plan.capacity_per_s.high)}/s",
        "beyond the testbed": f"{plan.reach:.1f} times the largest measured size of {plan.measured_slots} slots",
        "measurements": f"{plan.measurements}, {plan.minutes:.0f} minutes, {plan.slot_hours:.1f} slot hours",
        "laws": ", ".join(f"{name} {weight:.0%}" for name, weight in plan.weights.items()),
    }
    if plan.cost_per_hour is not None:
        facts["cost per hour"] = f"{plan.cost_per_hour:.2f}"
    if (more := plan.next_measurement) is not None:
        where = "" if more.inside else ", beyond the testbed"
        facts["next measurement"] = (
            f"{more.slots} slots{where}: from a factor of {more.width_now:.2f} to about {more.width_then:.2f}"
        )
    facts |= {f"verified at {share}": verdict for share, verdict in plan.verified.items()}
    return facts


def _measured(estimates: Sequence[Estimate]) -> Table:
    odd = find_doubtful(estimates)
    rows = []
    for e in estimates:
        rate = "-" if e.rate_per_s is None else words.number(e.rate_per_s.middle)
        doubt = "left out: far below what other sizes say" if any(e is other for other in odd) else ""
        note = e.problem or ("the injector is the limit" if e.limited_by == "injector" else doubt)
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
    """Return the expected rate over slots and memory as a heat map, with what was measured on it."""
    good = drop_doubtful(estimates)
    scaling = Scaling.fit(good)
    top = max(2.0 * plan.allocation.slots, 4.0 * plan.measured_slots)
    slots = np.unique(np.round(np.geomspace(float(scaling.runs.slots.min()), top, 30)))
    rates = [[float(f"{v:.4g}") for v in scaling.rates(slots, memory)[:, 1]] for memory in memories]
    names = ["any memory" if memory is None else f"{memory} MB" for memory in memories]
    data: list[Trace] = [
        {"type": "heatmap", "x": slots.tolist(), "y": names, "z": rates, "colorscale": "Viridis",
         "colorbar": {"title": {"text": "records/s"}, "tickformat": "~s"},
         "hovertemplate": "%{x} slots, %{y}: %{z:.3~s}/s"},
        {"type": "scatter", "mode": "markers", "name": "measured", "x": [e.slots for e in good],
         "y": ["any memory" if e.memory_mb is None else f"{e.memory_mb} MB" for e in good],
         "marker": {"color": "#FFFFFF", "size": 8, "line": {"width": 1.5, "color": "#222222"}},
         "hovertemplate": "%{x} slots"},
        {"type": "scatter", "mode": "markers", "name": "plan", "x": [plan.allocation.slots],
         "y": ["any memory" if plan.allocation.memory_mb is None else f"{plan.allocation.memory_mb} MB"],
         "marker": {"color": "#D55E00", "size": 13, "symbol": "star"}, "hovertemplate": "%{x} slots"},
    ]  # fmt: skip
    layout = base(140 + 60 * len(names))
    layout |= {"legend": LEGEND, "margin": {**MARGIN, "t": 64, "l": 96}}
    layout["xaxis"] = {**grid(), "type": "log", "title": {"text": "slots"}}
    layout["yaxis"] = {**grid(), "type": "category"}
    return {"data": data, "layout": layout}


def operators_figure(estimates: Sequence[Estimate]) -> Figure:
    """Return every operator's measured true rate per task over its tasks."""
    seen: dict[str, list[tuple[int, float]]] = {}
    for e in drop_doubtful(estimates):
        for name, rate in readings(e)[0].items():
            seen.setdefault(name, []).append((e.allocation.tasks[name], rate))
    looks = pens(list(seen))
    data: list[Trace] = [
        {"type": "scatter", "mode": "markers", "name": label(name), "x": [t for t, _ in sorted(found)],
         "y": [float(f"{r:.4g}") for _, r in sorted(found)],
         "marker": {"color": looks[name].colour, "symbol": looks[name].symbol, "size": 7},
         "hovertemplate": "%{x} tasks: %{y:.3~s}/s"}
        for name, found in seen.items()
    ]  # fmt: skip
    layout = base(380)
    layout |= {"legend": LEGEND, "margin": {**MARGIN, "t": 64}}
    layout["xaxis"] = {**grid(), "type": "log", "title": {"text": "tasks"}}
    layout["yaxis"] = {**grid(), "type": "log", "title": {"text": "records/s of one task"}, "tickformat": "~s"}
    return {"data": data, "layout": layout}


def scaling_figure(
    estimates: list[Estimate], memory_mb: int | None, wanted_per_s: float, needed: float = math.inf
) -> Figure:
    """Return rate over slots on two logarithmic axes."""
    good = drop_doubtful(estimates)
    scaling, points = Scaling.fit(good), Points.of(good)
    top = max(needed * 2 if np.isfinite(needed) else 0.0, float(points.slots.max()) * 30)
    slots = np.unique(np.round(np.geomspace(float(points.slots.min()), top, 40)))
    rates = scaling.rates(slots, memory_mb)
    x = slots.tolist()
    data: list[Trace] = [
        _line(x, rates[:, 2].tolist(), "", "rgba(0,114,178,0)"),
        {**_line(x, rates[:, 0].tolist(), "90 % band", "rgba(0,114,178,0)"), "fill": "tonexty",
         "fillcolor": "rgba(0,114,178,0.18)", "showlegend": True},
        {**_line(x, rates[:, 1].tolist(), "auto", "#0072B2"), "showlegend": True},
    ]  # fmt: skip
    for family, colour in zip(FAMILIES, ("#D55E00", "#009E73", "#CC79A7"), strict=True):
        fit = fit_family(points, family)
        y = [max(fit.rate_per_s(s, float(memory_mb or 1)), 1e-9) for s in x]
        shown = [value if value > 0.1 * float(points.rate_per_s.min()) else None for value in y]
        data.append({**_line(x, shown, family, colour), "line": {"color": colour, "dash": "dot"}, "showlegend": True})
    data.append(
        {"type": "scatter", "mode": "markers", "name": "measured", "x": points.slots.tolist(),
         "y": points.rate_per_s.tolist(), "marker": {"color": "#222222", "size": 7, "symbol": "circle-open"}}
    )  # fmt: skip
    ends = [x[0], x[-1]]
    data.append({**_line(ends, [wanted_per_s] * 2, "wanted", "#B00020"), "showlegend": True})
    if np.isfinite(needed):
        data.append(
            {"type": "scatter", "mode": "markers", "name": "really needed", "x": [needed], "y": [wanted_per_s],
             "marker": {"color": "#B00020", "size": 11, "symbol": "star"}}
        )  # fmt: skip
    layout = base(420)
    layout |= {"legend": LEGEND, "margin": {**MARGIN, "t": 64}}
    layout["xaxis"] = {**grid(), "type": "log", "title": {"text": "slots"}}
    layout["yaxis"] = {**grid(), "type": "log", "title": {"text": "records/s"}, "tickformat": "~s"}
    return {"data": data, "layout": layout}


def _line(x: list[float], y: list[float | None] | list[float], name: str, colour: str) -> Trace:
    return {"type": "scatter", "mode": "lines", "x": x, "y": y, "name": name, "line": {"color": colour},
            "showlegend": False, "hovertemplate": "%{x} slots: %{y:.3~s}/s"}  # fmt: skip
