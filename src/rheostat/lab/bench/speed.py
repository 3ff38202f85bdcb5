"""The speed of the simulator, of one decision, of one step of the loop, and of the command line.

Absolute times on a shared machine vary: every number is the best of several repeats, and slopes are ratios within one
run.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from rheostat.control.controller import IMMEDIATE, Controller
from rheostat.engine.simulated import Fleet, FleetClock
from rheostat.engine.simulated.plant import LatencyLaw, Plant
from rheostat.engine.testbed.loads import Sine
from rheostat.job.slo import SLO
from rheostat.journal import open_journal
from rheostat.journal.memory import MemoryJournal
from rheostat.lab.bench.measure import Measure
from rheostat.lab.experiment.failures import raise_failure
from rheostat.lab.experiment.trial import Progress
from rheostat.lab.jobs.dragster import chain
from rheostat.policy.registry import POLICIES, make_policy
from rheostat.ports import Journal

LOAD = Sine(100.0, 50.0, 3600.0, noise=0.1)


def example(operators: int) -> Plant:
    """Return a chain of that many operators, including the source, with every feature of the simulator."""
    rows = tuple((f"op{k}", 40.0 + k, 0.02) for k in range(operators - 1))
    law = LatencyLaw(buffer_records=10)
    return chain(f"chain{operators}", rows, 40, "bench", law, (50.0,) * len(rows), start_tasks=5)


def best_of(repeats: int, work: Callable[[], None]) -> float:
    """Return the shortest time of several runs, in seconds."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def tick_s(operators: int, replicas: int, seconds: int, repeats: int) -> float:
    """Return the time of one simulated second of a fleet."""
    fleet = Fleet(example(operators), [LOAD] * replicas, range(replicas))
    fleet.advance(60)
    return best_of(repeats, lambda: fleet.advance(seconds)) / seconds


WITH_OUR_MODEL: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "conttune-loglog": ("conttune", {"model": "loglog"}),
    "autrascale-decomposed": ("autrascale", {"model": "decomposed"}),
}
"""Published policies with models of ours: name -> policy and options."""


def slope(sizes: tuple[int, ...], times: list[float]) -> float:
    """Return the exponent of cost ~ size ** slope; 1 is linear."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def simulator(quick: bool, progress: Progress) -> list[Measure]:
    """Measure simulated job-seconds per second, and the growth of the cost with operators and replicas."""
    seconds, repeats = (300, 3) if quick else (1000, 5)
    progress("5 operators, 64 replicas")
    rate = 64 / tick_s(5, 64, seconds, repeats)
    operators, replicas = (5, 10, 20, 40), (256, 512, 1024, 2048)
    progress("cost by operators")
    by_operators = [tick_s(n, 256, seconds // 4, repeats) for n in operators]
    progress("cost by replicas")
    by_replicas = [tick_s(5, r, seconds // 4, repeats) for r in replicas]
    note = "exponent of cost ~ size ** slope; 1 is linear"
    return [
        Measure("simulator", "job_seconds_per_s", rate, "1/s", ">= 300000", "higher", "5 operators, 64 replicas"),
        Measure("simulator", "slope_operators", slope(operators, by_operators), "", "<= 1.1", "lower", note),
        Measure("simulator", "slope_replicas", slope(replicas, by_replicas), "", "<= 1.1", "lower", note),
    ]


def controller(policy: str, operators: int, journal: Journal) -> Controller[Any]:
    """Start a controller of an example job."""
    name, options = WITH_OUR_MODEL.get(policy, (policy, {}))
    fleet = Fleet(example(operators), [LOAD], [1])
    fleet.advance(120)
    made = Controller(
        fleet.engine(0),
        make_policy(name, options),
        journal,
        FleetClock(fleet),
        slo=SLO(max_latency_s=10.0),
        pace=IMMEDIATE,
    )
    made.start()
    return made


def mean_step_ms(made: Controller[Any], steps: int) -> tuple[float, float]:
    """Return the mean time of a warm step and of its decision; simulated time between steps is not timed."""
    clock = made.clock
    spent, decided = [], []
    for _ in range(steps):
        clock.sleep(60.0)
        started = time.perf_counter()
        step = made.step()
        spent.append((time.perf_counter() - started) * 1e3)
        raise_failure([step])
        decided.append(step.decision_ms)
    warm = slice(steps // 10, None)
    return float(np.mean(spent[warm])), float(np.mean(decided[warm]))


def command_s(*command: str, repeats: int) -> float:
    """Return the shortest time of a whole command."""

    def run() -> None:
        subprocess.run(command, check=True, capture_output=True)

    return best_of(repeats, run)


def decision(quick: bool, progress: Progress) -> list[Measure]:
    """Measure decisions, whole steps with and without SQLite, a long journal, and start-up."""
    steps = 60 if quick else 300
    measures = []
    for policy in (*POLICIES, *WITH_OUR_MODEL):
        for operators in (5, 10):
            progress(f"{policy}, {operators} operators")
            _, ms = mean_step_ms(controller(policy, operators, MemoryJournal()), steps)
            goal = "<= 10" if operators == 10 else "<= 5"
            measures.append(Measure("decision", f"ms_{policy}_{operators}", ms, "ms", goal, "lower"))
    progress("one step, without and with SQLite")
    memory_ms, _ = mean_step_ms(controller("ds2", 10, MemoryJournal()), steps)
    with TemporaryDirectory() as folder:
        journal = open_journal(str(Path(folder) / "bench.db"))
        made = controller("ds2", 10, journal)
        sqlite_ms, _ = mean_step_ms(made, steps)
        progress("one step, with a long journal")
        _lengthen(made, 20 if quick else 200)
        long_ms, _ = mean_step_ms(made, steps)
        made.stop()
        journal.close()
    repeats = 3 if quick else 7
    progress("start-up")
    help_s = command_s(sys.executable, "-m", "rheostat", "--help", repeats=repeats)
    import_s = command_s(sys.executable, "-c", "import rheostat", repeats=repeats)
    bare_s = command_s(sys.executable, "-c", "pass", repeats=repeats)
    measures += [
        Measure("decision", "step_ms", memory_ms, "ms", "<= 2", "lower", "DS2, 10 operators, no journal file"),
        Measure("decision", "step_ms_sqlite", sqlite_ms, "ms", "<= 5", "lower", "the same with a SQLite file"),
        Measure(
            "decision", "step_long_over_short", long_ms / sqlite_ms, "ratio", "<= 1.2", "lower", "long journal / short"
        ),
        Measure("decision", "help_s", help_s, "s", "< 0.4", "lower", f"python itself {bare_s:.2f} s"),
        Measure("decision", "import_s", import_s - bare_s, "s", "< 0.1", "lower", "on top of python itself"),
    ]
    return measures


def _lengthen(made: Controller[Any], thousands: int) -> None:
    """Append thousands of observations, as in months of running."""
    window = made.engine.observe()
    assert made._lease is not None
    for _ in range(thousands):
        made.journal.append(made._lease, made.state.step, [window] * 1000)
