"""`rheostat plan`: the slots that a job needs for a rate, measured on a testbed, with an interval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from rheostat.cli import options
from rheostat.cli.options import number, whole

if TYPE_CHECKING:
    from rich.console import Console

    from rheostat.job.decision import Interval
    from rheostat.job.plan import Estimate, Plan
    from rheostat.lab.testbeds import Place
    from rheostat.planner.plan import Prices
    from rheostat.planner.verification import RateCheck

METHODS = ("auto", "streambed")
"""Values of --method."""
NARROW = 1.2
"""Width of the rate's interval, high over low, at which measuring ends."""


def plan(
    job: Annotated[str, typer.Argument(metavar="JOB", help="Job to plan for (see `rheostat jobs`).")],
    rate: Annotated[str, typer.Option(metavar="RECORDS_PER_S", help="Input rate to sustain, such as 2e6.")],
    engine: Annotated[str, typer.Option(metavar="simulated|spark", help="Engine of the testbed.")] = "simulated",
    method: Annotated[
        str, typer.Option(metavar="auto|streambed", help="Way to explore and to extrapolate: ours, or the paper's.")
    ] = "auto",
    memory: Annotated[
        str | None, typer.Option(metavar="1g,2g", help="Memory sizes to choose from (default: the job's own).")
    ] = None,
    max_slots: Annotated[
        str | None, typer.Option(metavar="N", help="Slots of the testbed (default: 48; 4 on Spark).")
    ] = None,
    budget_minutes: Annotated[
        str | None, typer.Option(metavar="N", help="Minutes on the testbed (default: no limit).")
    ] = None,
    headroom: Annotated[
        str | None, typer.Option(metavar="SHARE", help="Spare capacity as a share of the rate (default: 0.1).")
    ] = None,
    price: Annotated[
        str | None, typer.Option(metavar="P|1g=P,2g=P", help="Price of a slot per hour, or one per memory size.")
    ] = None,
    master: options.Master = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Run the planned size at 100, 120 and 150 % of the rate.")
    ] = False,
    seed: options.Seed = None,
    journal: options.Measurements = None,
    json_file: options.JsonFile = None,
    html_file: options.HtmlFile = None,
    verbose: options.Verbose = False,
) -> None:
    """Plan capacity before a deployment: slots, memory and tasks for a rate."""
    from rheostat.cli.display import logs
    from rheostat.cli.display.output import check_writable, console, write_json, write_text
    from rheostat.errors import InvalidValue, nearest
    from rheostat.lab.testbeds import place

    logs.configure(verbose)
    check_writable(json=json_file, html=html_file)
    if method not in METHODS:
        raise InvalidValue(f"unknown --method {method!r}, {nearest(method, METHODS)}")
    rate_per_s, headroom_share = number("--rate", rate, least=1e-9), number("--headroom", headroom or "0.1")
    budget = None if budget_minutes is None else 60.0 * number("--budget-minutes", budget_minutes)
    first_seed = whole("--seed", seed or "0")
    where = place(engine, job, master)
    most = whole("--max-slots", max_slots or str(where.max_slots), least=1)
    memories = _memories(memory, where)
    prices = _prices(price)
    out = console(json_file)

    def notify(text: str) -> None:
        out.print(text, style="dim", markup=False, soft_wrap=True)

    made, estimates, verified = _plan(
        where, method, first_seed, rate_per_s, headroom_share, most, budget, memories, prices, verify, journal, notify
    )
    show(made, verified, out)
    if json_file is not None:
        write_json(json_file, {"plan": made, "measurements": estimates})
    if html_file is not None:
        from rheostat.report.plan_page import plan_page

        write_text(html_file, plan_page(made, estimates))


def _plan(
    where: Place,
    method: str,
    seed: int,
    rate_per_s: float,
    headroom: float,
    most: int,
    budget_s: float | None,
    memories: tuple[int | None, ...],
    prices: Prices | None,
    wants_verdict: bool,
    url: str | None,
    notify: Callable[[str], None],
) -> tuple[Plan, list[Estimate], list[RateCheck]]:
    """Measure, plan and verify; journal every result at once."""
    from rheostat.cli.journals import any_journal
    from rheostat.clock import WallClock
    from rheostat.planner.campaign import OnTestbed, explore
    from rheostat.planner.capacity_estimator import dichotomic
    from rheostat.planner.configuration_optimizer import operator_capacities
    from rheostat.planner.evidence import production_runs
    from rheostat.planner.notebook import open_notebook, read_estimates, read_plans
    from rheostat.planner.plan import make_plan
    from rheostat.planner.resource_explorer import Geometric, Paper, Space
    from rheostat.planner.sequential_estimator import sequential
    from rheostat.planner.streambed import streambed_plan
    from rheostat.planner.verification import verify_plan

    clock, spec = WallClock(), where.spec
    with ExitStack() as stack:
        journal = any_journal(url or ":memory:")
        stack.callback(journal.close)
        notes = stack.enter_context(open_notebook(journal, spec.name))
        before = read_estimates(journal, spec.name)
        if before:
            notify(f"the journal already has {len(before)} measurements of {spec.name}")
        # Another seed per measurement, so that a simulated campaign that continues does not repeat its noise.
        testbed = stack.enter_context(where.open(seed + 1000 * len(before), notify))
        bounds = operator_capacities(spec, {}, {})
        least, most = sum(a.least for a in bounds), min(most, sum(a.most for a in bounds))
        step = max((tunable.quantum for tunable in spec.tunable), default=1)
        space = Space(least, most, memories, step)
        theirs = method == "streambed"
        search = dichotomic if theirs else sequential
        optimizer = OnTestbed(
            testbed, spec, where.feed, where.phases, search, split_by_curves=not theirs, now=clock.now
        )
        ours = Geometric(space, enough=NARROW, rate_per_s=rate_per_s * (1 + headroom))
        strategy = Paper(space, seed) if theirs else ours
        estimates, _ = explore(strategy, optimizer, before, save=notes.save, notify=notify, budget_s=budget_s)
        ran = production_runs(read_plans(journal, spec.name))
        if ran:
            notify(f"the journal already has {len(ran)} runs of planned sizes")
        make = streambed_plan if theirs else partial(make_plan, production=ran, most_slots=space.most, seed=seed)
        made = make(
            spec, estimates, rate_per_s, headroom=headroom, memories_mb=memories, prices=prices, at_s=clock.now()
        )
        verdicts: list[RateCheck] = []
        if wants_verdict:
            notify(f"running {made.allocation} at 100, 120 and 150 % of the rate")
            warm_up_s, observe_s = where.verify_s
            made, verdicts = verify_plan(testbed, made, where.feed, warm_up_s=warm_up_s, observe_s=observe_s)
        notes.save(made)
    return made, estimates, verdicts


