"""`rheostat profile` and `drill`: what a testbed shows before go-live, as Phoebe and `anticipate` need it.

A profile is the maximum throughput of several scale-outs. A drill is the downtime after failures that are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from rheostat.cli import options
from rheostat.cli.options import number, whole

if TYPE_CHECKING:
    from rich.table import Table

    from rheostat.job.decision import Measurement
    from rheostat.planner.profiling import Profiling


def profile(
    job: Annotated[str, typer.Argument(metavar="JOB", help="Job to profile (see `rheostat jobs`).")],
    step: Annotated[
        str, typer.Option("--rate-step", metavar="RECORDS_PER_S", help="First rate, and the step to the next.")
    ],
    engine: Annotated[str, typer.Option(metavar="simulated|spark", help="Engine of the testbed.")] = "simulated",
    smallest: Annotated[str, typer.Option(metavar="N", help="Smallest scale-out.")] = "1",
    largest: Annotated[
        str | None, typer.Option(metavar="N", help="Largest scale-out (default: 24; 4 on Spark).")
    ] = None,
    deployments: Annotated[str, typer.Option(metavar="N", help="Number of scale-outs, equally spaced.")] = "4",
    settle: Annotated[
        str | None, typer.Option(metavar="SECONDS", help="Warm-up at each rate (default: 300; 15 on Spark).")
    ] = None,
    observe: Annotated[
        str | None, typer.Option(metavar="SECONDS", help="Observation at each rate (default: 120; 30 on Spark).")
    ] = None,
    master: options.Master = None,
    seed: options.Seed = None,
    journal: options.Measurements = None,
    json_file: options.JsonFile = None,
    verbose: options.Verbose = False,
) -> None:
    """Profile a job as Phoebe does: measure the maximum throughput of several scale-outs.

    Rates rise until the latency of a deployment leaves the group of the others; then it is stopped. A policy (phoebe,
    twres, anticipate) that starts later with the same journal begins with the profile.
    """
    from rheostat.cli.display import logs
    from rheostat.cli.display.output import check_writable, console, write_json
    from rheostat.cli.journals import any_journal
    from rheostat.errors import InvalidValue
    from rheostat.lab.testbeds import place
    from rheostat.planner.notebook import open_notebook, read_profile
    from rheostat.planner.profiling import Profiling, run_profile

    logs.configure(verbose)
    check_writable(json=json_file)
    where = place(engine, job, master)
    plan = Profiling(
        whole("--smallest", smallest, 1),
        whole("--largest", largest or str(where.profiled_slots), 1),
        whole("--deployments", deployments, 1),
        number("--rate-step", step, least=1e-9),
        number("--settle", settle or str(where.profile_s[0])),
        number("--observe", observe or str(where.profile_s[1]), least=1.0),
    )
    first_seed, out = whole("--seed", seed or "0"), console(json_file)

    def notify(text: str) -> None:
        out.print(text, style="dim", markup=False, soft_wrap=True)

    opened = any_journal(journal or ":memory:")
    try:
        with open_notebook(opened, where.spec.name) as notes:
            done = read_profile(opened, where.spec.name)
            if done:
                notify(f"the journal already has {len(done)} measurements of {where.spec.name}")
            with where.open(first_seed + 1000 * len(done), notify) as testbed:
                for measurement in run_profile(plan, testbed, where.spec, done):
                    notes.save(measurement)
                    done.append(measurement)
                    notify(_progress_line(measurement))
    finally:
        opened.close()
    out.print(_table(job, plan, done))
    hours = sum(m.slot_seconds for m in done) / 3600
    out.print(f"{len(done)} measurements, {sum(m.seconds for m in done) / 60:.0f} minutes, {hours:.1f} slot hours")
    if json_file is not None:
        write_json(json_file, {"profile": _rows(plan, done), "measurements": done})
    if done and done[-1].problem is not None:
        raise InvalidValue(f"the profile ended early at {done[-1].trial.name}: {done[-1].problem}")


def drill(
    job: Annotated[str, typer.Argument(metavar="JOB", help="Job to drill (see `rheostat jobs`).")],
    rate: Annotated[str, typer.Option(metavar="RECORDS_PER_S", help="Load during the drill.")],
    size: Annotated[str, typer.Option(metavar="N", help="Tasks of every operator.")],
    failures: Annotated[str, typer.Option(metavar="N", help="Number of failures.")] = "3",
    settle: Annotated[str, typer.Option(metavar="SECONDS", help="Undisturbed time before each failure.")] = "300",
    seed: options.Seed = None,
    journal: options.Measurements = None,
    json_file: options.JsonFile = None,
    verbose: options.Verbose = False,
) -> None:
    """Drill a job: lose workers of a simulated testbed on purpose, and measure how long each failure stops the job.

    A recovery-time objective and the policy anticipate that start later with the same journal know the downtimes.
    Without a drill or a failure they must provide for up to three minutes.
    """
    from rheostat.cli.display import logs
    from rheostat.cli.display.output import check_writable, console, write_json
    from rheostat.cli.journals import any_journal
    from rheostat.errors import InvalidValue
    from rheostat.lab.drills import Drill, drill_simulated, learn_drills, read_drills
    from rheostat.lab.jobs import job as plant_of
    from rheostat.planner.notebook import open_notebook

    logs.configure(verbose)
    check_writable(json=json_file)
    plant = plant_of(job)
    plan = Drill(
        whole("--size", size, 1),
        number("--rate", rate, least=1e-9),
        whole("--failures", failures, 1),
        number("--settle", settle, least=1.0),
    )
    first_seed, out = whole("--seed", seed or "0"), console(json_file)
    opened, problem = any_journal(journal or ":memory:"), None
    try:
        with open_notebook(opened, plant.name) as notes:
            done = read_drills(opened, plant.name)
            if done:
                out.print(f"the journal already has {len(done)} failures of {plant.name}", style="dim")
            for measurement in drill_simulated(plant, plan, first_seed + 1000 * len(done)):
                if problem := measurement.problem:
                    break
                notes.save(measurement)
                done.append(measurement)
                window = measurement.observation
                if window is not None:
                    out.print(f"failure {len(done)}: {window.downtime_s:.0f} s", style="dim")
    finally:
        opened.close()
    known = learn_drills(done)
    if done:
        hours = sum(measurement.slot_seconds for measurement in done) / 3600
        out.print(
            f"a failure stops {job} for {known.expected_s():.0f} s on average, and for at most "
            f"{known.quantile(0.9):.0f} s in nine of ten cases; {hours:.1f} slot hours"
        )
    if json_file is not None:
        downtimes = {"expected_s": known.expected_s(), "nine_of_ten_s": known.quantile(0.9)}
        write_json(json_file, {"downtime": downtimes, "measurements": done})
    if problem is not None:
        raise InvalidValue(f"the drill ended early: {problem}")


def _progress_line(measurement: Measurement) -> str:
    from rheostat.model.profile import point_of

    point = point_of(measurement)
    if point is None:
        return f"{measurement.trial.name}: {measurement.problem or 'measured nothing'}"
    latency = "no latency" if point.latency_s is None else f"latency {point.latency_s:.2f} s"
    return f"{measurement.trial.name}: {point.throughput_per_s:,.0f}/s processed, {latency}"


def _rows(plan: Profiling, done: Sequence[Measurement]) -> list[dict[str, float | None]]:
    """Return the maximum throughput of every scale-out: None where no rate was too high for it."""
    from rheostat.model.profile import find_limits, point_of

    points = tuple(point for measurement in done if (point := point_of(measurement)) is not None)
    maximum = {limit.scale_out: limit.throughput_per_s for limit in find_limits(points)}
    cost = {
        size: sum(m.slot_seconds for m in done if max(m.trial.allocation.tasks.values()) == size)
        for size in plan.scale_outs()
    }
    return [{"scale_out": n, "most_per_s": maximum.get(n), "slot_seconds": spent} for n, spent in cost.items()]


def _table(job: str, plan: Profiling, done: Sequence[Measurement]) -> Table:
    from rich.table import Table

    table = Table("scale-out", "T_max, records/s", "slot-seconds", title=f"Profile of {job}", title_justify="left")
    for row in _rows(plan, done):
        most = "above the highest rate tried" if row["most_per_s"] is None else f"{row['most_per_s']:,.0f}"
        table.add_row(f"{row['scale_out']:g}", most, f"{row['slot_seconds']:,.0f}")
    return table
