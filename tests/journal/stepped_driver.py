"""A driver whose wall clock is set: `stepped_driver.py URL SHIFT_S...`. Not a test.

With every shift it tries to take the job `living`, which another process holds, and takes a job of its own for a
moment. It prints what became of both. Its wall clock is replaced before anything of Rheostat is imported.
"""

from __future__ import annotations

import sys
import time

TTL_S = 0.05
_time, _shift_s = time.time, 0.0
time.time = lambda: _time() + _shift_s


def main() -> None:
    """Print `shift living dead` for every shift; the leases of the dead jobs are not released."""
    from rheostat.errors import LeaseRefused
    from rheostat.journal import open_journal

    global _shift_s
    url, *shifts = sys.argv[1:]
    journal = open_journal(url)
    if url == ":memory:":
        journal.acquire("living", "holder", 60.0)
    for shift in shifts:
        _shift_s = float(shift)
        try:
            journal.acquire("living", f"driver {shift}", 60.0)
        except LeaseRefused:
            living = "refused"
        else:
            living = "granted"
        journal.acquire(f"dead {shift}", "driver", TTL_S)
        _shift_s = 0.0
        time.sleep(2 * TTL_S)
        try:
            journal.acquire(f"dead {shift}", "survivor", TTL_S)
        except LeaseRefused:
            dead = "refused"
        else:
            dead = "granted"
        print(shift, living, dead, flush=True)


if __name__ == "__main__":
    main()
