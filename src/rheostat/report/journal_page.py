"""Pages: facts and figures put into a template. Templates escape everything; only our own scripts are let through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from rheostat.job.record import Run
from rheostat.ports import Journal
from rheostat.report import words
from rheostat.report.drawing import TimeAxis
from rheostat.report.history import History, Reconfiguration, Told, read_history
from rheostat.report.html import Cell, Fact, Plot, Table, render
from rheostat.report.words import NONE

MAX_ROWS = 1000
"""Rows of one table; the newest are shown, and how many are not."""


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
        "SLO": words.settings(run.slo) or {"objectives": "nothing"},
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
        return Fact(NONE, "over the SLO", "nothing is promised about latency or lag")
    seconds, untold = over
    note = f"cannot be told of {words.seconds(untold)}" if untold else "told by every window"
    return Fact(words.seconds(seconds), "over the SLO", note)


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


# -- the document ----------------------------------------------------------------------------------------------
