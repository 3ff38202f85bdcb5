"""`rheostat replay`: decide again from a journal, and compare with the recorded decisions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rheostat.cli import options

if TYPE_CHECKING:
    from rheostat.control.replay import Difference, Replayed
    from rheostat.job.decision import Decision
    from rheostat.job.record import Record

JournalArgument = Annotated[str, typer.Argument(metavar="JOURNAL", help="A journal: a path or a URL.")]
JobInJournal = Annotated[str | None, typer.Option(metavar="NAME", help="Replay or report this job only.")]


def replay(
    journal: JournalArgument,
    job: JobInJournal = None,
    allow_file: Annotated[
        bool, typer.Option("--allow-policy-file", help="Run an unchanged policy file that the journal names.")
    ] = False,
    allow_changed: Annotated[
        bool, typer.Option("--allow-changed-policy-file", help="Run one whose SHA-256 is not the recorded one, too.")
    ] = False,
    json_file: options.JsonFile = None,
) -> None:
    """Decide again from a journal, and compare with the recorded decisions.

    A policy file that the journal names is run only after a question, or with --allow-policy-file. The exit code is 1
    if a step differs, or if the policy fails in the replay.
    """
    from rheostat.cli.display.output import check_writable, console, write_json
    from rheostat.cli.journals import Consent, journaled_jobs, old_journal, policy_of
    from rheostat.control.replay import replay as decide_again

    check_writable(json=json_file)
    out = console(json_file)
    results = []
    consent = Consent(allow_file or allow_changed, allow_changed)
    opened = old_journal(journal)
    try:
        for name in journaled_jobs(opened, job):
            replayed = decide_again(opened, name, lambda run: policy_of(run, consent))
            results.append(replayed)
            skipped = (
                f", {replayed.skipped} steps skipped after a record that cannot be read" if replayed.skipped else ""
            )
            line = f"{name}: {replayed.steps} steps, {len(replayed.differences)} differences{skipped}"
            out.print(line, markup=False, soft_wrap=True)
            for failures, where in ((replayed.recorded_failures, "recorded run"), (replayed.failures, "replay")):
                if failures:
                    first = f"first in step {failures[0].step}: {failures[0].why}"
                    line = f"{name}: in the {where} the policy failed in {len(failures)} steps, {first}"
                    out.print(line, markup=False, soft_wrap=True)
            for difference in replayed.differences:
                out.print(_text(difference), markup=False)
    finally:
        opened.close()
    if json_file is not None:
        write_json(json_file, [_row(replayed) for replayed in results])
    if any(replayed.differences or replayed.failures for replayed in results):
        raise typer.Exit(1)


def _row(replayed: Replayed) -> dict[str, Any]:
    return {
        "job": replayed.job,
        "steps": replayed.steps,
        "skipped": replayed.skipped,
        "differences": [_as_dict(difference) for difference in replayed.differences],
        "recorded_policy_failures": len(replayed.recorded_failures),
        "policy_failures": len(replayed.failures),
        "failed": replayed.failures[0].why if replayed.failures else "",
    }


def _text(difference: Difference) -> str:
    recorded, again = difference.recorded, difference.again
    lines = [
        f"  step {difference.step}",
        f"    recorded: {_decision_text(recorded)}",
        f"    again:    {_decision_text(again)}",
    ]
    if _decision(recorded) == _decision(again):
        other = {type(one).__name__ for one in (*recorded, *again) if (one in recorded) != (one in again)}
        lines.append(f"    the decision is the same; these records differ: {', '.join(sorted(other))}")
    return "\n".join(lines)


def _decision_text(records: Iterable[Record]) -> str:
    decision = _decision(records)
    if decision is None:
        return "no decision"
    return f"{decision.target or 'hold'} ({decision.reason}): {decision.sentence}"


def _as_dict(difference: Difference) -> dict[str, Any]:
    return {
        "step": difference.step,
        **{
            side: None
            if (decision := _decision(getattr(difference, side))) is None
            else {"target": decision.target, "reason": decision.reason, "sentence": decision.sentence}
            for side in ("recorded", "again")
        },
    }


def _decision(records: Iterable[Record]) -> Decision | None:
    from rheostat.job.decision import Decision

    return next((record for record in records if isinstance(record, Decision)), None)
