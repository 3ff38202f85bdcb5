"""Whose clock ends a lease: the database's, or the host's that is never set; never a wall clock that somebody sets."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rheostat.clock import HostClock, WallClock
from rheostat.errors import LeaseRefused
from rheostat.journal import open_journal
from rheostat.journal.sql import SqlJournal
from rheostat.testing.journal import intent_step

DRIVER = Path(__file__).with_name("stepped_driver.py")
SHIFTS = ("-3600", "-25", "25", "3600")


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
def test_a_wall_clock_that_is_wrong_neither_ends_nor_prolongs_a_lease(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    urls: dict[str, Callable[[], str]] = {
        "memory": lambda: ":memory:",
        "sqlite": lambda: str(tmp_path / "journal.db"),
        "postgres": lambda: str(request.getfixturevalue("postgres_url")),
    }
    url = urls[kind]()
    journal = open_journal(url)
    lease = journal.acquire("living", "holder", 60.0)
    child = subprocess.run([sys.executable, DRIVER, url, *SHIFTS], stdout=subprocess.PIPE, text=True, check=True)
    assert child.stdout.splitlines() == [f"{shift} refused granted" for shift in SHIFTS]
    journal.append(lease, 0, [intent_step("still mine")])
    journal.close()


@dataclass
class Host:
    """The clocks of a host: `wall_s` can be set, `up_s` only runs."""

    wall_s: float = 1_800_000_000.0
    up_s: float = 500.0
    boot: str | None = "boot 1"

    def clock(self) -> HostClock:
        return HostClock(lambda: self.wall_s, lambda: self.up_s, self.boot)

    def pass_time(self, seconds: float) -> None:
        self.wall_s += seconds
        self.up_s += seconds


def open_on(path: Path, host: Host) -> SqlJournal:
    return SqlJournal(path, host=host.clock())


def held(journal: SqlJournal) -> str:
    """Return the refusal of a second controller; '' where it gets the lease."""
    try:
        journal.release(journal.acquire("job", "second", 30.0))
    except LeaseRefused as refusal:
        return str(refusal)
    return ""


@pytest.mark.parametrize("step_s", [-3600.0, 3600.0])
def test_after_the_hosts_clock_was_set_the_time_since_boot_decides(tmp_path: Path, step_s: float) -> None:
    host = Host()
    journal = open_on(tmp_path / "j.db", host)
    lease = journal.acquire("job", "first", 30.0)
    host.wall_s += step_s
    host.pass_time(20.0)
    assert "for another 10.0 s" in held(journal)
    journal.append(lease, 0, [])
    host.wall_s -= 2 * step_s
    host.pass_time(29.0)
    assert "for another 1.0 s" in held(journal)
    host.pass_time(1.0)
    assert held(journal) == ""
    journal.close()


@pytest.mark.parametrize("boots", [("boot 1", "boot 2"), (None, None), ("boot 1", None), (None, "boot 1")])
def test_after_a_restart_of_the_host_the_wall_clock_decides(
    tmp_path: Path, boots: tuple[str | None, str | None]
) -> None:
    before, after = Host(boot=boots[0]), Host(boot=boots[1], up_s=3.0)
    journal = open_on(tmp_path / "j.db", before)
    journal.acquire("job", "first", 30.0)
    journal.close()
    journal = open_on(tmp_path / "j.db", after)
    after.pass_time(29.0)
    assert "for another 1.0 s" in held(journal)
    after.pass_time(1.0)
    assert held(journal) == ""
    journal.close()


def test_an_older_rheostat_that_takes_the_lease_without_the_boot_is_not_overtaken(tmp_path: Path) -> None:
    host = Host()
    journal = open_on(tmp_path / "j.db", host)
    journal.release(journal.acquire("job", "first", 30.0))
    host.pass_time(1_000.0)
    with closing(sqlite3.connect(tmp_path / "j.db")) as old, old:  # the statement of schema version 1
        old.execute("UPDATE lease SET holder = 'old', token = 2, ttl_s = 30, expires_s = ?", (host.wall_s + 30.0,))
    old.close()
    host.pass_time(29.0)
    assert "held by 'old' for another 1.0 s" in held(journal)
    host.pass_time(1.0)
    assert held(journal) == ""
    journal.close()


def test_this_host_is_recognized_again() -> None:
    first, second = HostClock().now(), HostClock().now()
    assert first.boot == second.boot
    assert first.up_s <= second.up_s
    if sys.platform == "linux":
        assert first.boot
        assert second.up_s == pytest.approx(float(Path("/proc/uptime").read_text().split()[0]), abs=10.0)


def test_waits_count_the_time_that_a_machine_was_suspended(monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(time, "CLOCK_BOOTTIME"):
        pytest.skip("this system has no CLOCK_BOOTTIME")
    real = time.clock_gettime
    monkeypatch.setattr(time, "clock_gettime", lambda clock: real(clock) + 7_200.0 * (clock == time.CLOCK_BOOTTIME))
    assert WallClock().monotonic() == pytest.approx(real(time.CLOCK_BOOTTIME) + 7_200.0, abs=60.0)


# PostgreSQL: its clock is read after the row is locked


def until_someone_waits(connection: psycopg.Connection[Any]) -> None:
    """Return when another connection waits for a lock."""
    while not connection.execute("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'").fetchall():
        time.sleep(0.01)


def test_a_lease_counts_from_the_end_of_the_wait_for_its_row(postgres_url: str) -> None:
    journal = SqlJournal(postgres_url)
    lease = journal.acquire("job", "first", 30.0)
    with psycopg.connect(postgres_url) as other, ThreadPoolExecutor(1) as pool:
        other.execute("SELECT 1 FROM lease FOR UPDATE")
        write = pool.submit(journal.append, lease, 0, [intent_step("x")])
        until_someone_waits(other)
        row = other.execute("SELECT extract(epoch FROM clock_timestamp())").fetchone()
        other.rollback()
        write.result()
        assert row is not None
        (expires_s,) = other.execute("SELECT expires_s FROM lease").fetchone() or ()
    assert expires_s >= float(row[0]) + 30.0
    journal.close()


def test_the_wait_for_a_row_counts_as_time_of_its_lease(postgres_url: str) -> None:
    """It expires while another controller waits for its row: that one gets it."""
    first, second = SqlJournal(postgres_url), SqlJournal(postgres_url)
    first.acquire("job", "first", 0.3)
    with psycopg.connect(postgres_url) as other, ThreadPoolExecutor(1) as pool:
        other.execute("SELECT 1 FROM lease FOR UPDATE")
        take = pool.submit(second.acquire, "job", "second", 30.0)
        until_someone_waits(other)
        other.execute("SELECT pg_sleep(0.4)")
        other.rollback()
        assert take.result().token == 2
    first.close()
    second.close()


# A lock that is not given back in time is a lease that is held


def test_a_row_that_stays_locked_is_a_held_lease(postgres_url: str) -> None:
    journal = SqlJournal(f"{postgres_url}&options=-c%20lock_timeout%3D200ms")
    journal.acquire("job", "first", 0.001)
    with psycopg.connect(postgres_url) as other:
        other.execute("SELECT 1 FROM lease FOR UPDATE")
        with pytest.raises(LeaseRefused, match="'job' is held: another process has been writing its lease"):
            journal.acquire("job", "second", 30.0)
    assert journal.acquire("job", "second", 30.0).token == 2
    journal.close()


def test_a_sqlite_file_that_stays_locked_is_a_held_lease(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rheostat.journal.database.BUSY_S", 0)
    journal = SqlJournal(tmp_path / "j.db")
    other = sqlite3.connect(tmp_path / "j.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LeaseRefused, match="'job' is held: another process has been writing"):
        journal.acquire("job", "first", 30.0)
    other.close()
    assert journal.acquire("job", "first", 30.0).token == 1
    journal.close()
