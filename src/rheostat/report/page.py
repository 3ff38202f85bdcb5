"""Pages: facts and figures put into a template. Templates escape everything; only our own scripts are let through."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rheostat import __version__
from rheostat.job.record import Run
from rheostat.ports import Journal
from rheostat.report import words
from rheostat.report.drawing import Figure, TimeAxis
from rheostat.report.history import History, Reconfiguration, Told, read_history
from rheostat.report.words import NONE

if TYPE_CHECKING:
    from markupsafe import Markup

    from rheostat.bench.runs import Comparison, Row

MAX_ROWS = 1000
"""Rows of one table; the newest are shown, and how many are not."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table: its text, and how it looks."""

    text: str
    look: str = ""
    under: str = ""
    """A second, smaller line."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a sentence about it."""

    heads: tuple[str, ...]
    rows: Sequence[Sequence[Cell]]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Plot:
    """A figure with a sentence about it."""

    name: str
    figure: Figure
    note: str = ""

    @property
    def json(self) -> Markup:
        """The figure as JSON that cannot end the script element around it."""
        return _script_safe(self.figure)


@dataclass(frozen=True, slots=True)
class Fact:
    """A headline number."""

    value: str
    what: str
    note: str = ""


def journal_page(journal: Journal, job: str) -> str:
    """Return one HTML document about one job of a journal; an unknown job is an InvalidValue."""
    history = read_history(journal, job)
    plots: list[Plot] = []
    operators: list[Plot] = []
    if len(history) and history.period_s:
        from rheostat.report.figures import MAX_MARKERS, job_figure, operators_figure

        time = TimeAxis(*history.period_s)
        told = len(history.told)
        note = f"{MAX_MARKERS} of {told} decisions have a marker." if told > MAX_MARKERS else ""
        plots.append(Plot("job", job_figure(history, time), note))
        if (figure := operators_figure(history, time)) is not None:
            operators.append(Plot("operators", figure))
    return render(
        "journal.html.j2",
        title=f"{job}: what Rheostat did",
        job=job,
        runs=_run_sections(history),
        starts=len(history.runs),
        facts=_facts(history),
        empty=not len(history),
        plots=plots,
        operators=operators,
        decisions=_decisions(history.told),
        changes=_changes(list(history.changes.values())),
        reasons=_counts(("why", "steps"), history.reasons),
        problems=_counts(("what was wrong", "windows"), history.problems),
    )


def comparison_page(comparison: Comparison) -> str:
    """Return one HTML document that sets the policies of a comparison side by side."""
    from rheostat.report.figures import cost_figure, latency_figure, timeline_figure, yardstick

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


# -- the journal's parts ---------------------------------------------------------------------------------------


def _run_sections(history: History) -> dict[str, dict[str, str]]:
    """Tell under what the job runs: the newest run, and what it was under before where that was something else."""
    if not history.runs:
        return {}
    run = history.runs[-1]
    spec = run.spec
    bounds = {t.operator: f"{words.value(t.bounds)} tasks" + _quantum(t.quantum) for t in spec.tunable}
    pinned = {p.operator: f"pinned at {p.tasks}: {p.why}" for p in spec.pinned}
    job = {
        "checkpoint interval": words.seconds(spec.checkpoint_interval_s),
        "slots available": words.value(spec.slots_available),
        "memory choices, MB": words.value(spec.memory_choices_mb),
    }
    sections = {
        "Policy": {"name": run.policy, **words.settings(run.options), "seed": str(run.seed)},
        "Slo": words.settings(run.slo) or {"promises": "nothing"},
        "Guards": words.settings(run.guards),
        "Engine": {**words.settings(run.settings), **{k: v for k, v in job.items() if v != NONE}},
        "Operators": {**bounds, **pinned},
    }
    if earlier := _earlier(history.runs):
        sections["Before"] = earlier
    return {name: items for name, items in sections.items() if items}


def _earlier(runs: Sequence[Run]) -> dict[str, str]:
    """Tell each policy, with its options, that ran before the present one."""
    told: dict[str, str] = {}
    for run, after in pairwise(runs):
        if (run.policy, run.options, run.slo) != (after.policy, after.options, after.slo):
            told[f"until {words.moment(after.at_s)}"] = f"{run.policy} {words.value(run.options)}".replace(NONE, "")
    return told


def _quantum(quantum: int) -> str:
    return f", in steps of {quantum}" if quantum > 1 else ""


def _facts(history: History) -> list[Fact]:
    facts = [Fact(words.number(history.steps), "steps")]
    if period := history.period_s:
        since = f"{words.moment(period[0])} to {words.moment(period[1])}"
        facts.append(Fact(words.seconds(period[1] - period[0]), "period", since))
    endings: dict[str, int] = {}
    for change in history.changes.values():
        name = change.end.ending.value if change.end else "open"
        endings[name] = endings.get(name, 0) + 1
    facts.append(Fact(str(len(history.changes)), "changes", words.value(endings) if endings else ""))
    verdicts = {verdict.value: count for verdict, count in history.verdicts.items()}
    kept = verdicts.pop("kept", 0)
    judged = sum(history.verdicts.values())
    facts.append(
        Fact(f"{kept} of {judged}" if judged else NONE, "expectations kept", words.value(verdicts) if verdicts else "")
    )
    facts.append(Fact(words.number(history.slot_seconds), "slot-seconds", "slots seen, times how long"))
    facts.append(_promise_fact(history))
    facts.append(Fact(words.seconds(history.worst_lag_s), "worst lag"))
    downtimes = [c.end.downtime_s for c in history.changes.values() if c.end and c.end.downtime_s is not None]
    if downtimes:
        facts.append(
            Fact(words.seconds(sum(downtimes)), "downtime by changes", f"longest {words.seconds(max(downtimes))}")
        )
    if history.measurements:
        facts.append(Fact(str(history.measurements), "trials measured"))
    return facts


