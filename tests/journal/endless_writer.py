"""A controller that writes batches until it is killed: `endless_writer.py URL WALL_S [LAST]`. Not a test.

It prints its token, then the number of every batch that the journal has acknowledged. With LAST it kills itself inside
that batch, after the writes and before the commit.
"""

from __future__ import annotations

import os
import signal
import sys
from itertools import count

from sqlalchemy import Engine, event

from rheostat.job.observation import EdgeReading, Observation, OperatorReading
from rheostat.journal.sql import SqlJournal

BATCH = 5
TTL_S = 60.0


def batch(step: int) -> list[Observation]:
    """Return records of several kilobytes each, so that a batch touches many pages of the file."""
    operators = tuple(OperatorReading(f"operator {i}", i + 1, step / 7, 0.5, step / 3) for i in range(20))
    edges = tuple(EdgeReading(f"operator {i}", f"operator {i + 1}", step / 7) for i in range(19))
    return [
        Observation(step, step, step, None, None, operators=operators, edges=edges, uptime_s=i) for i in range(BATCH)
    ]


def main() -> None:
    """Write and print without end."""
    url, wall_s, last = sys.argv[1], float(sys.argv[2]), int([*sys.argv, "0"][3])
    journal = SqlJournal(url, wall=lambda: wall_s)
    lease = journal.acquire("job", "doomed", TTL_S)
    print(lease.token, flush=True)
    for step in count(1):
        if step == last:
            event.listen(Engine, "commit", lambda _: os.kill(os.getpid(), signal.SIGKILL))
        print(journal.append(lease, step, batch(step)), flush=True)


if __name__ == "__main__":
    main()
