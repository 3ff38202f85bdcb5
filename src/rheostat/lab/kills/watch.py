"""Watches a checkpoint from outside, and kills its driver at a moment of the repartition or of its undoing."""

from __future__ import annotations

import time
from collections.abc import Callable

from rheostat.errors import EngineError
from rheostat.lab.experiment.processes import Child, await_true
from rheostat.lab.kills.evidence import Left, Stage, count_left, has_note, read_left
from rheostat.lab.kills.job import Place
from rheostat.lab.kills.moment import Moment

POLL_S = 0.001
"""Seconds between two looks at a checkpoint."""
START_S = 240.0
"""Seconds within which a driver must have come to the repartition, or to its undoing."""
MOVE_S = 120.0
"""Seconds within which a repartition must have ended."""
DEAD_S = 0.3
"""Seconds after a kill until the files are read: the JVM ends a moment after the signal."""


def measure_move(place: Place, driver: Child) -> float:
    """Return the seconds of an undisturbed repartition, from its note to the end of the note."""
    _await_of(driver, place, lambda: has_note(place.checkpoint))
    begun_s = time.monotonic()
    if not await_true(lambda: not has_note(place.checkpoint), MOVE_S, POLL_S):
        raise EngineError(f"{place.format}: a repartition has not ended after {MOVE_S:g} s")
    duration_s = time.monotonic() - begun_s
    driver.kill()
    return duration_s


def kill_mover(place: Place, driver: Child, moment: Moment, usual_s: float) -> Left:
    """Kill a driver over its repartition, which usually takes `usual_s`; return what it has left."""
    _await_of(driver, place, lambda: has_note(place.checkpoint))
    if moment.stage is None:
        time.sleep(moment.share * usual_s)
    else:
        stage, files = moment.stage, moment.share * place.format.new_partitions
        await_true(lambda: _is_at(read_left(place.checkpoint), stage, files), MOVE_S, POLL_S)
    return _kill(place, driver)


def kill_undoer(place: Place, driver: Child, before: Left, share: float) -> Left:
    """Kill a driver when it has deleted a share of what was left before; return what is left now."""
    goal = len(before.added) - max(1, round(share * len(before.added)))
    _await_of(driver, place, lambda: count_left(place.checkpoint, before.added) <= goal)
    return _kill(place, driver)


def _is_at(left: Left, stage: Stage, files: float) -> bool:
    """Whether a repartition has come to a stage, and written this much state, or is past it."""
    order = list(Stage)
    past = order.index(left.stage) - order.index(stage)
    return past > 0 or (past == 0 and len(left.state) >= files)


def _await_of(driver: Child, place: Place, condition: Callable[[], bool]) -> None:
    """Wait for something that a driver does."""
    if await_true(lambda: condition() or driver.exitcode is not None, START_S, POLL_S) and driver.exitcode is None:
        return
    error = place.folder / "error"
    reason = error.read_text() if error.exists() else f"exit code {driver.exitcode}"
    driver.kill()
    raise EngineError(f"{place.format}: the driver did not come to the moment of its kill: {reason}")


def _kill(place: Place, driver: Child) -> Left:
    driver.kill()
    time.sleep(DEAD_S)
    return read_left(place.checkpoint)