def show(plan: Plan, verified: Sequence[RateCheck], out: Console) -> None:
    """Print a plan with its intervals, choices and warnings."""
    from math import isinf

    from rich.table import Table

    rows = {
        "slots": f"{plan.allocation.slots}{_between(plan.slots)}",
        "tasks": " ".join(f"{name}={count}" for name, count in plan.allocation.tasks.items()),
        "memory": "-" if plan.allocation.memory_mb is None else f"{plan.allocation.memory_mb} MB",
        "sustains": f"{plan.capacity_per_s.middle:,.0f}/s{_between(plan.capacity_per_s)}",
        "cost per hour": "-" if plan.cost_per_hour is None else f"{plan.cost_per_hour:,.2f}",
        "beyond the testbed": f"{plan.reach:.1f} times the largest measured size, {plan.measured_slots} slots",
        "measured": f"{plan.measurements} runs, {plan.minutes:.0f} minutes, {plan.slot_hours:.1f} slot hours",
    }
    for choice in plan.choices if len(plan.choices) > 1 else ():
        money = "" if choice.cost_per_hour is None else f", {choice.cost_per_hour:,.2f} per hour"
        rows[f"with {choice.memory_mb} MB"] = f"{_slots(choice.slots.middle)} slots{money}"
    if (more := plan.next_measurement) is not None:
        where = "" if more.inside else " (beyond this testbed)"
        rows["next measurement"] = (
            f"{more.slots} slots{where}: narrows the rate's interval from a factor of {more.width_now:.2f} to about "
            f"{more.width_then:.2f}"
        )
    for one in verified:
        processed = "" if one.processed_per_s is None else f"  ({one.processed_per_s:,.0f} of {one.rate_per_s:,.0f}/s)"
        rows[f"at {one.share:.0%}"] = f"{one.verdict}{processed}"
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, text in rows.items():
        table.add_row(name, text)
    out.print(
        f"\n{plan.job} at {plan.rate_per_s:,.0f} records/s, {plan.headroom:.0%} headroom", style="bold", markup=False
    )
    out.print(table)
    for warning in plan.warnings:
        out.print(f"careful: {warning}", style="yellow", markup=False)
    if isinf(plan.slots.middle):
        out.print("careful: no size is enough for the rate; the one above is the best", style="yellow")


def _between(interval: Interval) -> str:
    """Return an interval in words; the paper's method has none."""
    low, high = _slots(interval.low), _slots(interval.high)
    return "" if interval.low == interval.high else f"  (90 %: {low} to {high})"


def _slots(value: float) -> str:
    return "none is enough" if value == float("inf") else f"{value:,.0f}"


def _megabytes(text: str) -> int:
    from rheostat.errors import InvalidValue

    units = {"g": 1024, "m": 1}
    digits, unit = (text[:-1], units.get(text[-1:].lower())) if text[-1:].isalpha() else (text, 1)
    if unit is None or not digits.isdigit() or int(digits) < 1:
        raise InvalidValue(f"{text!r} is not a memory size: write one such as 512m or 2g")
    return int(digits) * unit


def _memories(text: str | None, where: Place) -> tuple[int | None, ...]:
    from rheostat.errors import InvalidValue

    if text is None:
        return (where.memory_mb,)
    sizes = tuple(sorted({_megabytes(part.strip()) for part in text.split(",")}))
    choices = where.spec.memory_choices_mb
    if unknown := [size for size in sizes if size not in choices]:
        if not choices:
            raise InvalidValue(f"--memory {unknown[0]} MB: the memory of this job is fixed, leave --memory out")
        known_sizes = ", ".join(f"{size} MB" for size in choices)
        raise InvalidValue(f"--memory {unknown[0]} MB is not a memory size of this job: choose from {known_sizes}")
    return sizes


def _prices(text: str | None) -> Prices | None:
    if text is None:
        return None
    if "=" not in text:
        return {None: number("--price", text)}
    parts = [part.partition("=") for part in text.split(",")]
    return {_megabytes(size.strip()): number("--price", value) for size, _, value in parts}
