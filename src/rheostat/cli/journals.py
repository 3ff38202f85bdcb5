"""Journals on the command line: a new one for a simulation, an existing one to read, and the policies that it names."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rheostat.errors import InvalidValue, JournalError, nearest
from rheostat.job.record import PolicyFile, Run

if TYPE_CHECKING:
    from rheostat.ports import Journal, Policy


def any_journal(url: str) -> Journal:
    """Open a journal, or create it; one that cannot be opened is a wrong argument."""
    from rheostat.journal import open_journal

    try:
        return open_journal(url)
    except JournalError as error:
        raise InvalidValue(str(error)) from error


def new_journal(url: str, job: str) -> Journal:
    """Open a journal for a simulation of a job; refuse one that has a run of the job."""
    journal = any_journal(url)
    # A plan is not a run: a controller begins with its measurements.
    if journal.latest(job, "run") is not None:
        journal.close()
        # Simulated time starts at zero: beside older records every window would be stale.
        raise InvalidValue(f"journal {url!r} already has a run of {job!r}: give a new file")
    return journal


def old_journal(url: str) -> Journal:
    """Open an existing journal; refuse a path without one instead of creating it."""
    from rheostat.journal import open_journal

    file = url.removeprefix("sqlite:///") if url.startswith("sqlite:///") else url
    if "://" not in file and not Path(file).expanduser().is_file():
        raise InvalidValue(f"there is no journal {url!r}: give the path or URL of an existing one")
    return open_journal(url)


def journaled_jobs(journal: Journal, job: str | None) -> tuple[str, ...]:
    """Return the named job, or all jobs of the journal."""
    names = journal.jobs()
    if not names:
        raise InvalidValue("the journal is empty: give one that a job has written to")
    if job is None:
        return names
    if job not in names:
        raise InvalidValue(f"the journal has no job {job!r}, {nearest(job, names)}")
    return (job,)


@dataclass(frozen=True, slots=True)
class Consent:
    """The user's consent to run policy files; a terminal is asked once for each file."""

    unchanged: bool
    """Whether files with the recorded hash may be run unasked."""
    changed: bool
    """Whether all other files may be run unasked."""
    _given: set[tuple[PolicyFile, str]] = field(default_factory=set)

    def require(self, recorded: PolicyFile, sha256: str) -> None:
        """Refuse a file with this hash unless the user allows it."""
        same = recorded.sha256 == sha256
        if (self.unchanged if same else self.changed) or (recorded, sha256) in self._given:
            return
        place = str(Path(recorded.path).absolute())
        known = f"not the recorded {recorded.sha256}" if recorded.sha256 else "unchecked: the journal has no hash of it"
        about = f"the journal names the policy file {place!r}; its SHA-256 {sha256} is "
        about += "the recorded one" if same else known
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            flag = "--allow-policy-file" if same else "--allow-changed-policy-file"
            raise InvalidValue(f"{about}: read the file, and run it with {flag}")
        question = "Run this file?" if same else "Run this file, which may not be the one that decided then?"
        if not typer.confirm(f"{about}\n{question}", default=False, err=True):
            raise InvalidValue(f"the policy file {place!r} was not run")
        self._given.add((recorded, sha256))


def policy_of(run: Run, consent: Consent) -> Policy[Any]:
    """Return a run's policy: by name, from its file, or, for the oracle, with the load and the curves of the run."""
    from rheostat.policy.registry import PolicySource, build_policy, make_policy

    if run.policy == "oracle":
        return _oracle(run)
    recorded = _file(run)
    if recorded is None:
        return make_policy(run.policy, run.options)
    source = PolicySource.read(recorded.path)
    consent.require(recorded, source.file.sha256)
    return build_policy(source.load(), recorded.path, run.options)


def _file(run: Run) -> PolicyFile | None:
    """Return the file that a run record names; None for a built-in policy."""
    from rheostat.config.named import named
    from rheostat.policy.registry import POLICIES

    if run.policy_file is not None or run.policy in POLICIES:
        return run.policy_file
    # Older versions have the path in the settings only.
    settings = named(run.settings["policy"], "name", "policy")[0] if "policy" in run.settings else ""
    return next((PolicyFile(name, "") for name in (settings, run.policy) if name.endswith(".py")), None)


def _oracle(run: Run) -> Policy[Any]:
    from rheostat.lab.experiment.config import make_config
    from rheostat.lab.experiment.descriptions import policy_maker

    settings = {key: value for key, value in run.settings.items() if key != "engine"}
    if not settings:
        raise InvalidValue(
            f"the run of {run.job!r} has no settings, so its oracle cannot be rebuilt: choose a job with --job"
        )
    if run.options:
        raise InvalidValue(
            f"the oracle of {run.job!r} is that of an earlier version ({', '.join(run.options)}), which is gone: its "
            "decisions can be read, with report, and not made again"
        )
    # The settings may name another policy, which ran beside the oracle: it is not needed.
    trial = make_config({**settings, "policy": "oracle"}).trial()
    return policy_maker("oracle", {})(replace(trial, seed=run.seed))
