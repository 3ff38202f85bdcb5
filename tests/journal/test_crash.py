"""A journal survives a killed writer, a full disk, a lost connection."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import event
from sqlalchemy.pool import Pool

from rheostat.errors import JournalError, LeaseRefused
from rheostat.job.record import Record, Snapshot
from rheostat.journal.sql import SqlJournal
from rheostat.testing.journal import Wall, intent_step

WRITER = Path(__file__).with_name("endless_writer.py")
BATCH, TTL_S = 5, 60.0  # as in the writer


def killed_writer(url: str, wall_s: float, after_batches: int) -> tuple[int, list[int]]:
    """Start a writer and kill it after some batches; return its token and the batches that it acknowledged."""
    child = subprocess.Popen([sys.executable, WRITER, url, str(wall_s)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    lines = [child.stdout.readline() for _ in range(after_batches + 1)]
    child.send_signal(signal.SIGKILL)
    rest, _ = child.communicate()
    assert child.returncode == -signal.SIGKILL
    token, *numbers = (int(line) for line in [*lines, *rest.splitlines()])
    return token, numbers


def batches_after(journal: SqlJournal, number: int) -> list[int]:
    """Return the last number of every batch after a number; fail if a batch is incomplete or out of order."""
    numbers = []
    for expected, (step, group) in enumerate(groupby(journal.read("job", after=number), lambda e: e.step), start=1):
        entries = list(group)
        assert step == expected
        assert [getattr(e.record, "uptime_s", None) for e in entries] == list(range(BATCH))
        numbers.append(entries[-1].number)
    return numbers


def check_survival(url: str, kills: tuple[int, ...]) -> None:
    start = last = 0
    for token, after_batches in enumerate(kills, start=1):
        wall = Wall(1_000.0 * token)
        granted, acknowledged = killed_writer(url, wall.now_s, after_batches)
        assert granted == token  # it took over from the dead writer before it
        assert len(acknowledged) >= after_batches

        survivor = SqlJournal(url, wall=wall)
        start = last
        written = batches_after(survivor, start)
        # It may have died between the commit and its print: one more batch, but never a part of one.
        assert written[: len(acknowledged)] == acknowledged
        assert len(written) <= len(acknowledged) + 1

        with pytest.raises(LeaseRefused, match="held by 'doomed'"):
            survivor.acquire("job", "survivor", TTL_S)
        last = written[-1]
        survivor.close()

    wall.now_s += TTL_S
    survivor = SqlJournal(url, wall=wall)
    lease = survivor.acquire("job", "survivor", TTL_S)
    assert lease.token == len(kills) + 1
    # Read again: the server may still have been writing the last batch. With the new lease, that is over.
    written = batches_after(survivor, start)
    assert len(acknowledged) <= len(written) <= len(acknowledged) + 1
    last = written[-1]
    assert survivor.append(lease, 1, [intent_step("goes on")]) > last
    survivor.close()


def test_sqlite_keeps_every_acknowledged_batch_whole_through_kills(tmp_path: Path) -> None:
    check_survival(str(tmp_path / "journal.db"), kills=(1, 2, 3, 5, 8, 21, 55, 144))


def test_postgres_keeps_every_acknowledged_batch_whole_through_a_kill(postgres_url: str) -> None:
    check_survival(postgres_url, kills=(13,))


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_batch_that_was_not_committed_leaves_nothing(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    url = str(tmp_path / "journal.db") if kind == "sqlite" else request.getfixturevalue("postgres_url")
    child = subprocess.run([sys.executable, WRITER, url, "0", "3"], stdout=subprocess.PIPE, text=True, check=False)
    assert child.returncode == -signal.SIGKILL
    assert len(child.stdout.splitlines()) == 3  # the token and two batches
    journal = SqlJournal(url, wall=Wall(TTL_S))
    lease = journal.acquire("job", "survivor", TTL_S)
    assert len(batches_after(journal, 0)) == 2
    journal.append(lease, 3, [intent_step("goes on")])
    journal.close()


class Disk:
    """A disk with a limited number of 4 kB pages, for every SQLite connection opened meanwhile."""

    pages = 1_000_000

    def limit(self, connection: object, *_: object) -> None:
        connection.execute(f"PRAGMA max_page_count = {self.pages}")  # type: ignore[attr-defined]


@pytest.fixture
def disk() -> Iterator[Disk]:
    disk = Disk()
    event.listen(Pool, "checkout", disk.limit)
    yield disk
    event.remove(Pool, "checkout", disk.limit)


def test_a_full_disk_writes_no_part_of_a_batch_and_recovers(tmp_path: Path, disk: Disk) -> None:
    journal = SqlJournal(tmp_path / "journal.db")
    lease = journal.acquire("job", "first", TTL_S)
    journal.append(lease, 1, [intent_step("before")])
    large: list[Record] = [intent_step("small"), Snapshot(1.0, 2, "x" * 400_000, ""), intent_step("small")]

    disk.pages = 20
    for _ in range(2):
        with pytest.raises(JournalError, match="disk is full: make room"):
            journal.append(lease, 2, large)
    assert [e.step for e in journal.read("job")] == [1]

    disk.pages = 1_000_000
    journal.append(lease, 3, large)
    assert [e.step for e in journal.read("job")] == [1, 3, 3, 3]
    journal.close()


def end_connections(server: str, url: str) -> int:
    """Close every connection to a journal's database, like a network failure or a restart; return their number."""
    database = url.partition("?")[0].rpartition("/")[2]
    with psycopg.connect(server, autocommit=True) as connection:
        cut = connection.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = %s", (database,)
        ).fetchall()
    return len(cut)


def test_postgres_reconnects_when_the_connection_was_lost_between_calls(
    postgres_server: str, postgres_url: str
) -> None:
    journal = SqlJournal(postgres_url)
    lease = journal.acquire("job", "first", TTL_S)
    journal.append(lease, 1, [intent_step("before")])
    assert end_connections(postgres_server, postgres_url) == 1
    journal.append(lease, 2, [intent_step("after")])
    assert [e.step for e in journal.read("job")] == [1, 2]
    journal.close()


def test_postgres_writes_nothing_when_the_connection_is_lost_inside_a_batch(
    postgres_server: str, postgres_url: str
) -> None:
    cut = True

    def wall() -> float:
        # The journal reads the clock inside its transaction, after the check of the connection.
        nonlocal cut
        if not cut:
            cut = end_connections(postgres_server, postgres_url) == 1
        return 1_000.0

    journal = SqlJournal(postgres_url, wall=wall)
    lease = journal.acquire("job", "first", TTL_S)
    journal.append(lease, 1, [intent_step("before")])
    cut = False
    with pytest.raises(JournalError, match="connection to the database was lost"):
        journal.append(lease, 2, [intent_step("lost"), intent_step("lost")])
    assert [e.step for e in journal.read("job")] == [1]
    journal.append(lease, 3, [intent_step("after")])
    assert [e.step for e in journal.read("job")] == [1, 3]
    journal.close()
