"""`rheostat compare`: several policies on the same job, loads and seeds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rheostat.cli import options

if TYPE_CHECKING:
    from rich.console import Console

    from rheostat.lab.experiment.comparison import Comparison

ENGINES = ("simulated", "spark", "spark-realtime")
"""Values of --engine."""
POLICIES = "static,hpa,dhalion,ds2,oracle"
"""Policies of a simulated comparison unless --policy names others."""


def compare(
    file: options.File = None,
    engine: Annotated[
        str, typer.Option(metavar="NAME", help="simulated, spark (a real cluster on this machine), or spark-realtime.")
    ] = "simulated",
    ground: Annotated[
        str | None,
        typer.Option(metavar="A,B,C", help="Named grounds (see `rheostat grounds`), or all: job, load and objectives."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="With --ground: few seeds.")] = False,
    job: options.Job = None,
    load: options.Load = None,
    policy: options.Policies = None,
    seeds: Annotated[
        str | None,
        typer.Option(metavar="N", help="Number of seeds, counted up from --seed (default: 4, or the ground's own)."),
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

    Default policies: the file's own, static, hpa, dhalion, ds2 and the oracle. With --engine spark (jobs ysb, ysb-cpu,
    wordcount, q5): static-minimum, static-maximum, dynamic-allocation (Spark's own), trigger-interval, hpa and ds2.
    With --engine spark-realtime (jobs wordcount, ysb): conttune, ds2 and dhalion, each beside the simulator's
    prediction. A named ground is compared with all policies on many seeds. The journal holds the first policy's first
    seed. A policy that raises is a failed row: the others finish, and the exit code is 1.
    """
    from rheostat.cli.display import logs
    from rheostat.cli.display.output import check_writable, write_json
    from rheostat.errors import InvalidValue, RheostatError, nearest

    logs.configure(verbose)
    check_writable(json=json_file, html=html_file)
    objectives = {"headroom": headroom, "max_latency_s": max_latency, "max_lag_s": max_lag}
    objectives["max_recovery_s"] = max_recovery
    if engine not in ENGINES:
        raise InvalidValue(f"unknown engine {engine!r}, {nearest(engine, ENGINES)}")
    only = {
        "--ground": ground,
        "--seeds": seeds,
        "--seed": seed,
        "--start": start,
        "--journal": journal,
        "--failures": failures,
    }
    if engine == "simulated":
        values = {"job": job, "load": load, "seed": seed, "duration_s": duration, "interval_s": interval}
        values |= {"start": start, "journal": journal, "failures_s": failures}
        if ground is not None:
            if file is not None or job is not None or load is not None:
                raise InvalidValue("--ground has its own job and load: leave out CONFIG.yaml, --job and --load")
            comparisons, rows = _on_grounds(
                ground, quick, policy, values, objectives, seeds, json_file, html_file, verbose
            )
        elif quick:
            raise InvalidValue("--quick needs --ground")
        else:
            setup = options.read_setup(file, policy, values, objectives, beside=POLICIES)
            comparisons = [_simulated(setup, seeds or "4", json_file, html_file, verbose)]
            rows = comparisons[0].as_dicts()
    elif simulated_only := [name for name, value in {"CONFIG.yaml": file, **only}.items() if value is not None]:
        raise InvalidValue(f"{simulated_only[0]} needs --engine simulated, not {engine}")
    else:
        by_job = _on_spark(engine, job, policy, load, duration, interval, objectives, json_file, html_file)
        comparisons = list(by_job.values())
        rows = [{"job": name, **row} for name, comparison in by_job.items() for row in comparison.as_dicts()]
    if json_file is not None:
        write_json(json_file, rows)
    if failed := [sentence for comparison in comparisons for sentence in _failures(comparison)]:
        raise RheostatError("; ".join(failed))


def _on_grounds(
    names: str,
    quick: bool,
    policy: str | None,
    values: Mapping[str, str | None],
    objectives: Mapping[str, str | None],
    seeds: str | None,
    json_file: str | None,
    html_file: str | None,
    verbose: bool,
) -> tuple[list[Comparison[Any]], list[dict[str, Any]]]:
    """Compare the policies on named grounds; a ground whose data are missing is skipped with a message."""
    from rheostat.cli.display.output import console
    from rheostat.errors import InvalidValue
    from rheostat.lab.experiment.grounds import POLICIES as EVERY
    from rheostat.lab.experiment.grounds import find_grounds

    chosen = find_grounds(names)
    comparisons: list[Comparison[Any]] = []
    rows: list[dict[str, Any]] = []
    out = console(json_file)
    for ground in chosen:
        if ground.missing:
            out.print(f"{ground.name}: skipped, {ground.missing}", markup=False, soft_wrap=True)
            continue
        out.print(f"{ground.name}: {ground.sentence}", markup=False, soft_wrap=True)
        setup = options.read_setup(None, policy or EVERY, values, objectives, base=ground.values)
        count = seeds or str(ground.quick_seeds if quick else ground.seeds)
        ending = "" if len(chosen) == 1 else f"-{ground.name}"
        comparisons.append(_simulated(setup, count, json_file, html_file, verbose, ending))
        rows += [{"ground": ground.name, **row} for row in comparisons[-1].as_dicts()]
    if not comparisons:
        raise InvalidValue(f"none of the grounds can run here: {chosen[0].missing}")
    return comparisons, rows


