"""The work of the job on its records: a wait of known length for each, of which every Python worker keeps account.

A worker appends the number of every record and the moment at which it was done to a file of its own, per Arrow batch:
the records of a batch are done one after another while it waits.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

DONE = np.dtype([("done_s", "f8"), ("number", "i8")])
"""A record of a worker's file."""
SUFFIX = ".done"
MOST_AHEAD_S = 1.0
"""Longest oversleep that later waits make up for, in seconds."""


class Worker:
    """One Python process that works on records at a known pace."""

    def __init__(
        self,
        file: Path,
        record_s: float,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._file, self._record_s = file, record_s
        self._now, self._monotonic, self._sleep = now, monotonic, sleep
        self._owed_s = 0.0

    def work(self, numbers: NDArray[np.int64]) -> None:
        """Wait for the time of these records, less what earlier waits were too long, and note them as done."""
        began_s, first_s = self._monotonic(), self._now()
        self._owed_s = max(-MOST_AHEAD_S, self._owed_s) + len(numbers) * self._record_s
        if self._owed_s > 0:
            self._sleep(self._owed_s)
        lines = np.empty(len(numbers), DONE)
        lines["done_s"], lines["number"] = np.linspace(first_s, self._now(), len(numbers) + 1)[1:], numbers
        with self._file.open("ab") as account:
            account.write(lines.tobytes())
        self._owed_s -= self._monotonic() - began_s


def read_done(folder: Path) -> NDArray[Any]:
    """Return the accounts of all workers; an entry that a killed worker has not finished is left out."""
    parts = [file.read_bytes() for file in sorted(folder.glob(f"*{SUFFIX}"))]
    whole = [part[: len(part) // DONE.itemsize * DONE.itemsize] for part in parts]
    return np.frombuffer(b"".join(whole), DONE)


_workers: dict[str, Worker] = {}
"""File -> the worker of this process, which runs one task after another."""


def worker(folder: str, record_s: float) -> Worker:
    """Return the worker of this process."""
    file = Path(folder) / f"{os.getpid()}{SUFFIX}"
    return _workers.setdefault(str(file), Worker(file, record_s))
