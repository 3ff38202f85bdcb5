"""The simulated ground: all policies on all seeds, in one fleet of replicas of the same plant."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from rheostat.config.named import parse_named
from rheostat.control.controller import IMMEDIATE, Controller, Step
from rheostat.engine.simulated import Fleet, FleetClock, Plant
from rheostat.engine.testbed.simulated import SimulatedTestbed
from rheostat.errors import PolicyError
from rheostat.journal.memory import MemoryJournal
from rheostat.lab.experiment.comparison import ORACLE, Comparison, find_yardstick
from rheostat.lab.experiment.descriptions import policy_maker
from rheostat.lab.experiment.failures import located, policy_errors, raise_failure, unlogged_failures
from rheostat.lab.experiment.run import Run, Series
from rheostat.lab.experiment.score import Column, Score, failure_text, score_simulated, slot_seconds
from rheostat.lab.experiment.trial import PolicyMaker, Progress, Trial
from rheostat.ports import Clock, Engine, Journal, Policy
from rheostat.report import words

SIMULATED = "simulated"
Watch = Callable[[float, Sequence[Step]], None]
"""Takes the share of the run that is done, and the latest step of every replica."""


@dataclass(frozen=True)
class Simulated:
    """Runs trials of one plant in lockstep, and the oracle beside them as the yardstick."""

    makers: Mapping[str, PolicyMaker] = field(default_factory=dict)
    """Label -> maker of its policy; any other way is a policy with options."""
    journal: Journal | None = None
    """Journal of the first replica."""
    watch: Watch = lambda _share, _steps: None
    stop_at_failure: bool = False
    """Whether the first exception of a policy ends the run; else that policy's row is marked as failed."""
    name: ClassVar[str] = SIMULATED
    lead: ClassVar[str] = "All policies on the same simulated job, the same loads and the same seeds."
    keys: ClassVar[tuple[str, ...]] = (
        "policy",
        "seeds",
        "reconfigurations",
        "slot_seconds",
        "slot_seconds_over_oracle",
        "slo_seconds_over",
        "latency_p99_s",
        "backlog_max",
        "decision_ms",
        "policy_failures",
        "failed",
    )
    columns: ClassVar[tuple[Column, ...]] = (
        Column("reconfigurations", "changes", ",.1f", "reconfigurations", lambda v: f"{v:.4g}"),
        Column("slot_seconds", "thousand\nslot s", ",.1f", "slot-seconds", words.number, 1e3),
        Column(
            "slot_seconds_over_oracle",
            "/ oracle",
            ".2f",
            "ratio to the oracle's",
            lambda v: f"{v:.3f}",
        ),
        Column("slo_seconds_over", "s over\nthe SLO", ",.0f", "seconds over the SLO", lambda v: f"{v:.5g}"),
        Column("latency_p99_s", "latency\np99 s", ",.2f", "latency, 99\u00a0%", words.seconds),
        Column("backlog_max", "backlog\nmax (M)", ",.2f", "largest backlog, records", words.number, 1e6),
        Column("decision_ms", "decision\nms", ".2f", "a decision, ms", lambda v: f"{v:.3g}"),
    )

    def run(self, trials: Sequence[Trial[Plant]], progress: Progress) -> tuple[Run[Plant], ...]:
        """Run all trials at once; they differ only in way and seed."""
        first = trials[0]
        every, plant = list(trials), first.job
        if find_yardstick(trial.way for trial in trials) is None:
            every += [replace(trial, way=ORACLE) for trial in trials if trial.way == first.way]
        fleet = Fleet(
            plant,
            [trial.seeded_load for trial in every],
            [trial.seed for trial in every],
            start=[first.start or plant.start()] * len(every),
            failures_s=first.failures_s,
            trace=True,
        )
        clock = FleetClock(fleet)
        controllers: dict[int, Controller[Any]] = {}
        errors: dict[int, PolicyError] = {}
        for replica, trial in enumerate(every):
            try:
                with unlogged_failures():
                    controllers[replica] = self._start(trial, fleet.engine(replica), clock, replica)
            except PolicyError as error:
                if self.stop_at_failure:
                    raise located(error, "before the first step") from error.__cause__
                errors[replica] = error
        steps: list[list[Step]] = [[] for _ in every]
        moment = first.interval_s
        while moment <= first.duration_s:
            clock.sleep_until(moment)
            with unlogged_failures():
                latest = {replica: controller.step() for replica, controller in controllers.items()}
            for replica, step in latest.items():
                steps[replica].append(step)
            if self.stop_at_failure:
                raise_failure(latest.values())
            self.watch(moment / first.duration_s, list(latest.values()))
            moment += first.interval_s
        clock.sleep_until(first.duration_s)
        with unlogged_failures():
            for controller in controllers.values():
                controller.stop()
        trace = fleet.trace()
        return tuple(
            Run(
                trial,
                self.name,
                trial.duration_s,
                steps=tuple(steps[k]),
                trace={name: series[:, k] for name, series in trace.items()},
                policy_error=errors.get(k),
            )
            for k, trial in enumerate(every)
        )

    def _start(self, trial: Trial[Plant], engine: Engine, clock: Clock, replica: int) -> Controller[Any]:
        """Start a controller on a replica; what its policy raises meanwhile becomes a PolicyError."""
        policy = self._policy(trial)
        with policy_errors(policy.name):
            controller = Controller(
                engine,
                policy,
                self.journal if self.journal is not None and replica == 0 else MemoryJournal(),
                clock,
                slo=trial.slo,
                guards=trial.guards,
                testbed=SimulatedTestbed(trial.job, trial.seed),
                seed=trial.seed,
                pace=IMMEDIATE,
                settings=trial.settings,
                foresight=trial.foresight,
            )
            controller.start()
        return controller

    def _policy(self, trial: Trial[Plant]) -> Policy[Any]:
        if trial.way in self.makers:
            return self.makers[trial.way](trial)
        return policy_maker(*parse_named(trial.way))(trial)

    def score(self, ways: Sequence[str], runs: Sequence[Run[Plant]]) -> tuple[Score, ...]:
        """Return a row per policy, with means over the seeds."""
        oracle = find_yardstick(run.policy for run in runs)
        oracle_runs = [run for run in runs if run.policy == oracle]
        best = {} if failure_text(oracle_runs) else {run.seed: slot_seconds(run) for run in oracle_runs}
        return tuple(score_simulated([run for run in runs if run.policy == way], best) for way in ways)

    def subject(self, trial: Trial[Plant]) -> str:
        """Return the plant's name."""
        return trial.job.name

    def facts(self, trial: Trial[Plant]) -> Mapping[str, str]:
        """Return the plant's origin, its load at level 1 and its size at the start."""
        plant = trial.job
        return {
            "name": plant.name,
            "parameters from": plant.origin or "unknown",
            "unit load": ", ".join(f"{name} {words.rate(unit)}" for name, unit in plant.unit_per_s.items()),
            "start": words.value(trial.start or plant.start()),
        }

    def notes(self, comparison: Comparison[Plant]) -> Sequence[str]:
        """Return how to read the rows and the yardstick."""
        oracle, slo = comparison.yardstick, comparison.trial.slo
        oracle_runs = [run for run in comparison.runs if run.policy == oracle]
        named = "" if oracle == ORACLE else f" ({oracle})"
        seeds = len({run.seed for run in comparison.runs})
        several = "Means over the seeds; the backlog is the largest of any seed. " if seeds > 1 else ""
        silent = slo.max_latency_s is None and slo.max_lag_s is None
        nothing = " The SLO has no objective for latency or lag, so no second is over it." if silent else ""
        marked = f"{several}The best of each column is marked; less is better in all of them.{nothing}"
        if oracle is None:
            return marked, f"There is no yardstick: {comparison.yardstick_failure}."
        if oracle in [row.policy for row in comparison.rows]:
            return (
                marked,
                f"The oracle{named} knows the future load and the true capacities: it is the yardstick, drawn in grey, "
                "and never marked as best. A ratio below 1 means fewer slot-seconds than the oracle's: compare the "
                "seconds over the SLO.",
            )
        cost = words.number(sum(map(slot_seconds, oracle_runs)) / len(oracle_runs))
        return (
            marked,
            f"The oracle{named} is only the yardstick: it knows the future load and the true capacities, used {cost} "
            "slot-seconds, and is drawn in grey.",
        )

    def series(self, run: Run[Plant]) -> Sequence[Series]:
        """Return load, slots, backlog and latency."""
        trace, unit_per_s = run.trace, run.trial.level_per_s
        at_s = np.arange(len(trace["load_per_s"]), dtype=float)
        load = trace["load_per_s"] / unit_per_s
        title = f"Load, units of {words.number(unit_per_s)} records/s"
        latency, limit_s = "Latency, seconds since the event (log scale)", run.trial.slo.max_latency_s
        return (
            Series(title, at_s, load, " units", 110, step=True),
            Series("Slots", at_s, trace["slots"], " slots", 210, step=True),
            Series("Backlog, records waiting at the sources", at_s, trace["backlog"]),
            Series(latency, at_s, trace["latency_s"], " s", 210, log=True, limit=limit_s),
        )
