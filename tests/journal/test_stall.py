"""PostgreSQL stops, dies, or is cut off: every call returns, nothing is written twice, and a take-over succeeds."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
from commit_proxy import Proxy

from rheostat.errors import JournalError
from rheostat.journal import database
from rheostat.journal.sql import SqlJournal
from rheostat.ports import Lease
from rheostat.testing.journal import intent_step

RETURNS_S = 15.0
"""Seconds within which every call of a journal must return."""


@pytest.fixture
def default_waits() -> None:
    """Keep the waits that users have."""


@pytest.fixture(autouse=True)
def short_waits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait in the same order, for a sixth of the time."""
    if "default_waits" in request.fixturenames:
        return
    monkeypatch.setattr(database, "CALL_S", 2.0)
    monkeypatch.setattr(database, "PING_S", 0.5)
    monkeypatch.setattr(database, "LOCK_S", 1)
    monkeypatch.setattr(database, "IDLE_S", 1)


def backend_of(journal: SqlJournal) -> int:
    """Return the process that serves the journal's pooled connection."""
    with journal._connection() as connection:
        return int(connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())


def server_processes(server: str) -> list[int]:
    """Return the postmaster and all its children."""
    with psycopg.connect(server) as connection:
        (folder,) = connection.execute("SHOW data_directory").fetchone() or ("",)
    postmaster = int(Path(folder, "postmaster.pid").read_text().split()[0])
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    return [postmaster, *map(int, children)]


@contextmanager
def stopped(*processes: int) -> Iterator[None]:
    """Stop processes, and let them go on."""
    try:
        for process in processes:
            with suppress(ProcessLookupError):  # it ended meanwhile
                os.kill(process, signal.SIGSTOP)
        yield
    finally:
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)


@contextmanager
def returns() -> Iterator[None]:
    """Fail where the block takes longer than a call may."""
    begun_s = time.monotonic()
    yield
    assert time.monotonic() - begun_s < RETURNS_S


def every_call(journal: SqlJournal, lease: Lease) -> list[Callable[[], object]]:
    return [
        lambda: journal.acquire("job", "second", 1.0),
        lambda: journal.append(lease, 9, [intent_step("lost")]),
        lambda: journal.release(lease),
        lambda: list(journal.read("job")),
        lambda: journal.latest("job", "snapshot"),
        lambda: journal.prune(lease, 0.0),
        lambda: journal.jobs(),
    ]


def take_over(url: str, lease_s: float, begun_s: float) -> None:
    """Take the lease within its time and 15 s from the holder's death, whatever fails in between."""
    survivor = None
    while True:
        try:
            survivor = survivor or SqlJournal(url)
            lease = survivor.acquire("job", "survivor", 30.0)
        except JournalError:
            assert time.monotonic() - begun_s < lease_s + RETURNS_S
            time.sleep(0.05)
        else:
            break
    survivor.append(lease, 1, [intent_step("survivor")])
    survivor.close()


def test_every_call_returns_while_the_server_is_stopped(postgres_server: str, postgres_url: str) -> None:
    journals = [SqlJournal(postgres_url) for _ in range(7)]
    lease = journals[0].acquire("job", "first", 1.0)
    journals[0].append(lease, 0, [intent_step("before")])
    calls = [every_call(journal, lease)[number] for number, journal in enumerate(journals)]

    def unanswered(call: Callable[[], object]) -> None:
        with returns(), pytest.raises(JournalError, match="has not answered"):
            call()

    begun_s = time.monotonic()
    with stopped(*server_processes(postgres_server)), ThreadPoolExecutor(8) as pool:
        list(pool.map(unanswered, [*calls, lambda: SqlJournal(postgres_url)]))
    take_over(postgres_url, 1.0, begun_s)
    assert [e.step for e in journals[0].read("job")] == [0, 1]
    for journal in journals:
        journal.close()


