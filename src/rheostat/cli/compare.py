"""`rheostat compare`: several policies on the same job, loads and seeds."""

from __future__ import annotations

from typing import Annotated

import typer

from rheostat.cli import options

POLICIES = "static,hpa,dhalion,ds2,clairvoyant"


def compare(
    file: options.File = None,
    engine: Annotated[
        str, typer.Option(metavar="NAME", help="simulated, spark (a real cluster here), or spark-realtime.")
    ] = "simulated",
    job: options.Job = None,
    load: options.Load = None,
    policy: options.Policies = None,
    seeds: Annotated[
        str | None, typer.Option(metavar="N", help="How many seeds, counted up from --seed (default: 4).")
    ] = None,
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
    """Run several policies on the same job.

    Without --policy: the file's policy beside static, hpa, dhalion, ds2 and the clairvoyant; on Spark, whose jobs are
    ysb, ysb-cpu (unpaced), wordcount and q5: static-minimum, static-maximum, dynamic-allocation (Spark's own),
    trigger-interval, hpa and ds2; in real-time mode, whose jobs are wordcount and ysb: conttune, ds2 and dhalion, each
    with the simulator's prediction beside it. A journal holds the first policy's first seed.
    """
    from rheostat.cli.display import logs, tables
    from rheostat.cli.display.output import check_writable, console, write_json
    from rheostat.cli.display.progress import bar
    from rheostat.cli.scenario import run_policies, write_page
    from rheostat.config.reader import scalar
    from rheostat.errors import InvalidValue, nearest
    from rheostat.job.frozen import check_whole

    logs.configure(verbose)
    check_writable(json=json_file, html=html_file)
    promises = {"headroom": headroom, "max_latency_s": max_latency, "max_lag_s": max_lag}
    promises["max_recovery_s"] = max_recovery
    if engine in ("spark", "spark-realtime"):
        only = {"a file": file, "--seeds": seeds, "--seed": seed, "--start": start, "--journal": journal}
        only["--failures"] = failures
        if given := [name for name, value in only.items() if value is not None]:
            raise InvalidValue(f"{given[0]} is for the simulated engine: on Spark a run is what it is")
        if engine == "spark-realtime":
            from rheostat.cli.compare_realtime import compare_realtime

            compare_realtime(job or "wordcount", policy, load, duration, interval, promises, json_file, html_file)
            return
        from rheostat.cli.compare_spark import compare_spark

        compare_spark(job or "ysb", policy, load, duration, interval, promises, json_file, html_file)
        return
    if engine != "simulated":
        raise InvalidValue(f"unknown engine {engine!r}, {nearest(engine, ['simulated', 'spark', 'spark-realtime'])}")
    values = {"job": job, "load": load, "seed": seed, "duration_s": duration, "interval_s": interval}
    values |= {"start": start, "journal": journal, "failures_s": failures}
    chosen = options.choose(file, policy, values, promises, beside=POLICIES)
    count = scalar(seeds or "4")
    check_whole("--seeds", count, least=1)
    every = [chosen.config.seed + k for k in range(count)]
    out = console(json_file)
    with bar(out, f"{len(chosen.policies)} policies, {count} seeds") as progress:
        comparison = run_policies(chosen, every, progress)
    out.print(tables.comparison_table(comparison.rows))
    for line in tables.recoveries(comparison):
        out.print(line, markup=False)
    out.print(tables.conditions(comparison.scenario, every, chosen.notes), style="dim", markup=False)
    if json_file is not None:
        write_json(json_file, [row.as_dict() for row in comparison.rows])
    write_page(comparison, html_file)
