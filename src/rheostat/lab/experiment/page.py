"""The page of a comparison, simulated or on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rheostat.report import words
from rheostat.report.html import Cell, Plot, Table, render
from rheostat.report.words import NONE

if TYPE_CHECKING:
    from rheostat.lab.experiment.comparison import Comparison


def comparison_page(comparison: Comparison[Any]) -> str:
    """Return one HTML document that shows the policies of a comparison side by side."""
    from rheostat.lab.experiment.figures import cost_figure, latency_figure, timeline_figure

    seeds = list(dict.fromkeys(run.seed for run in comparison.runs))
    judged = comparison.judged
    return render(
        "comparison.html.j2",
        title=comparison.title,
        lead=comparison.ground.lead,
        sections_=_sections(comparison, seeds),
        rows=_rows(comparison),
        notes=comparison.ground.notes(comparison),
        cost=Plot("cost", cost_figure(comparison)) if judged else None,
        latency=Plot("latency", latency_figure(comparison)) if judged else None,
        timeline=Plot("timeline", timeline_figure(comparison, seeds[0])),
        seed=seeds[0],
        several=len(seeds) > 1,
    )


def _sections(comparison: Comparison[Any], seeds: list[int]) -> dict[str, dict[str, str]]:
    trial = comparison.trial
    sections = {
        "Job": dict(comparison.ground.facts(trial)),
        "Load": {"shape": trial.load.name or type(trial.load).__name__, **words.settings(trial.load)},
        "Run": {
            "length": words.seconds(trial.duration_s),
            "decision interval": words.seconds(trial.interval_s),
            "seeds": words.value(seeds),
            "failures at": ", ".join(words.moment(at) for at in trial.failures_s) or "none",
        },
        "SLO": words.settings(trial.slo) or {"limits": "none"},
        "Guards": words.settings(trial.guards),
        "Settings": words.settings(trial.settings),
    }
    return {name: items for name, items in sections.items() if items}


def _rows(comparison: Comparison[Any]) -> Table:
    """Return the table; the smallest value of a column is the best. The oracle and predictions do not compete."""
    ground, slo = comparison.ground, comparison.trial.slo
    counted = "seeds" in ground.keys
    rivals = [row for row in comparison.rivals if row.policy != comparison.yardstick]
    unlimited = slo.max_latency_s is None and slo.max_lag_s is None
    lines = []
    for row in comparison.lines:
        predicted = row.engine != ground.name
        under = "a schedule of the search" if row.policy == comparison.yardstick else row.failed
        cells = [Cell("predicted", "muted", row.failed) if predicted else Cell(row.policy, "policy", under)]
        cells += [Cell(str(row.seeds), "number")] if counted else []
        for column in ground.columns:
            value = getattr(row, column.key)
            if row.failed or value is None or (column.key == "slo_seconds_over" and unlimited):
                cells.append(Cell(NONE, "number"))
                continue
            others = [other for rival in rivals if (other := getattr(rival, column.key)) is not None]
            best = len(rivals) > 1 and row in rivals and value <= min(others)
            cells.append(
                Cell(column.write(value), "number muted" if predicted else "number best" if best else "number")
            )
        lines.append(cells)
    return Table(("policy", *(["seeds"] if counted else []), *(column.title for column in ground.columns)), lines)
