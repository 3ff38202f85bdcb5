"""What a scaler with its defaults sees of a job as users have it, on real Spark, and how soon it decides.

The load, the pace and the truth are known from outside: the producer's own count of what the broker acknowledged, and
the workers' own accounts of what they have done. `lab/sight/comparison.py` says what is compared with what.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rheostat.job.slo import DEFAULT_HEADROOM
from rheostat.lab.bench.measure import Measure
from rheostat.lab.experiment.processes import in_own_process
from rheostat.lab.experiment.trial import Progress
from rheostat.lab.sight.comparison import (
    Sight,
    blind_share,
    compare,
    describe,
    middle,
    reaction_s,
    right_size,
    slots_before,
    worst,
)
from rheostat.lab.sight.realtime import BASE_PER_S as REALTIME_BASE_PER_S
from rheostat.lab.sight.realtime import SPIKE_PER_S, right_slots, spike_in_real_time
from rheostat.lab.sight.run import LATE_S, Recording, run_scenario
from rheostat.lab.sight.scenario import (
    BASE_PER_S,
    FILES,
    LEVELS,
    MOST_EXECUTORS,
    PACE_PER_S,
    SPIKE,
    SPIKE_AND_FALL,
    Scenario,
)

log = logging.getLogger(__name__)

BENCH = "sight"
RUNS = 5
MIDDLE_GOAL, WORST_GOAL = "<= 0.05", "<= 0.2"


@dataclass(frozen=True)
class _Seen:
    """A run, and the errors of its windows."""

    recording: Recording
    sight: Sight


def spike(quick: bool, progress: Progress) -> list[Measure]:
    """Let the load rise tenfold for a minute, and fall back."""
    slots = right_size(BASE_PER_S * SPIKE, PACE_PER_S, DEFAULT_HEADROOM, MOST_EXECUTORS)
    runs = _play_scenario(SPIKE_AND_FALL, quick, progress)
    threshold_per_s = BASE_PER_S * (1 + SPIKE) / 2
    return [*_reactions(runs, "", threshold_per_s, slots, "executors"), *_errors(runs, "", goals=True)]


def realtime(quick: bool, progress: Progress) -> list[Measure]:
    """Let the load rise fourfold for a minute, and fall back, in real-time mode."""

    def run(report: Progress) -> Recording:
        report("the job starts, and the load is played")
        return in_own_process(spike_in_real_time)

    runs = _play("spike in real time", REALTIME_BASE_PER_S, run, quick, progress)
    threshold_per_s = (REALTIME_BASE_PER_S + SPIKE_PER_S) / 2
    return [
        *_reactions(runs, "_realtime", threshold_per_s, right_slots(), "tasks"),
        *_errors(runs, "_realtime", goals=True),
    ]


def _reactions(runs: Sequence[_Seen], suffix: str, threshold_per_s: float, slots: int, unit: str) -> list[Measure]:
    """Return how soon the right size was decided, and how much was unusable, while the load was above a threshold."""
    reactions_s, before, blind, windows, changing, jumping = [], [], [], [], [], []
    for run in runs:
        recording = run.recording
        seconds = int(recording.end_s - recording.start_s)
        above = recording.truth.stretch_above(threshold_per_s, recording.start_s, seconds)
        # Without a spike at the broker there is nothing to react to: both meet no goal.
        start_s, end_s = above or (float("inf"), float("inf"))
        reactions_s.append(reaction_s(recording.windows, start_s, slots, end_s))
        before.append(slots_before(recording.windows, start_s))
        blind.append(blind_share(recording.windows, start_s, end_s))
        inside = [window for window in recording.windows if start_s <= window.at_s <= end_s]
        windows.append(len(inside))
        changing.append(sum(window.changing for window in inside))
        jumping.append(sum(window.jumping for window in inside))
    reaction_note = f"from {_join(before)} to a decision for {slots} {unit}; runs: {_join(reactions_s)}"
    blind_note = (
        f"of {_join(windows)} windows during the spike, {_join(changing)} in a change, {_join(jumping)} waited for the "
        f"rate of the jump; runs: {_join(blind)}"
    )
    return [
        Measure(BENCH, f"reaction_s{suffix}", _median(reactions_s), "s", "<= 15", "lower", reaction_note),
        Measure(BENCH, f"blind_share{suffix}", _median(blind), "", "<= 0.05", "lower", blind_note),
    ]


def steps(quick: bool, progress: Progress) -> list[Measure]:
    """Play several levels, silence, a ramp, and silence again."""
    return _errors(_play_scenario(LEVELS, quick, progress), "_steps", goals=False)


def files(quick: bool, progress: Progress) -> list[Measure]:
    """Drop files into a folder: two levels, silence, and a level again."""
    return _errors(_play_scenario(FILES, quick, progress), "_files", goals=False)


def _play_scenario(scenario: Scenario, quick: bool, progress: Progress) -> list[_Seen]:
    return _play(scenario.name, BASE_PER_S, lambda report: run_scenario(scenario, report), quick, progress)


def _play(
    name: str, base_per_s: float, run: Callable[[Progress], Recording], quick: bool, progress: Progress
) -> list[_Seen]:
    count, runs = 1 if quick else RUNS, []
    for number in range(1, count + 1):

        def report(text: str, prefix: str = f"run {number} of {count}") -> None:
            progress(f"{prefix}: {text}")

        recording = run(report)
        for window in recording.windows:
            log.info("%s", describe(window, recording.truth, recording.start_s))
        runs.append(_Seen(recording, compare(recording.windows, recording.truth, base_per_s)))
        sight = runs[-1].sight
        report(
            f"{name}: {sight.windows} windows, backlog wrong by {middle(sight.backlog):.1%}, input rate by "
            f"{middle(sight.rate):.1%}, in the middle"
        )
    return runs


def _errors(runs: Sequence[_Seen], suffix: str, *, goals: bool) -> list[Measure]:
    """Return what all parts measure, each the median of its values per run."""
    size = f"{_join([run.sight.windows for run in runs])} windows, one per {_over(runs, _interval_s):.3g} s"
    middle_goal, worst_goal = (MIDDLE_GOAL, WORST_GOAL) if goals else ("", "")

    def measure(name: str, value: float, unit: str, goal: str, note: str) -> Measure:
        return Measure(BENCH, f"{name}{suffix}", value, unit, goal, "lower", note)

    repeated = sum(run.recording.repeated for run in runs)
    backlog_worst = [worst(run.sight.backlog_second) for run in runs]
    backlog_exact = [worst(run.sight.backlog) for run in runs]
    return [
        measure(
            "backlog_error",
            _over(runs, lambda run: middle(run.sight.backlog)),
            "",
            middle_goal,
            f"of max(true backlog, one second of load); {size}",
        ),
        measure(
            "backlog_error_worst",
            _median(backlog_worst),
            "",
            worst_goal,
            f"worst second; runs: {_join(backlog_worst)}; from the truth at the very moment: {_join(backlog_exact)}",
        ),
        measure(
            "rate_error",
            _over(runs, lambda run: middle(run.sight.rate)),
            "",
            middle_goal,
            f"from the producer's rate over the last interval; worst window "
            f"{_over(runs, lambda run: worst(run.sight.rate)):.3g}",
        ),
        measure(
            "rate_error_late",
            _over(runs, lambda run: middle(run.sight.late_rate)),
            "",
            middle_goal,
            f"from the nearest of its rates over the last 2 s, the last interval and the one before; worst window "
            f"{_over(runs, lambda run: worst(run.sight.late_rate)):.3g}",
        ),
        measure(
            "lag_error_s",
            _over(runs, lambda run: middle(run.sight.lag_s)),
            "s",
            "",
            f"from the age of the oldest record without a result; worst window "
            f"{_over(runs, lambda run: worst(run.sight.lag_s)):.3g} s",
        ),
        measure(
            "unseen_share",
            _over(runs, _unseen_share),
            "",
            "",
            f"windows without a rate or a backlog; the oldest number shown had an age of "
            f"{_over(runs, lambda run: run.sight.oldest_s):.3g} s",
        ),
        measure(
            "executor_s",
            _over(runs, lambda run: run.recording.executor_s),
            "s",
            "",
            f"in {_over(runs, lambda run: run.recording.end_s - run.recording.start_s):.0f} s; "
            f"{_over(runs, lambda run: float(run.recording.late_s)):.0f} s over a lag of {LATE_S:g} s"
            + (f"; {repeated} records of repeated tasks" if repeated else ""),
        ),
    ]


def _interval_s(run: _Seen) -> float:
    return run.sight.interval_s


def _unseen_share(run: _Seen) -> float:
    return run.sight.unseen / run.sight.windows if run.sight.windows else float("nan")


def _over(runs: Sequence[_Seen], value: Callable[[_Seen], float]) -> float:
    """Return the median over the runs."""
    return _median([value(run) for run in runs])


def _median(values: Sequence[float]) -> float:
    """Return the median; not a number if one value is none, which meets no goal."""
    return float(np.median(values))


def _join(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.3g}" for value in values)
