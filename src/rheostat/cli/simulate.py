"""`rheostat simulate`: one policy, one run, step by step."""

from __future__ import annotations

from rheostat.cli import options


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
    """Run one policy on a simulated job and show what it decides."""
    from rheostat.cli.display import logs, tables
    from rheostat.cli.display.output import check_writable, console, write_json
    from rheostat.cli.display.progress import live_steps
    from rheostat.cli.scenario import run_policies, write_page
    from rheostat.errors import InvalidValue

    logs.configure(verbose)
    check_writable(json=json_file, html=html_file)
    values = {"job": job, "load": load, "seed": seed, "duration_s": duration, "interval_s": interval}
    values |= {"start": start, "journal": journal, "failures_s": failures}
    promises = {"headroom": headroom, "max_latency_s": max_latency, "max_lag_s": max_lag}
    promises["max_recovery_s"] = max_recovery
    if policy is not None and "," in policy:
        raise InvalidValue(f"simulate runs one policy, not {policy!r}: use compare")
    chosen = options.choose(file, policy, values, promises)
    out = console(json_file)
    seeds = [chosen.config.seed]
    with live_steps(out) as progress:
        comparison = run_policies(chosen, seeds, progress)
    row, run = comparison.rows[0], comparison.runs[0]
    counts = tables.counts(run)
    out.print(tables.changes_table(run))
    out.print(f"[bold]{row.policy}[/]", tables.summary_table(row))
    for what, found in counts.items():
        out.print(f"{what}: {tables.counted(found)}", markup=False)
    out.print(tables.plots(run))
    for line in tables.recoveries(comparison):
        out.print(line, markup=False)
    out.print(tables.conditions(comparison.scenario, seeds, chosen.notes), style="dim", markup=False)
    if json_file is not None:
        caught_up = run.recoveries_s(comparison.scenario.failures_s)
        result = {"scenario": comparison.scenario.settings, "row": row.as_dict(), "recoveries_s": caught_up, **counts}
        write_json(json_file, result)
    write_page(comparison, html_file)
