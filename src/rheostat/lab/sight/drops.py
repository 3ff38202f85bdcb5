"""A load of files: four times a second a file with the records of that time appears in a folder."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from rheostat.engine.testbed.schedule import Schedule
from rheostat.lab.sight.place import Place, note

DROPS = 4
"""Files per second."""


class FileDrops:
    """Drops files from a thread of its own: the seconds of a schedule from `first_s` up to `last_s`."""

    def __init__(self, place: Place, schedule: Schedule, value: str, first_s: int, last_s: int) -> None:
        self._place, self._schedule, self._value = place, schedule, value
        self._drops = range(first_s * DROPS, last_s * DROPS)
        self._stopped = threading.Event()
        self.start_s = time.time() - first_s
        """Wall-clock time of the schedule's second 0."""
        self._thread = threading.Thread(target=self._drop, name="rheostat-file-drops", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait until the last file is there."""
        self._thread.join()

    def close(self) -> None:
        """Stop dropping files."""
        self._stopped.set()
        self._thread.join()

    def _drop(self) -> None:
        for drop in self._drops:
            if self._stopped.wait(max(0.0, self.start_s + (drop + 1) / DROPS - time.time())):
                return
            first, end = due(self._schedule, drop), due(self._schedule, drop + 1)
            if end > first:
                self._write(drop, first, end)
                note(self._place.arrived, end)

    def _write(self, drop: int, first: int, end: int) -> None:
        at_ms = round((self.start_s + drop / DROPS) * 1000)
        lines = [self._value % {"number": number, "at_ms": at_ms} for number in range(first, end)]
        # Spark leaves hidden files out, so it never reads half of one.
        draft: Path = self._place.drops / f".{drop:06d}.json"
        draft.write_text("\n".join(lines) + "\n")
        draft.rename(self._place.drops / f"{drop:06d}.json")


def due(schedule: Schedule, drops: int) -> int:
    """Return the records in the first files of a schedule."""
    second, part = divmod(drops, DROPS)
    before = schedule.due(second)
    return before + (schedule.due(second + 1) - before) * part // DROPS