def _failures(comparison: Comparison[Any]) -> list[str]:
    """Return a sentence about the rows that failed; [] if none did."""
    failures, policies = comparison.failures, {row.policy for row in comparison.rows}
    texts = [f"{policy}: {text}" for policy, text in failures.items()]
    return [f"{len(failures)} of {len(policies)} rows failed: {', '.join(texts)}"] if failures else []


def _simulated(
    setup: options.Setup, seeds: str, json_file: str | None, html_file: str | None, verbose: bool, ending: str = ""
) -> Comparison[Any]:
    """Run all policies on all seeds at once."""
    from rheostat.cli.display import tables
    from rheostat.cli.display.live import bar
    from rheostat.cli.display.output import console
    from rheostat.cli.simulate import print_cause, run_policies, write_page
    from rheostat.config.reader import scalar
    from rheostat.job.frozen import check_whole

    count = scalar(seeds)
    check_whole("--seeds", count, least=1)
    all_seeds = [setup.config.seed + k for k in range(count)]
    out = console(json_file)
    with bar(out, f"{len(setup.policies)} policies, {count} seeds") as watch:
        comparison = run_policies(setup, all_seeds, watch)
    _print_table(out, comparison)
    for line in tables.recoveries(comparison):
        out.print(line, markup=False)
    out.print(tables.conditions(comparison, all_seeds, setup.notes), style="dim", markup=False)
    write_page(comparison, html_file, ending)
    if verbose:
        failures = {run.policy: run.policy_failure for run in comparison.runs if run.policy_failure is not None}
        for failure in failures.values():
            print_cause(failure)
    return comparison


def _print_table(out: Console, comparison: Comparison[Any]) -> None:
    """Print the table, and below it why rows failed."""
    from rheostat.cli.display import tables

    out.print(tables.comparison_table(comparison))
    for line in tables.failures(comparison):
        out.print(line, style="red", markup=False, soft_wrap=True)


def _on_spark(
    engine: str,
    job: str | None,
    policies: str | None,
    load: str | None,
    duration: str | None,
    interval: str | None,
    objectives: Mapping[str, str | None],
    json_file: str | None,
    html_file: str | None,
) -> dict[str, Comparison[Any]]:
    """Run the policies of every job one after the other, each on its own Spark; return job -> comparison."""
    from dataclasses import replace

    from rheostat.cli.display import tables
    from rheostat.cli.display.live import status
    from rheostat.cli.display.output import console
    from rheostat.cli.simulate import write_page
    from rheostat.config.build import build
    from rheostat.config.reader import scalar
    from rheostat.errors import EngineError
    from rheostat.job.frozen import check_number, check_whole
    from rheostat.job.slo import SLO
    from rheostat.lab.experiment.comparison import compare as compare_on
    from rheostat.lab.experiment.descriptions import read_load

    extras, jobs = ("spark", "ysb") if engine == "spark" else ("spark,kafka", "wordcount")
    try:
        ground = _ground(engine)
    except ImportError as error:
        raise EngineError(
            f"--engine {engine} needs more packages ({error}): pip install 'rheostat[{extras}]'"
        ) from error
    ways_by_job = {}
    for name in (job or jobs).split(","):
        ways_by_job[name] = policies.split(",") if policies else list(ground.ways(name))
        ground.check(name, ways_by_job[name])
    shape = None if load is None else read_load(load)
    own_objectives = {key: scalar(value) for key, value in objectives.items() if value is not None}
    checked = build(SLO, own_objectives, "slo")
    slo = replace(ground.slo, **{key: getattr(checked, key) for key in own_objectives})
    seconds = None if duration is None else scalar(duration)
    if seconds is not None:
        check_whole("--duration", seconds, least=30)
    interval_s = scalar(interval or "5")
    check_number("--interval", interval_s, least=1.0)
    out, comparisons = console(json_file), {}
    for name, ways in ways_by_job.items():
        with status(out, name) as progress:
            trial = ground.trial(name, shape, seconds, slo, interval_s, progress)
            comparison = compare_on(ground, trial, ways, progress=progress)
        _print_table(out, comparison)
        level = f"level 1 of the load is {trial.level_per_s:,.0f} records/s"
        out.print(tables.conditions(comparison, [0], [level]), style="dim", markup=False, soft_wrap=True)
        comparisons[name] = comparison
        write_page(comparison, html_file, "" if len(ways_by_job) == 1 else f"-{name}")
    return comparisons


def _ground(engine: str) -> Any:
    if engine == "spark":
        from rheostat.lab.experiment.microbatch import MicroBatches

        return MicroBatches()
    from rheostat.lab.experiment.realtime import RealTime

    return RealTime()
