"""Tables of results."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from rheostat.cli.display.sparkline import sparkline

if TYPE_CHECKING:
    from rich.table import Table

    from rheostat.lab.experiment.comparison import Comparison
    from rheostat.lab.experiment.run import Run
    from rheostat.lab.experiment.score import Column, Score

PLOTTED = {"load_per_s": "load/s", "slots": "slots", "backlog": "backlog", "latency_s": "latency s"}
"""Series of a run that are drawn as sparklines -> heading."""


def comparison_table(comparison: Comparison[Any]) -> Table:
    """Return a row per policy with the best value of every column in bold, and its prediction where there is one."""
    from rich.markup import escape

    ground = comparison.ground
    rivals = comparison.rivals
    table = plain_table()
    table.add_column("policy", overflow="fold", min_width=11)
    for column in ground.columns:
        table.add_column(column.heading, justify="right")
    # Values that read the same are equally good, whatever digits are hidden.
    best = [_least(column, rivals) for column in ground.columns]
    for row in comparison.lines:
        name = escape(row.policy) if row.engine == ground.name else "  predicted"
        cells = [column.text(row) for column in ground.columns]
        margins = [column.margin(row) for column in ground.columns]
        if row.failed:
            table.add_row(f"{name}\n[red]failed[/]", *("-" for _ in cells))
        elif row not in rivals:
            table.add_row(name, *(cell + margin for cell, margin in zip(cells, margins, strict=True)))
        else:
            marked = [f"[bold green]{cell}[/]" if cell == top else cell for cell, top in zip(cells, best, strict=True)]
            table.add_row(name, *(cell + margin for cell, margin in zip(marked, margins, strict=True)))
    return table


def failures(comparison: Comparison[Any]) -> list[str]:
    """Return a line per failed row, for below the table: the policy and its first failure."""
    return [f"{policy}: {text}" for policy, text in comparison.failures.items()]


def _least(column: Column, rivals: Sequence[Score]) -> str | None:
    """Return the least number of a column as it reads; None where no row has one."""
    numbers = [row for row in rivals if getattr(row, column.key) is not None]
    return column.text(min(numbers, key=attrgetter(column.key))) if numbers else None


def recoveries(comparison: Comparison[Any]) -> list[str]:
    """Return a line per policy: its recovery time after every failure, and how many missed the objective."""
    trial, lines = comparison.trial, []
    for row in comparison.rivals if trial.failures_s else ():
        own = [run.recoveries_s(trial.failures_s) for run in comparison.runs if run.policy == row.policy]
        times = ", ".join("never" if math.isinf(time) else f"{time:.0f}" for time in own[0])
        line = f"{row.policy}: caught up after {times} s"
        if trial.slo.max_recovery_s is not None:
            late = [sum(time > trial.slo.max_recovery_s for time in run) for run in own]
            line += f"; {sum(late)} of {len(own) * len(trial.failures_s)} too late"
        lines.append(line)
    return lines


def conditions(comparison: Comparison[Any], seeds: Sequence[int], notes: Sequence[str] = ()) -> str:
    """Return the conditions of a comparison: job, load, length, seeds, objectives."""
    trial, slo = comparison.trial, comparison.trial.slo
    objectives = {
        "latency at most": (slo.max_latency_s, " s"),
        "lag at most": (slo.max_lag_s, " s"),
        "recovery within": (slo.max_recovery_s, " s"),
        "headroom": (slo.headroom, ""),
    }
    texts = [f"{what} {value:g}{unit}" for what, (value, unit) in objectives.items() if value is not None]
    if slo.budget and slo.budget.max_slots:
        texts.append(f"at most {slo.budget.max_slots} slots")
    seeds_text = f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"
    start = comparison.ground.facts(trial).get("start")
    lines = [
        f"{comparison.ground.subject(trial)}, load {trial.load.name}, {trial.duration_s:g} s, "
        f"a decision every {trial.interval_s:g} s, {seeds_text}",
        f"objectives: {', '.join(texts) or 'none'}{'' if start is None else f'; at the start: {start}'}",
        *notes,
    ]
    return "\n".join(lines)


def summary_table(comparison: Comparison[Any]) -> Table:
    """Return the first row of a comparison, a line per value."""
    from rich.table import Table

    table = Table(show_header=False, box=None)
    for column in comparison.ground.columns:
        table.add_row(column.heading.replace("-\n", "").replace("\n", " "), column.text(comparison.rows[0]))
    return table


def changes_table(run: Run[Any]) -> Table:
    """Return the changes of a run: when, why, and the verdict on each."""
    from rich.markup import escape

    verdicts = {step.outcome.step: step.outcome for step in run.steps if step.outcome}
    table = plain_table("changes")
    for heading in ("time", "reason", "because", "verdict"):
        table.add_column(heading)
    for step in run.steps:
        if step.decision.target is not None:
            outcome = verdicts.get(step.number)
            verdict = str(outcome.verdict) if outcome else "open"
            at = f"{step.observation.at_s:.0f} s"
            table.add_row(at, str(step.decision.reason), escape(step.decision.sentence), verdict)
    return table


def counts(run: Run[Any]) -> dict[str, dict[str, int]]:
    """Count decisions by reason, changes by verdict, and interventions by guard."""
    reasons = Counter(
        f"{step.decision.reason} ({'hold' if step.decision.target is None else 'change'})" for step in run.steps
    )
    verdicts = Counter(str(step.outcome.verdict) for step in run.steps if step.outcome)
    guards = Counter(note.guard for step in run.steps for note in step.decision.guards)
    return {"decisions": dict(reasons), "verdicts": dict(verdicts), "guards": dict(guards)}


def counts_line(counts: dict[str, int]) -> str:
    """Return counts as one line."""
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "none"


def plots(run: Run[Any]) -> Table:
    """Return sparklines of a run, each from zero to its peak."""
    from rich.table import Table

    table = Table(show_header=False, box=None)
    for series, heading in PLOTTED.items():
        values: Any = run.trace[series].tolist()
        table.add_row(heading, sparkline(values), f"up to {max(values):,.0f}")
    return table


def plain_table(title: str | None = None) -> Table:
    """Return an empty table in the style of all results."""
    from rich import box
    from rich.table import Table

    return Table(title=title, title_justify="left", header_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
