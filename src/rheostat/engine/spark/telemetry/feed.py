"""Queues Spark's progress events without delaying Spark."""

from __future__ import annotations

from collections import deque
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryListener

MOST_EVENTS = 4096
"""Events to queue between two drains; beyond that the oldest are dropped."""


class Feed(StreamingQueryListener):
    """Queues every progress event until `drain`. A callback only appends: the reader's thread parses."""

    def __init__(self) -> None:
        super().__init__()
        self._events: deque[str] = deque(maxlen=MOST_EVENTS)
        self.ended: dict[str, str] = {}
        """Run id of a terminated query -> its exception, "" if it was stopped."""

    def drain(self) -> list[str]:
        """Return the queued events as JSON, oldest first, and empty the queue."""
        events = []
        while self._events:
            events.append(self._events.popleft())
        return events

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Do nothing: the scaler gets its queries from the user."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Queue the event."""
        self._events.append(event.progress.json)

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Do nothing: the query's status shows that it is idle."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Store the exception of the query."""
        self.ended[str(event.runId)] = str(event.exception or "")
