"""Frozen processes on real Spark: whether two drivers ever run on one checkpoint, in both modes.

A driver that is suspended, by a debugger, a snapshot of its machine or a full disk, looks dead and is not. Part
`python` suspends only its Python, while its JVM goes on committing batches: a second driver must wait. Part `driver`
suspends all of it: a second driver must take over, and the woken one must commit nothing more.
`lab/freeze/round.py` says what counts as evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

import numpy as np

from rheostat.lab.bench.measure import Measure
from rheostat.lab.experiment.trial import Progress
from rheostat.lab.freeze.driver import LEASE_S, Mode
from rheostat.lab.freeze.round import LATE_S, Round, freeze_driver, freeze_python

BENCH = "freeze"
MODES: tuple[Mode, ...] = ("microbatch", "realtime")
ROUNDS = 10
HOLD_S = 45.0
"""Seconds of frozen Python: longer than a lease, and than any claim stays fresh."""
FREEZE_S = 25.0, 90.0
"""Shortest and longest freeze of a driver in seconds."""
WAKE_S = 5.0
"""Longest time in seconds from a take-over to the wake of every third driver, in place of its random freeze."""
QUICK_FREEZE_S = LATE_S + 5.0
"""Seconds of the one freeze with `--quick`: long enough for a take-over that is late."""


def python(quick: bool, progress: Progress, rounds: int | None = None) -> list[Measure]:
    """Freeze the Python of drivers; half of them are thawed, the others killed."""

    def play(mode: Mode, number: int) -> Round:
        return freeze_python(mode, HOLD_S, killed=number % 2 == 0)

    measures = []
    for mode in MODES:
        played = _play(mode, rounds or (1 if quick else ROUNDS), play, "Python frozen", progress)
        beside = [each.text for each in played if each.started_beside]
        waits_s = [each.take_over_s for each in played if each.take_over_s is not None]
        after_kill = f"{len(waits_s)} began after a kill, the last after {max(waits_s):.1f} s" if waits_s else ""
        measures += [
            Measure(BENCH, f"started_beside_{mode}", len(beside), "", "<= 0", "lower", (beside or [after_kill])[0]),
            *_common(mode, played),
        ]
    return measures


def driver(quick: bool, progress: Progress, rounds: int | None = None) -> list[Measure]:
    """Freeze whole drivers; a second one starts with the same journal, and in half of the rounds with another one."""
    rng = np.random.default_rng(0)

    def play(mode: Mode, number: int) -> Round:
        freeze_s, wake_s = float(rng.uniform(*FREEZE_S)), float(rng.uniform(0.0, WAKE_S))
        if quick and not rounds:
            return freeze_driver(mode, QUICK_FREEZE_S, same_journal=True)
        if number % 3 == 2:
            return freeze_driver(mode, FREEZE_S[1], same_journal=number % 2 == 0, wake_s=wake_s)
        return freeze_driver(mode, freeze_s, same_journal=number % 2 == 0)

    measures = []
    for mode in MODES:
        played = _play(mode, rounds or (1 if quick else ROUNDS), play, "driver frozen", progress)
        waits_s = [each.take_over_s for each in played if each.take_over_s is not None]
        worst = f"median of {len(waits_s)}, the worst {max(waits_s, default=float('nan')):.1f}; lease {LEASE_S:g} s"
        value = median(waits_s) if waits_s else float("nan")
        woken = sum(each.woken_commits for each in played)
        measures += [
            Measure(BENCH, f"take_over_s_{mode}", value, "s", "", "lower", worst),
            Measure(BENCH, f"woken_commits_{mode}", woken, "", "<= 0", "lower", "by a run after its take-over"),
            *_common(mode, played),
        ]
    return measures


def _play(mode: Mode, rounds: int, play: Callable[[Mode, int], Round], what: str, progress: Progress) -> list[Round]:
    played = []
    for number in range(rounds):
        progress(f"{mode}, {what}: round {number + 1} of {rounds}")
        played.append(play(mode, number))
        progress(f"{mode}, {what}: round {number + 1} of {rounds}: {played[-1].text}")
    return played


def _common(mode: Mode, played: Sequence[Round]) -> list[Measure]:
    """Return the counts that both parts have; they are added up."""
    late, twice = sum(each.late for each in played), sum(each.committed_twice for each in played)
    wrong = sum(each.keys_wrong for each in played)
    return [
        Measure(BENCH, f"rounds_{mode}", len(played), "", "", "higher", "of the selected parts"),
        Measure(BENCH, f"late_take_overs_{mode}", late, "", "<= 0", "lower", f"after more than {LATE_S:g} s"),
        Measure(BENCH, f"committed_twice_{mode}", twice, "", "<= 0", "lower", "batches that two runs committed"),
        Measure(BENCH, f"keys_wrong_{mode}", wrong, "", "<= 0", "lower", "against what was sent"),
    ]
