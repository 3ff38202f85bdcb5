"""The page of one job's journal: headline numbers, settings, figures, and every decision and change in a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from rheostat.job.record import Run
from rheostat.ports import Journal
from rheostat.report import words
from rheostat.report.chart.time_axis import TimeAxis
from rheostat.report.history import History, Proposal, Reconfiguration, read_history
from rheostat.report.html import Cell, Fact, Plot, Table, render
from rheostat.report.words import NONE

MAX_ROWS = 1000
"""Rows of one table: the newest records."""


def journal_page(journal: Journal, job: str) -> str:
    """Return one HTML document about one job of a journal; an unknown job is an InvalidValue."""
    return history_page(read_history(journal, job))


def history_page(history: History) -> str:
    """Return one HTML document about a job whose journal is read."""
    plots: list[Plot] = []
    operators: list[Plot] = []
    if len(history) and history.period_s:
        from rheostat.report.figures import MAX_MARKERS, job_figure, operators_figure

        time = TimeAxis(*history.period_s)
        count = len(history.proposals)
        note = f"{MAX_MARKERS} of {count} decisions have a marker." if count > MAX_MARKERS else ""
        plots.append(Plot("job", job_figure(history, time), note))
        if (figure := operators_figure(history, time)) is not None:
            operators.append(Plot("operators", figure))
    return render(
        "journal.html.j2",
        title=f"{history.job}: what Rheostat did",
        job=history.job,
        runs=_run_sections(history),
        starts=len(history.runs),
        facts=_facts(history),
        empty=not len(history),
        plots=plots,
        operators=operators,
        decisions=_decisions(history.proposals),
        changes=_changes(list(history.changes.values())),
        reasons=_counts(("reason", "steps"), history.reasons),
        problems=_counts(("problem", "windows"), history.problems),
    )


def _run_sections(history: History) -> dict[str, dict[str, str]]:
    """Return the settings of the newest run, and those before it where they differ."""
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
        "SLO": words.settings(run.slo) or {"limits": "none"},
        "Guards": words.settings(run.guards),
        "Engine": {**words.settings(run.settings), **{k: v for k, v in job.items() if v != NONE}},
        "Operators": {**bounds, **pinned},
    }
    if earlier := _earlier(history.runs):
        sections["Before"] = earlier
    return {name: items for name, items in sections.items() if items}


def _earlier(runs: Sequence[Run]) -> dict[str, str]:
    """Return each policy with its options that ran before the present one."""
    earlier: dict[str, str] = {}
    for run, after in pairwise(runs):
        if (run.policy, run.options, run.slo) != (after.policy, after.options, after.slo):
            earlier[f"until {words.moment(after.at_s)}"] = f"{run.policy} {words.value(run.options)}".replace(NONE, "")
    return earlier


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
    facts.append(Fact(words.number(history.slot_seconds), "slot-seconds", "slots running, times seconds"))
    facts.append(_objective_fact(history))
    facts.append(Fact(words.seconds(history.worst_lag_s), "worst lag"))
    downtimes = [c.end.downtime_s for c in history.changes.values() if c.end and c.end.downtime_s is not None]
    if downtimes:
        facts.append(
            Fact(words.seconds(sum(downtimes)), "downtime by changes", f"longest {words.seconds(max(downtimes))}")
        )
    if history.measurements:
        facts.append(Fact(str(history.measurements), "trials measured"))
    return facts


def _objective_fact(history: History) -> Fact:
    over = history.seconds_over()
    if over is None:
        return Fact(NONE, "over the SLO", "the SLO limits neither latency nor lag")
    seconds, unmeasured = over
    note = f"not measured for {words.seconds(unmeasured)}" if unmeasured else "measured in every window"
    return Fact(words.seconds(seconds), "over the SLO", note)


def _decisions(proposals: Sequence[Proposal]) -> Table:
    heads = ("when", "step", "reason", "explanation", "requested → granted", "guards", "expected", "verdict")
    return Table(heads, [_decision_row(p) for p in proposals[-MAX_ROWS:]], _omission(len(proposals)))


def _decision_row(proposal: Proposal) -> list[Cell]:
    decision, outcome = proposal.decision, proposal.outcome
    requested = words.change(proposal.before, proposal.wanted)
    granted = {
        "applied": "",
        "cut": f"granted {words.change(proposal.before, decision.target)}",
        "stopped": "granted nothing",
    }[proposal.fate]
    verdict = (
        Cell(NONE) if outcome is None else Cell(outcome.verdict.value, _verdict_look(outcome.verdict), outcome.sentence)
    )
    return [
        Cell(words.moment(proposal.at_s), "time"),
        Cell(str(proposal.step), "number"),
        Cell(decision.reason.value, "word"),
        Cell(decision.sentence, "sentence"),
        Cell(requested if not granted else f"requested {requested}", "asked", granted),
        Cell("; ".join(f"{note.guard}: {note.why}" for note in decision.guards) or NONE, proposal.fate),
        Cell(words.expectation(decision.expects)),
        verdict,
    ]


def _verdict_look(verdict: str) -> str:
    return "verdict-" + verdict.replace(" ", "-")


def _changes(changes: Sequence[Reconfiguration]) -> Table:
    heads = ("when", "intent", "change", "sub-steps", "ending", "took", "downtime")
    return Table(heads, [_change_row(c) for c in changes[-MAX_ROWS:]], _omission(len(changes)))


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


def _omission(count: int) -> str:
    return f"The newest {MAX_ROWS} of {count}; the journal holds the others." if count > MAX_ROWS else ""


def _counts(heads: tuple[str, str], counts: Mapping[str, int]) -> Table:
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    rows = [[Cell(name), Cell(str(count), "number")] for name, count in ordered[:20]]
    return Table(heads, rows, "" if len(ordered) <= 20 else f"{len(ordered) - 20} rarer ones are not shown.")
