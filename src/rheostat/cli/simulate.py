"""`rheostat simulate`: one policy on one simulated job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rheostat.cli import options

if TYPE_CHECKING:
    from rheostat.engine.simulated import Plant
    from rheostat.errors import PolicyError
    from rheostat.lab.experiment.comparison import Comparison
    from rheostat.lab.experiment.simulated import Watch


def simulate(
    file: options.File = None,
    job: options.Job = None,
    load: options.Load = None,
    policy: options.Policy = None,
    seed: options.Seed = None,
    duration: options.Duration = None,
    interval: options.Interval = None,
    headroom: options.Headroom = None,
    max_latency: options.MaxLatency = None,
    max_lag: options.MaxLag = None,
    max_recovery: options.MaxRecovery = None,
    failures: options.Failures = None,
    start: options.Start = None,
    journal: options.JournalUrl = None,
    json_file: options.JsonFile = None,
    html_file: options.HtmlFile = None,
    verbose: options.Verbose = False,
) -> None:
    """Run one policy on a simulated job and show its decisions.

    Ends with the policy's exception if it raises one; -v shows the traceback.
    """
    from rheostat.cli.display import logs, tables
    from rheostat.cli.display.live import live_simulation
    from rheostat.cli.display.output import check_writable, console, write_json
    from rheostat.errors import InvalidValue, redact_settings

    logs.configure(verbose)
    check_writable(json=json_file, html=html_file)
    values = {"job": job, "load": load, "seed": seed, "duration_s": duration, "interval_s": interval}
    values |= {"start": start, "journal": journal, "failures_s": failures}
    objectives = {"headroom": headroom, "max_latency_s": max_latency, "max_lag_s": max_lag}
    objectives["max_recovery_s"] = max_recovery
    if policy is not None and "," in policy:
        raise InvalidValue(f"simulate runs one policy, not several ({policy!r}): use compare")
    setup = options.read_setup(file, policy, values, objectives)
    out = console(json_file)
    seeds = [setup.config.seed]
    with show_cause(verbose), live_simulation(out) as watch:
        comparison = run_policies(setup, seeds, watch, stop_at_failure=True)
    row, run = comparison.rows[0], comparison.runs[0]
    counts = tables.counts(run)
    out.print(tables.changes_table(run))
    out.print(f"[bold]{row.policy}[/]", tables.summary_table(comparison))
    for what, by_name in counts.items():
        out.print(f"{what}: {tables.counts_line(by_name)}", markup=False)
    out.print(tables.plots(run))
    for line in tables.recoveries(comparison):
        out.print(line, markup=False)
    out.print(tables.conditions(comparison, seeds, setup.notes), style="dim", markup=False)
    if json_file is not None:
        trial, [values_of_row] = comparison.trial, comparison.as_dicts()
        recoveries_s = run.recoveries_s(trial.failures_s)
        scenario = redact_settings(trial.settings)
        write_json(json_file, {"scenario": scenario, "row": values_of_row, "recoveries_s": recoveries_s, **counts})
    write_page(comparison, html_file)


@contextmanager
def show_cause(verbose: bool) -> Iterator[None]:
    """Print the traceback of a policy's exception with --verbose; without, the error says how to get it."""
    from rheostat.errors import PolicyError

    try:
        yield
    except PolicyError as error:
        if verbose:
            print_cause(error)
            raise
        raise PolicyError(f"{str(error).removesuffix(')')}; -v shows the traceback)") from error.__cause__


def print_cause(error: PolicyError) -> None:
    """Print the traceback of the exception that a policy raised."""
    import traceback

    if error.__cause__ is not None:
        traceback.print_exception(error.__cause__)


def run_policies(
    setup: options.Setup, seeds: Sequence[int], watch: Watch, stop_at_failure: bool = False
) -> Comparison[Plant]:
    """Run the selected policies; wrong values are refused before the first simulated second."""
    from rheostat.cli.journals import new_journal
    from rheostat.lab.experiment.comparison import compare
    from rheostat.lab.experiment.descriptions import policy_maker
    from rheostat.lab.experiment.simulated import Simulated

    makers = {label: policy_maker(*named) for label, named in setup.policies.items()}
    trial = setup.config.trial(seeds)
    journal = None if setup.config.journal is None else new_journal(setup.config.journal, trial.job.name)
    try:
        return compare(Simulated(makers, journal, watch, stop_at_failure), trial, list(makers), seeds)
    finally:
        if journal is not None:
            journal.close()


def write_page(comparison: Comparison[Any], html_file: str | None, ending: str = "") -> None:
    """Write the page if a file is given; `ending` goes before its suffix, to tell several jobs apart."""
    from pathlib import Path

    from rheostat.cli.display.output import write_text

    if html_file is not None:
        from rheostat.lab.experiment.page import comparison_page

        path = Path(html_file)
        write_text(str(path.with_stem(path.stem + ending)) if ending else html_file, comparison_page(comparison))
