"""The simulated ground: all policies on all seeds, in one fleet of replicas of the same plant."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from rheostat.config.named import parse_named
from rheostat.control.controller import IMMEDIATE, Controller, Step
from rheostat.engine.simulated import Fleet, FleetClock, Plant
from rheostat.engine.testbed.simulated import SimulatedTestbed
from rheostat.errors import PolicyError
from rheostat.journal.memory import MemoryJournal
from rheostat.lab.experiment.comparison import Comparison
from rheostat.lab.experiment.descriptions import policy_maker
from rheostat.lab.experiment.failures import located, policy_errors, raise_failure, unlogged_failures
from rheostat.lab.experiment.oracle.bound import lower_bound
from rheostat.lab.experiment.run import Run, Series
from rheostat.lab.experiment.score import Column, Score, score_simulated
from rheostat.lab.experiment.trial import PolicyMaker, Progress, Trial
from rheostat.lab.profiles import Profiles, write_profile
from rheostat.ports import Clock, Engine, Journal, Policy
from rheostat.report import words

SIMULATED = "simulated"
Watch = Callable[[float, Sequence[Step]], None]
"""Takes the share of the run that is done, and the latest step of every replica."""


@dataclass(frozen=True)
class Simulated:
    """Runs trials of one plant in lockstep, and bounds the cost of each seed."""

    makers: Mapping[str, PolicyMaker] = field(default_factory=dict)
    """Label -> maker of its policy; any other way is a policy with options."""
    journal: Journal | None = None
    """Journal of the first replica."""
    watch: Watch = lambda _share, _steps: None
    stop_at_failure: bool = False
    """Whether the first exception of a policy ends the run; else that policy's row is marked as failed."""
    profiled: bool = False
    """Whether a policy that profiles has its profile before the first second, as in Phoebe's paper."""
    name: ClassVar[str] = SIMULATED
    lead: ClassVar[str] = "All policies on the same simulated job, the same loads and the same seeds."
    keys: ClassVar[tuple[str, ...]] = (
        "policy",
        "seeds",
        "reconfigurations",
        "changes_per_day",
        "slot_seconds",
        "slot_seconds_over_oracle",
        "slot_seconds_lost",
        "slo_seconds_over",
        "peak_slots",
        "cost",
        "cost_over_oracle",
        "cost_over_oracle_low",
        "cost_over_oracle_high",
        "windows_short",
        "latency_p99_s",
        "backlog_max",
        "decision_ms",
        "policy_failures",
        "failed",
    )
    columns: ClassVar[tuple[Column, ...]] = (
        Column("reconfigurations", "chan-\nges", ",.1f", "reconfigurations", lambda v: f"{v:.4g}"),
        Column("changes_per_day", "per\nday", ",.0f", "reconfigurations per day", lambda v: f"{v:.4g}"),
        Column("slot_seconds", "1000\nslot s", ",.1f", "slot-seconds", words.number, 1e3),
        Column("slot_seconds_lost", "lost", ",.1f", "slot-seconds lost to changes", words.number, 1e3),
        Column("slo_seconds_over", "s over\nSLO", ",.0f", "seconds over the SLO", lambda v: f"{v:.5g}"),
        Column("cost", "1000\ncost", ",.1f", "cost, slot-seconds", words.number, 1e3),
        Column("cost_over_oracle", "/\noracle", ".2f", "cost over the oracle's", lambda v: f"{v:.3f}"),
        Column("windows_short", "short", ",.1f", "windows short of the demand", lambda v: f"{v:.4g}"),
        Column("latency_p99_s", "p99 s", ",.2f", "latency, 99\u00a0%", words.seconds),
    )

    def run(self, trials: Sequence[Trial[Plant]], progress: Progress) -> tuple[Run[Plant], ...]:
        """Run all trials at once; they differ only in way and seed."""
        first = trials[0]
        every, plant = list(trials), first.job
        fleet = Fleet(
            plant,
            [trial.seeded_load for trial in every],
            [trial.seed for trial in every],
            start=[first.start or plant.start()] * len(every),
            failures_s=first.failures_s,
            trace=True,
        )
        clock, profiles = FleetClock(fleet), Profiles(plant, [trial.seed for trial in every])
        controllers: dict[int, Controller[Any]] = {}
        errors: dict[int, PolicyError] = {}
        for replica, trial in enumerate(every):
            try:
                with unlogged_failures():
                    controllers[replica] = self._start(trial, fleet.engine(replica), clock, replica, profiles)
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
        bounds = {trial.seed: lower_bound(trial) for trial in every if trial.way == first.way}
        return tuple(
            Run(
                trial,
                self.name,
                trial.duration_s,
                steps=tuple(steps[k]),
                trace={name: series[:, k] for name, series in trace.items()},
                bound=bounds[trial.seed],
                policy_error=errors.get(k),
            )
            for k, trial in enumerate(every)
        )

    def _start(
        self, trial: Trial[Plant], engine: Engine, clock: Clock, replica: int, profiles: Profiles
    ) -> Controller[Any]:
        """Start a controller on a replica; what its policy raises meanwhile becomes a PolicyError."""
        policy = self._policy(trial)
        # Without a profile a policy asks for one round per step.
        rounds = None if self.profiled else int(trial.duration_s / trial.interval_s)
        profile = profiles.read(policy, trial.seed, trial.slo, trial.guards, rounds)
        journal = self.journal if self.journal is not None and replica == 0 else MemoryJournal()
        if self.profiled and profile:
            write_profile(journal, trial.job.name, profile)
        with policy_errors(policy.name):
            controller = Controller(
                engine,
                policy,
                journal,
                clock,
                slo=trial.slo,
                guards=trial.guards,
                testbed=SimulatedTestbed(trial.job, trial.seed, measured=profile),
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
        return tuple(score_simulated([run for run in runs if run.policy == way]) for way in ways)

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
        """Return how to read the rows and the oracle."""
        slo = comparison.trial.slo
        seeds = {run.seed: run.bound for run in comparison.runs}
        several = "Means over the seeds; the backlog is the largest of any seed. " if len(seeds) > 1 else ""
        silent = slo.max_latency_s is None and slo.max_lag_s is None
        nothing = " The SLO has no objective for latency or lag, so no second is over it." if silent else ""
        least = words.number(float(np.mean([bound.total for bound in seeds.values() if bound is not None])))
        played = " Its row plays a schedule of the search, is drawn in grey, and is never marked as best."
        return (
            f"{several}The best of each column is marked; less is better in all of them.{nothing}",
            f"Cost = slot-seconds + 10 x {words.number(comparison.rows[0].peak_slots)} slots at the peak x seconds "
            "over the SLO + slot-seconds lost to changes.",
            f"The oracle's cost of {least} is a lower bound for the known load, capacities, noise and downtimes: no "
            f"course of sizes is below 1.{played if comparison.yardstick else ''}",
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
