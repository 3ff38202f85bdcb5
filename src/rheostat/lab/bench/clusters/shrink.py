"""What a shrink costs, with executors killed and with executors decommissioned: seconds, and tasks computed again."""

from __future__ import annotations

import os
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from rheostat.engine.spark.session.settings import EMBEDDED_NAME
from rheostat.lab.bench.measure import Measure
from rheostat.lab.clusters.driver import Place, write_whole
from rheostat.lab.clusters.visit import Visitor, count_errors
from rheostat.lab.experiment.processes import executors_below
from rheostat.lab.experiment.trial import Progress

WAYS = {"killed": {}, "decommissioned": {"spark.decommission.enabled": "true"}}
"""Name of a way to shrink -> its setting; `rheostat.session` adds those that it needs."""
SMALL, LARGE = 1, 3


def shrink(quick: bool, progress: Progress) -> list[Measure]:
    """Shrink a stateful query again and again, both ways."""
    times = 2 if quick else 8
    return [measure for way in WAYS for measure in _shrink(way, times, progress)]


def _shrink(way: str, times: int, progress: Progress) -> list[Measure]:
    with TemporaryDirectory(prefix="rheostat-shrink-", ignore_cleanup_errors=True) as folder:
        place = Place(Path(folder), EMBEDDED_NAME, WAYS[way], {}, None, LARGE, counts_tasks=True)
        (place.folder / "wanted").write_text(str(SMALL))
        visitor, took_s = Visitor(place), []
        with visitor.driving():
            visitor.start()
            for number in range(times):
                progress(f"{way}: shrink {number + 1} of {times}")
                visitor.resize(LARGE)
                began_s = time.monotonic()
                write_whole(place.folder / "wanted", str(SMALL))
                visitor.wait(lambda: len(executors_below(os.getpid())) == SMALL, "executors stay")
                took_s.append(time.monotonic() - began_s)
                visitor.pass_batches()
            visitor.pass_batches()
            again = visitor.status.get("repeated_tasks") or 0
            visitor.stop()
        lost, repeated = count_errors(place.folder / "output", visitor.batch)
    note = f"{times} shrinks {LARGE} -> {SMALL}; {lost} rows lost, {repeated} repeated"
    return [
        Measure("resize", f"shrink_s_{way}", median(took_s), "s", "", "lower", f"until the processes are gone; {note}"),
        Measure("resize", f"repeated_tasks_{way}", again / times, "tasks", "", "lower", f"per shrink; {note}"),
        Measure("resize", "rows_wrong", float(lost + repeated), "rows", "<= 0", "lower", "over both ways"),
    ]
