"""Tables of results."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rheostat.cli.display.sparkline import sparkline

if TYPE_CHECKING:
    from rich.table import Table

    from rheostat.lab.experiment.simulated import Comparison, PolicyRun, Row, Scenario

COLUMNS: dict[str, tuple[str, float, str]] = {
    "reconfigurations": ("changes", 1.0, ",.1f"),
    "slot_seconds": ("thousand\nslot s", 1e3, ",.1f"),
    "slot_seconds_over_clairvoyant": ("/ clair-\nvoyant", 1.0, ".2f"),
    "slo_seconds_over": ("s over\nthe SLO", 1.0, ",.0f"),
    "latency_p99_s": ("latency\np99 s", 1.0, ",.2f"),
    "backlog_max": ("backlog\nmax (M)", 1e6, ",.2f"),
    "decision_ms": ("decision\nms", 1.0, ".2f"),
}
"""Field of a row -> heading, divisor and format. Less is better in every column, and all fit into 80 characters."""
PLOTTED = {"load_per_s": "load/s", "slots": "slots", "backlog": "backlog", "latency_s": "latency s"}


def comparison_table(rows: Sequence[Row]) -> Table:
    """Return a line per policy, with the best value of every column set off."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(header_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("policy", overflow="fold", min_width=11)
    for heading, _, _ in COLUMNS.values():
        table.add_column(heading, justify="right")
    shown = [[_shown(row, field) for field in COLUMNS] for row in rows]
    least = [min(getattr(row, field) for row in rows) for field in COLUMNS]
    best = [_text(value, field) for value, field in zip(least, COLUMNS, strict=True)]
    for row, cells in zip(rows, shown, strict=True):
        # What reads the same is as good, whatever digits are hidden.
        marked = [f"[bold green]{cell}[/]" if cell == top else cell for cell, top in zip(cells, best, strict=True)]
        table.add_row(escape(row.policy), *marked)
    return table


def recoveries(comparison: Comparison) -> list[str]:
    """Return a line per policy: how long it took to catch up after every failure, and how often that was too long."""
    scenario, lines = comparison.scenario, []
    for row in comparison.rows if scenario.failures_s else ():
        own = [run.recoveries_s(scenario.failures_s) for run in comparison.runs if run.policy == row.policy]
        times = ", ".join("never" if math.isinf(time) else f"{time:.0f}" for time in own[0])
        line = f"{row.policy}: caught up after {times} s"
        if scenario.slo.max_recovery_s is not None:
            late = [sum(time > scenario.slo.max_recovery_s for time in run) for run in own]
            line += f"; {sum(late)} of {len(own) * len(scenario.failures_s)} too late"
        lines.append(line)
    return lines


def conditions(scenario: Scenario, seeds: Sequence[int], notes: Sequence[str] = ()) -> str:
    """Say under which conditions a table came about."""
    slo = scenario.slo
    promises = {
        "latency at most": (slo.max_latency_s, " s"),
        "lag at most": (slo.max_lag_s, " s"),
        "recovery within": (slo.max_recovery_s, " s"),
        "headroom": (slo.headroom, ""),
    }
    said = [f"{what} {value:g}{unit}" for what, (value, unit) in promises.items() if value is not None]
    if slo.budget and slo.budget.max_slots:
        said.append(f"at most {slo.budget.max_slots} slots")
    spread = f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"
    lines = [
        f"{scenario.plant.name}, load {scenario.load.name}, {scenario.duration_s:g} s, "
        f"a decision every {scenario.interval_s:g} s, {spread}",
        f"promised: {', '.join(said) or 'nothing'}; at the start: {scenario.start or scenario.plant.start()}",
        *notes,
    ]
    return "\n".join(lines)


def summary_table(row: Row) -> Table:
    """Return one policy's row, a line per value."""
    from rich.table import Table

    table = Table(show_header=False, box=None)
    for field, (heading, _, _) in COLUMNS.items():
        table.add_row(heading.replace("-\n", "").replace("\n", " "), _shown(row, field))
    return table


def changes_table(run: PolicyRun) -> Table:
    """Return what was changed, when and why, and what came of it."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    verdicts = {step.outcome.step: step.outcome for step in run.steps if step.outcome}
    table = Table(title="changes", title_justify="left", header_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("time", "reason", "because", "verdict"):
        table.add_column(heading)
    for step in run.steps:
        if step.decision.target is not None:
            outcome = verdicts.get(step.number)
            verdict = str(outcome.verdict) if outcome else "open"
            at = f"{step.observation.at_s:.0f} s"
            table.add_row(at, str(step.decision.reason), escape(step.decision.sentence), verdict)
    return table


def counts(run: PolicyRun) -> dict[str, dict[str, int]]:
    """Count what was decided and why, what came of the changes, and which guards acted."""
    reasons = Counter(
        f"{step.decision.reason} ({'hold' if step.decision.target is None else 'change'})" for step in run.steps
    )
    verdicts = Counter(str(step.outcome.verdict) for step in run.steps if step.outcome)
    guards = Counter(note.guard for step in run.steps for note in step.decision.guards)
    return {"decisions": dict(reasons), "verdicts": dict(verdicts), "guards": dict(guards)}


def counted(what: dict[str, int]) -> str:
    """Write counts in a line."""
    return ", ".join(f"{name} {count}" for name, count in what.items()) or "none"


def plots(run: PolicyRun) -> Table:
    """Return small pictures of the run, each from zero to its peak."""
    from rich.table import Table

    table = Table(show_header=False, box=None)
    for series, heading in PLOTTED.items():
        values: Any = run.trace[series].tolist()
        table.add_row(heading, sparkline(values), f"up to {max(values):,.0f}")
    return table


def _shown(row: Row, field: str) -> str:
    return _text(getattr(row, field), field)


def _text(value: float, field: str) -> str:
    _, divisor, form = COLUMNS[field]
    return format(value / divisor, form)
