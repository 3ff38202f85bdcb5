"""Seeded storms on the simulator: whether the controller's invariants hold, whatever goes wrong."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rheostat.engine.simulated import Fleet
from rheostat.lab.bench.measure import Measure
from rheostat.lab.chaos.driver import INTERVAL_S
from rheostat.lab.chaos.faults import Flapping
from rheostat.lab.chaos.storm import Storm
from rheostat.lab.experiment.trial import Progress
from rheostat.lab.jobs import job

if TYPE_CHECKING:
    from collections.abc import Iterator

BENCH = "chaos"
DAY_S = 86_400
JOBS: Mapping[str, tuple[float, tuple[int, ...]]] = {
    "wordcount": (10.0, (0, 4)),
    "q3": (10.0, (2, 5, 6)),
    "spark-ysb": (20.0, (1, 7)),
    "realtime-wordcount": (10.0, (3,)),
}
"""Simulated job -> the highest level of its load, and which seeds modulo 8 run it: fluid flow with one and with two
sources, micro-batches, and, as its simulation takes longest, a little of real time."""
TOGETHER = 40
"""Most storms of one job that are simulated at a time."""
PARTS = 10
"""Progress messages per group."""


def chaos(
    quick: bool,
    progress: Progress,
    seeds: int | None = None,
    days: float | None = None,
    seed: int | None = None,
) -> list[Measure]:
    """Run storms and count what was violated; `seed` runs one of them alone."""
    days = days or (0.1 if quick else 1.0)
    chosen = range(seeds or (12 if quick else 100)) if seed is None else [seed]
    began = time.perf_counter()
    storms = run_storms(chosen, days, progress)
    seconds = time.perf_counter() - began
    return measures(storms, days, seconds)


def run_storms(seeds: Sequence[int], days: float, progress: Progress) -> list[Storm]:
    """Run one storm per seed, those of one job side by side; a storm does not depend on the others."""
    storms: list[Storm] = []
    with TemporaryDirectory(prefix="rheostat-chaos-") as folder, _quiet():
        for name, (_, places) in JOBS.items():
            same = [seed for seed in seeds if seed % 8 in places]
            for first in range(0, len(same), TOGETHER):
                storms += _run_group(name, same[first : first + TOGETHER], days, progress, Path(folder))
    return storms


def _run_group(name: str, seeds: Sequence[int], days: float, progress: Progress, folder: Path) -> list[Storm]:
    fleet = Fleet(job(name), [Flapping(seed, JOBS[name][0]) for seed in seeds], seeds)
    storms = [Storm(seed, fleet, replica, folder) for replica, seed in enumerate(seeds)]
    minutes = round(days * DAY_S / INTERVAL_S)
    for minute in range(minutes):
        fleet.advance(INTERVAL_S)
        for storm in storms:
            storm.minute()
        if minute % max(1, minutes // PARTS) == 0:
            found = [violation for storm in storms for violation in storm.watch.violations]
            progress(f"{name}, {len(seeds)} seeds: {minute / minutes:.0%}, {len(found)} violations")
    for storm in storms:
        storm.finish()
        for violation in storm.watch.violations:
            progress(str(violation))
    return storms


def measures(storms: Sequence[Storm], days: float, seconds: float) -> list[Measure]:
    """Return what the storms came to."""
    faults: Counter[str] = Counter()
    for storm in storms:
        faults += storm.faults
    watches = [storm.watch for storm in storms]
    violations = [violation for watch in watches for violation in watch.violations]
    first = f"first: {violations[0]}; rheostat bench chaos --seed {violations[0].seed} repeats it" if violations else ""
    steps, starts = sum(watch.steps for watch in watches), faults.pop("starts")
    injected = ", ".join(f"{what} {count:,}" for what, count in sorted(faults.items()))
    replayed, skipped = sum(watch.replayed for watch in watches), sum(watch.skipped for watch in watches)
    checks = sum(watch.memory_checks for watch in watches)
    return [
        Measure(BENCH, "seeds", len(storms), "", "", "higher"),
        Measure(BENCH, "days", days, "d", "", "higher", "simulated, per seed"),
        Measure(BENCH, "violations", len(violations), "", "<= 0", "lower", first),
        Measure(BENCH, "steps", steps, "", "", "higher", f"{sum(w.decisions for w in watches):,} decided by a policy"),
        Measure(BENCH, "changes", sum(watch.changes for watch in watches), "", "", "higher"),
        Measure(
            BENCH, "turns_per_hour", max(watch.most_turns for watch in watches), "", "", "lower", "of an operator, most"
        ),
        Measure(BENCH, "starts", starts, "", "", "higher", "restarts and take-overs"),
        Measure(BENCH, "faults", sum(faults.values()), "", "", "higher", injected),
        Measure(BENCH, "replayed_steps", replayed, "", "", "higher", f"{skipped:,} skipped behind damaged records"),
        Measure(BENCH, "memory_checks", checks, "", "", "higher", "memory compared with the fold of the journal"),
        Measure(BENCH, "seconds", seconds, "s", "", "lower", f"{seconds / (len(storms) * days):.1f} s per day"),
    ]


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the loop's warnings: a storm has thousands."""
    logger = logging.getLogger("rheostat")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)
