"""The rows that scans have read, from Spark's texts about SQL executions. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

COUNT = re.compile(r"Some\((\d[\d,]*)\)")


@dataclass(frozen=True, slots=True)
class ScanCounters:
    """The counters of one scan of a stream."""

    rows: int
    """Counts the rows that it has read."""
    python: tuple[int, int] | None = None
    """Count the rows into and out of the last Python operator in its stage: buffers in front of it hold many rows."""

    @property
    def all(self) -> tuple[int, ...]:
        """All counters."""
        return (self.rows, *(self.python or ()))


def count_rows(scans: Sequence[ScanCounters], counts: Mapping[int, int]) -> tuple[float | None, float | None]:
    """Return the rows that are done, and the rows that all scans have read.

    Rows that pass Python are done when it has given them back. Neither is known before the first report; the rows that
    were read, not before every scan has reported.
    """
    known = [scan for scan in scans if scan.rows in counts]
    done = sum(_rows_done(scan, counts) for scan in known) if known else None
    return done, float(sum(counts[scan.rows] for scan in known)) if known and len(known) == len(scans) else None


def _rows_done(scan: ScanCounters, counts: Mapping[int, int]) -> float:
    entered, left = (counts.get(counter, 0) for counter in scan.python) if scan.python else (0, 0)
    return counts[scan.rows] * (min(1.0, left / entered) if entered else 1.0)


def batch_executions(rows: Iterable[Mapping[str, Any]], description: str) -> list[int]:
    """Return the SQL executions of a batch, oldest first: those with its description, and those inside them.

    Inside `foreachBatch` the user may have set another job description.
    """
    roots: set[int] = set()
    numbers = []
    for row in sorted(rows, key=lambda row: int(row["executionId"])):
        if row["description"] == description:
            roots.add(row["executionId"])
        if row["executionId"] in roots or row["rootExecutionId"] in roots:
            numbers.append(int(row["executionId"]))
    return numbers


def parse_count(text: str) -> int | None:
    """Read a count of SQL metrics, such as `Some(40,000)`; return None for `None` and for anything but a count."""
    match = COUNT.fullmatch(text)
    return int(match[1].replace(",", "")) if match else None
