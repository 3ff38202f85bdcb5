"""What a shrink in the middle of a batch costs, with executors killed and with executors decommissioned.

Every batch has a stage that writes shuffle data and a long one that reads it. The shrink is asked for when the second
one has just begun. It lasts longer than a removal waits for a moment without jobs, so executors are removed in its
middle: their running tasks, and the shuffle data on their disks, are lost or moved.
"""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from rheostat.engine.spark.executors.pool import BOUNDARY_S
from rheostat.engine.spark.session.settings import EMBEDDED_NAME, SHUFFLE_PARTITIONS
from rheostat.lab.bench.measure import Measure
from rheostat.lab.clusters.driver import Place, start_query, write_whole
from rheostat.lab.clusters.visit import Visitor, count_errors
from rheostat.lab.experiment.processes import executors_below
from rheostat.lab.experiment.trial import Progress

WAYS = {"killed": {}, "decommissioned": {"spark.decommission.enabled": "true"}}
"""Name of a way to shrink -> its setting; `rheostat.session` adds those that it needs."""
SMALL, LARGE = 1, 3
TASKS = 24
"""Tasks of the second stage; no other stage has this number."""
COUNT_MS = 800
"""Milliseconds per counted key: 40 s of slots per batch, 14 s with the large size, more than twice `BOUNDARY_S`."""
EARLY = 3
"""Tasks of the second stage that may have ended when the shrink is asked for."""


def shrink(quick: bool, progress: Progress) -> list[Measure]:
    """Shrink a stateful query again and again in the middle of its batches, both ways."""
    times = 2 if quick else 8
    return [measure for way in WAYS for measure in _shrink(way, times, progress)]


def _shrink(way: str, times: int, progress: Progress) -> list[Measure]:
    with TemporaryDirectory(prefix="rheostat-shrink-", ignore_cleanup_errors=True) as folder:
        conf = {**WAYS[way], SHUFFLE_PARTITIONS: str(TASKS)}
        start = partial(start_query, count_ms=COUNT_MS)
        place = Place(Path(folder), EMBEDDED_NAME, conf, {}, None, LARGE, counts_tasks=True, start=start)
        (place.folder / "wanted").write_text(str(LARGE))
        visitor = Visitor(place)
        gone_s, batch_s = [], []
        with visitor.driving():
            visitor.start(1)
            before = visitor.status.get("repeated_tasks") or 0
            for number in range(times):
                progress(f"{way}: shrink {number + 1} of {times}")
                write_whole(place.folder / "wanted", str(LARGE))
                visitor.wait(lambda: visitor.status.get("executors") == LARGE, f"not {LARGE} executors")
                visitor.wait(lambda: _has_begun(visitor), "no second stage begins")
                began_s, batch = time.monotonic(), visitor.batch
                write_whole(place.folder / "wanted", str(SMALL))
                visitor.wait(lambda: len(executors_below(os.getpid())) == SMALL, "executors stay")
                gone_s.append(time.monotonic() - began_s)
                if _has_ended(visitor, batch + 1):
                    progress(f"{way}: the batch ended before its executors were gone")
                visitor.wait(partial(_has_ended, visitor, batch + 1), "no batch ends")
                batch_s.append(time.monotonic() - began_s)
            again = (visitor.status.get("repeated_tasks") or 0) - before
            visitor.stop()
        lost, repeated = count_errors(place.folder / "output", visitor.batch)
    note = f"{times} shrinks {LARGE} -> {SMALL} inside a batch; {lost} rows lost, {repeated} repeated"
    until = f"from the request until the processes are gone, with up to {BOUNDARY_S:g} s of waiting for a gap; {note}"
    return [
        Measure("resize", f"shrink_s_{way}", median(gone_s), "s", "", "lower", until),
        Measure("resize", f"batch_s_{way}", median(batch_s), "s", "", "lower", f"from the request to its end; {note}"),
        Measure("resize", f"repeated_tasks_{way}", again / times, "tasks", "", "lower", f"per shrink; {note}"),
        Measure("resize", "rows_wrong", float(lost + repeated), "rows", "<= 0", "lower", "over both ways"),
    ]


def _has_ended(visitor: Visitor, batch: int) -> bool:
    return visitor.batch >= batch


def _has_begun(visitor: Visitor) -> bool:
    """Whether the second stage of a batch has just begun, at the large size."""
    tasks, ended = visitor.status.get("stage_tasks") or (0, 0)
    return bool(tasks == TASKS and ended <= EARLY and visitor.status.get("executors") == LARGE)
