"""The page of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rheostat.report import words
from rheostat.report.html import Cell, Plot, Table, render
from rheostat.report.words import NONE

if TYPE_CHECKING:
    from rheostat.lab.experiment.simulated import Comparison, Row


def comparison_page(comparison: Comparison) -> str:
    """Return one HTML document that sets the policies of a comparison side by side."""
    from rheostat.lab.experiment.figures import cost_figure, latency_figure, timeline_figure, yardstick

    scenario, known = comparison.scenario, yardstick(comparison)
    seeds = list(dict.fromkeys(run.seed for run in comparison.runs))
    labels = [row.policy for row in comparison.rows]
    cost = sum(run.slot_seconds for run in comparison.runs if run.policy == known) / len(seeds)
    promised = scenario.slo.max_latency_s is not None or scenario.slo.max_lag_s is not None
    return render(
        "comparison.html.j2",
        title=f"{scenario.plant.name}: {', '.join(labels)}",
        job=scenario.plant.name,
        labels=labels,
        sections_=_scenario_sections(comparison, seeds),
        rows=_rows(comparison.rows, known, promised),
        named="" if known == "clairvoyant" else f" ({known})",
        only_yardstick=known not in labels,
        yardstick_cost=words.number(cost),
        promised=promised,
        cost=Plot("cost", cost_figure(comparison)),
        latency=Plot("latency", latency_figure(comparison)),
        timeline=Plot("timeline", timeline_figure(comparison, seeds[0])),
        seed=seeds[0],
        several=len(seeds) > 1,
    )


def _scenario_sections(comparison: Comparison, seeds: Sequence[int]) -> dict[str, dict[str, str]]:
    scenario = comparison.scenario
    plant = scenario.plant
    sections = {
        "Job": {
            "name": plant.name,
            "parameters from": plant.origin or "not told",
            "unit load": ", ".join(f"{name} {words.rate(unit)}" for name, unit in plant.unit_per_s.items()),
            "start": words.value(scenario.start or plant.start()),
        },
        "Load": {"shape": scenario.load.name or type(scenario.load).__name__, **words.settings(scenario.load)},
        "Run": {
            "length": words.seconds(scenario.duration_s),
            "a decision every": words.seconds(scenario.interval_s),
            "seeds": words.value(list(seeds)),
            "failures at": ", ".join(words.moment(at) for at in scenario.failures_s) or "none",
        },
        "Slo": words.settings(scenario.slo) or {"promises": "nothing"},
        "Guards": words.settings(scenario.guards),
        "Settings": words.settings(scenario.settings),
    }
    return {name: items for name, items in sections.items() if items}


def _rows(rows: Sequence[Row], known: str, promised: bool) -> Table:
    """Return the table; the least of a column is its best, and the clairvoyant does not compete."""
    rivals = [row for row in rows if row.policy != known]
    lines = []
    for row in rows:
        cells = [Cell(row.policy, "policy", "the yardstick: knows load and abilities" if row.policy == known else "")]
        cells.append(Cell(str(row.seeds), "number"))
        for name, _, write in COLUMNS:
            value = getattr(row, name)
            if name == "slo_seconds_over" and not promised:
                cells.append(Cell(NONE, "number"))
                continue
            best = len(rivals) > 1 and row in rivals and value <= min(getattr(r, name) for r in rivals)
            cells.append(Cell(write(value), "number best" if best else "number"))
        lines.append(cells)
    return Table(("policy", "seeds", *(head for _, head, _ in COLUMNS)), lines)


COLUMNS: tuple[tuple[str, str, Any], ...] = (
    ("reconfigurations", "reconfigurations", lambda v: f"{v:.4g}"),
    ("slot_seconds", "slot-seconds", words.number),
    ("slot_seconds_over_clairvoyant", "ratio to the clairvoyant's", lambda v: f"{v:.3f}"),
    ("slo_seconds_over", "seconds over the Slo", lambda v: f"{v:.5g}"),
    ("latency_p99_s", "latency, 99\u00a0%", words.seconds),
    ("backlog_max", "largest backlog, records", words.number),
    ("decision_ms", "a decision, ms", lambda v: f"{v:.3g}"),
)
