"""The rows that scans have read, from Spark's texts about SQL executions. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

COUNT = re.compile(r"Some\((\d[\d,]*)\)")


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
