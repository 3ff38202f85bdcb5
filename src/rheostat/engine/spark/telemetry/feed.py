"""Spark's progress reports, collected without ever holding Spark up."""

from __future__ import annotations

from collections import deque
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryListener

MOST_REPORTS = 4096
"""Reports kept between two looks; beyond that the oldest are dropped."""


class Feed(StreamingQueryListener):
    """Keeps every report until it is drained. A callback only appends: parsing happens on the reader's thread."""

    def __init__(self) -> None:
        super().__init__()
        self._reports: deque[str] = deque(maxlen=MOST_REPORTS)
        self.ended: dict[str, str] = {}
        """Run id -> the exception with which a query ended, "" when it was stopped."""

    def drain(self) -> list[str]:
        """Return the reports since the last look, oldest first."""
        found = []
        while self._reports:
            found.append(self._reports.popleft())
        return found

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Do nothing: queries are named when the scaler is attached."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Keep the report."""
        self._reports.append(event.progress.json)

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Do nothing: an idle query is seen by its status."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Remember how it ended."""
        self.ended[str(event.runId)] = str(event.exception or "")
