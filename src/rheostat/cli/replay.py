"""`rheostat replay`: decide again from a journal, and compare with the recorded decisions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rheostat.cli import options

if TYPE_CHECKING:
    from rheostat.control.replay import Difference, Replayed
    from rheostat.job.decision import Decision
    from rheostat.job.record import Record, Run
    from rheostat.ports import Policy

JournalArgument = Annotated[str, typer.Argument(metavar="JOURNAL", help="A journal: a path or a URL.")]
JobInJournal = Annotated[str | None, typer.Option(metavar="NAME", help="Replay or report this job only.")]


def replay(journal: JournalArgument, job: JobInJournal = None, json_file: options.JsonFile = None) -> None:
    """Decide again from a journal, and compare with the recorded decisions.

    The exit code is 1 if a step differs, or if the policy fails in the replay.
    """
    from rheostat.cli.display.output import check_writable, console, write_json
    from rheostat.cli.journals import journaled_jobs, old_journal
    from rheostat.control.replay import replay as decide_again

    check_writable(json=json_file)
    out = console(json_file)
    results = []
    opened = old_journal(journal)
    try:
        for name in journaled_jobs(opened, job):
            replayed = decide_again(opened, name, policy_of)
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


def policy_of(run: Run) -> Policy[Any]:
    """Return a run's policy: by name, from its file, or, for the oracle, with the load and the curves of the run."""
    from dataclasses import replace

    from rheostat.config.named import named
    from rheostat.errors import InvalidValue
    from rheostat.lab.experiment.config import make_config
    from rheostat.lab.experiment.descriptions import policy_maker
    from rheostat.policy.registry import make_policy

    settings = {key: value for key, value in run.settings.items() if key != "engine"}
    if run.policy == "oracle":
        if not settings:
            raise InvalidValue(
                f"the run of {run.job!r} has no settings, so its oracle cannot be rebuilt: choose a job with --job"
            )
        return policy_maker("oracle", run.options)(replace(make_config(settings).trial(), seed=run.seed))
    name = named(settings["policy"], "name", "policy")[0] if "policy" in settings else run.policy
    return make_policy(name if name.endswith(".py") else run.policy, run.options)


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