def _promise_fact(history: History) -> Fact:
    over = history.seconds_over()
    if over is None:
        return Fact(NONE, "over the Slo", "nothing is promised about latency or lag")
    seconds, untold = over
    note = f"cannot be told of {words.seconds(untold)}" if untold else "told by every window"
    return Fact(words.seconds(seconds), "over the Slo", note)


def _decisions(told: Sequence[Told]) -> Table:
    heads = ("when", "step", "reason", "what it said", "asked → got", "guards", "expected", "verdict")
    return Table(heads, [_decision_row(t) for t in told[-MAX_ROWS:]], _left_out(len(told)))


def _decision_row(told: Told) -> list[Cell]:
    decision, outcome = told.decision, told.outcome
    asked = words.change(told.before, told.wanted)
    got = {"applied": "", "cut": f"got {words.change(told.before, decision.target)}", "stopped": "got nothing"}[
        told.fate
    ]
    verdict = (
        Cell(NONE) if outcome is None else Cell(outcome.verdict.value, _verdict_look(outcome.verdict), outcome.sentence)
    )
    return [
        Cell(words.moment(told.at_s), "time"),
        Cell(str(told.step), "number"),
        Cell(decision.reason.value, "word"),
        Cell(decision.sentence, "sentence"),
        Cell(asked if not got else f"asked {asked}", "asked", got),
        Cell("; ".join(f"{note.guard}: {note.why}" for note in decision.guards) or NONE, told.fate),
        Cell(words.expectation(decision.expects)),
        verdict,
    ]


def _verdict_look(verdict: str) -> str:
    return "verdict-" + verdict.replace(" ", "-")


def _changes(changes: Sequence[Reconfiguration]) -> Table:
    heads = ("when", "intent", "change", "sub-steps", "ending", "took", "downtime")
    return Table(heads, [_change_row(c) for c in changes[-MAX_ROWS:]], _left_out(len(changes)))


def _change_row(change: Reconfiguration) -> list[Cell]:
    intent, end = change.intent, change.end
    undoes = f"undoes {intent.undoes}" if intent.undoes else ""
    return [
        Cell(words.moment(intent.at_s), "time"),
        Cell(intent.id, "", undoes),
        Cell(words.change(intent.previous, intent.target)),
        Cell(", ".join(change.steps) or NONE),
        Cell(
            end.ending.value if end else "open",
            f"ending-{end.ending.value}" if end else "ending-open",
            end.why if end else "",
        ),
        Cell(words.seconds(end.at_s - intent.at_s) if end else NONE, "number"),
        Cell(words.seconds(end.downtime_s) if end else NONE, "number"),
    ]


def _left_out(count: int) -> str:
    return f"The newest {MAX_ROWS} of {count}; older ones are in the journal." if count > MAX_ROWS else ""


def _counts(heads: tuple[str, str], counts: Mapping[str, int]) -> Table:
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    rows = [[Cell(name), Cell(str(count), "number")] for name, count in ordered[:20]]
    return Table(heads, rows, "" if len(ordered) <= 20 else f"{len(ordered) - 20} rarer ones are left out.")


# -- the comparison's parts ------------------------------------------------------------------------------------


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


COLUMNS: tuple[tuple[str, str, Any], ...] = (
    ("reconfigurations", "reconfigurations", lambda v: f"{v:.4g}"),
    ("slot_seconds", "slot-seconds", words.number),
    ("slot_seconds_over_clairvoyant", "ratio to the clairvoyant's", lambda v: f"{v:.3f}"),
    ("slo_seconds_over", "seconds over the Slo", lambda v: f"{v:.5g}"),
    ("latency_p99_s", "latency, 99\u00a0%", words.seconds),
    ("backlog_max", "largest backlog, records", words.number),
    ("decision_ms", "a decision, ms", lambda v: f"{v:.3g}"),
)


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


# -- the document ----------------------------------------------------------------------------------------------


def render(template: str, **facts: Any) -> str:
    """Fill one of the templates; the page needs nothing from elsewhere."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

    environment = Environment(
        loader=PackageLoader("rheostat.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    scripts = [get_plotlyjs(), environment.get_template("plots.js.j2").render()]
    # Only these two scripts may run, and nothing may be fetched, whatever else should get into the page.
    allowed = " ".join(_digest(script) for script in scripts)
    policy = "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; img-src data: blob:"
    return environment.get_template(template).render(
        scripts=[Markup(script) for script in scripts],
        content_policy=f"{policy}; script-src {allowed}",
        version=__version__,
        **facts,
    )


def _digest(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _script_safe(value: Any) -> Markup:
    from markupsafe import Markup

    # ASCII, and without the characters that HTML could read.
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)