@pytest.mark.parametrize("number", range(7))
def test_every_call_returns_while_its_backend_is_stopped(postgres_url: str, number: int) -> None:
    journal = SqlJournal(postgres_url)
    lease = journal.acquire("job", "first", 30.0)
    call = every_call(journal, lease)[number]
    with stopped(backend_of(journal)), returns():
        # The check of the pooled connection fails, and another one serves the call.
        if number == 0:
            with pytest.raises(JournalError, match="held by 'first'"):
                call()
        else:
            call()
    journal.close()


@pytest.mark.usefixtures("default_waits")
def test_a_backend_that_is_stopped_inside_a_batch_ends_the_call_within_15_s(postgres_url: str) -> None:
    journal = SqlJournal(postgres_url)
    lease = journal.acquire("job", "first", 1.0)
    backend = backend_of(journal)
    begun_s = time.monotonic()

    def batch() -> None:
        with journal._transaction() as connection:
            journal._extend(connection, lease)
            with stopped(backend):
                connection.exec_driver_sql("SELECT 1")

    with returns(), pytest.raises(JournalError, match="has not answered"):
        batch()
    take_over(postgres_url, 1.0, begun_s)
    journal.close()


def test_a_killed_server_ends_the_call_and_its_restart_lets_a_successor_in(postgres_url: str) -> None:
    journal = SqlJournal(postgres_url)
    lease = journal.acquire("job", "first", 1.0)
    journal.append(lease, 0, [intent_step("before")])
    backend = backend_of(journal)
    begun_s = time.monotonic()

    def batch() -> None:
        with journal._transaction() as connection:
            journal._extend(connection, lease)
            os.kill(backend, signal.SIGKILL)  # PostgreSQL then ends all others and recovers
            connection.exec_driver_sql("SELECT pg_sleep(5)")

    with returns(), pytest.raises(JournalError, match="connection to the database was lost"):
        batch()
    take_over(postgres_url, 1.0, begun_s)
    assert [e.step for e in journal.read("job")] == [0, 1]
    journal.close()


@pytest.mark.parametrize(("how", "written"), [("lose", False), ("answer lost", True)])
def test_a_connection_cut_at_commit_leaves_the_batch_whole_or_absent(
    postgres_url: str, how: str, written: bool
) -> None:
    with Proxy(postgres_url) as proxy:
        journal = SqlJournal(proxy.url)
        lease = journal.acquire("job", "first", 1.0)
        begun_s = time.monotonic()
        proxy.at_commit = how
        with returns(), pytest.raises(JournalError, match="written completely or not at all"):
            journal.append(lease, 0, [intent_step("a"), intent_step("b")])
        with returns():
            assert [e.step for e in journal.read("job")] == [0, 0] * written
        take_over(postgres_url, 1.0, begun_s)
        journal.close()


def test_a_batch_whose_commit_is_still_under_way_is_not_read_as_absent(postgres_url: str) -> None:
    """A controller looks again after a write whose outcome is unknown: what it does not see must never come."""
    with Proxy(postgres_url) as proxy:
        journal = SqlJournal(f"{proxy.url}&options=-c%20lock_timeout%3D300ms")
        lease = journal.acquire("job", "first", 30.0)
        proxy.at_commit = "hold"
        with returns(), pytest.raises(JournalError, match="has not answered"):
            journal.append(lease, 0, [intent_step("a"), intent_step("b")])
        with returns(), pytest.raises(JournalError):
            list(journal.read("job"))
        with returns(), pytest.raises(JournalError):
            journal.latest("job", "intent_step")
        proxy.release()
        assert [e.step for e in journal.read("job")] == [0, 0]
        assert journal.append(lease, 1, [intent_step("c")]) == 3
        journal.close()


def test_a_holder_that_hangs_in_a_transaction_is_ended_by_the_server(postgres_url: str) -> None:
    frozen = SqlJournal(postgres_url)
    lease = frozen.acquire("job", "frozen", 0.5)

    def freeze() -> None:
        with frozen._transaction() as connection:
            frozen._extend(connection, lease)
            take_over(postgres_url, 0.5, time.monotonic())
            connection.exec_driver_sql("SELECT 1")

    with pytest.raises(JournalError):
        freeze()
    frozen.close()
