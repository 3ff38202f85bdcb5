"""Journals in databases: files, URLs, versions, transactions, and readable errors."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier
from typing import Any, cast

import pytest
from sqlalchemy import Engine, event, text

from rheostat.errors import InvalidValue, JournalError, LeaseRefused
from rheostat.job.decision import Outcome, Verdict
from rheostat.journal import open_journal
from rheostat.journal.memory import MemoryJournal
from rheostat.journal.sql import SqlJournal
from rheostat.testing.journal import Wall, intent_step, snapshot
from rheostat.testing.records import EXAMPLES


@pytest.fixture
def statements() -> Iterator[list[tuple[str, Any]]]:
    """All statements that SQLAlchemy sends to a database."""
    sent: list[tuple[str, Any]] = []

    def note(_: object, __: object, statement: str, parameters: Any, *___: object) -> None:
        sent.append((statement, parameters))

    event.listen(Engine, "before_cursor_execute", note)
    yield sent
    event.remove(Engine, "before_cursor_execute", note)


# Opening


@pytest.mark.parametrize("form", ["{}", "sqlite:///{}", "sqlite+pysqlite:///{}"])
def test_every_form_of_a_file_name_opens_the_same_journal(tmp_path: Path, form: str) -> None:
    path = tmp_path / "my journal ä?.db" if form == "{}" else tmp_path / "journal.db"
    first = open_journal(form.format(path))
    lease = first.acquire("job", "first", 10.0)
    first.append(lease, 3, EXAMPLES)
    first.close()
    again = SqlJournal(path)
    assert [e.record for e in again.read("job")] == list(EXAMPLES)
    again.append(lease, 4, [intent_step("x")])
    again.close()
    assert path.exists()


def test_a_postgres_journal_can_be_reopened(postgres_url: str) -> None:
    first = open_journal(postgres_url)
    first.append(first.acquire("job", "first", 10.0), 3, EXAMPLES)
    first.close()
    again = open_journal(postgres_url.replace("postgresql:", "postgresql+psycopg:"))
    assert [e.record for e in again.read("job")] == list(EXAMPLES)
    again.close()


def test_memory_is_a_memory_journal() -> None:
    assert isinstance(open_journal(":memory:"), MemoryJournal)
    assert isinstance(open_journal("sqlite:///:memory:"), MemoryJournal)


def test_two_processes_see_each_others_leases(tmp_path: Path) -> None:
    wall = Wall()
    one, two = SqlJournal(tmp_path / "j.db", wall=wall), SqlJournal(tmp_path / "j.db", wall=wall)
    lease = one.acquire("job", "one", 10.0)
    with pytest.raises(LeaseRefused, match="held by 'one'"):
        two.acquire("job", "two", 10.0)
    wall.now_s += 10.0
    two.acquire("job", "two", 10.0)
    with pytest.raises(LeaseRefused, match="taken over by 'two'"):
        one.append(lease, 0, [intent_step("x")])
    one.close()
    two.close()


def test_opening_waits_for_another_process_that_creates_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = sqlite3.connect(tmp_path / "j.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    waits: list[float] = []

    def finish(seconds: float) -> None:
        waits.append(seconds)
        other.close()

    monkeypatch.setattr("time.sleep", finish)
    journal = SqlJournal(tmp_path / "j.db")
    assert len(waits) == 1
    journal.acquire("job", "first", 10.0)
    journal.close()


def test_several_processes_open_a_new_postgres_journal_at_once(postgres_url: str) -> None:
    together = Barrier(6)

    def start(number: int) -> None:
        together.wait()
        journal = SqlJournal(postgres_url)
        journal.append(journal.acquire(f"job {number}", "first", 10.0), 0, [intent_step("x")])
        journal.close()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(start, range(6)))
    journal = SqlJournal(postgres_url)
    assert len(journal.jobs()) == 6
    journal.close()


def test_a_journal_file_is_its_owners_only(tmp_path: Path) -> None:
    SqlJournal(tmp_path / "journal.db").close()
    assert (tmp_path / "journal.db").stat().st_mode & 0o777 == 0o600
    shared = tmp_path / "shared.db"
    shared.touch(mode=0o640)
    SqlJournal(shared).close()
    assert shared.stat().st_mode & 0o777 == 0o640, "an existing file keeps its mode"


def test_the_files_beside_an_open_journal_are_its_owners_only(tmp_path: Path) -> None:
    """The write-ahead log has the same records as the journal; SQLite gives it the journal's mode."""
    before = os.umask(0)
    try:
        journal = SqlJournal(tmp_path / "journal.db")
        journal.append(journal.acquire("clicks", "test", 60.0), 0, [intent_step("x")])
        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
        journal.close()
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(("journal.db", "journal.db-wal", "journal.db-shm"), 0o600)


def test_the_default_timeouts_reach_the_server(postgres_url: str) -> None:
    journal = SqlJournal(postgres_url)
    with journal._connection() as connection:
        shown = [connection.scalar(text(f"SHOW {name}")) for name in ("statement_timeout", "lock_timeout")]
        idle = connection.scalar(text("SHOW idle_in_transaction_session_timeout"))
    journal.close()
    assert [*shown, idle] == ["10s", "5s", "5s"]


def make_text_file(folder: Path) -> Path:
    (folder / "notes.txt").write_text("this is not a database\n" * 100)
    return folder / "notes.txt"


def make_read_only(folder: Path) -> str:
    sqlite3.connect(folder / "empty.db").close()
    return f"sqlite:///file:{folder}/empty.db?mode=ro&uri=true"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (make_text_file, "not a SQLite database: give another path"),
        (lambda folder: folder, "this is a folder: give the path of a file in it"),
        (lambda folder: folder / "none" / "j.db", "none does not exist: create it first"),
        (lambda _: "/proc/journal.db", "cannot be opened or created: check the path"),
        (make_read_only, "cannot be written: check the permissions"),
    ],
    ids=["text file", "folder", "no folder", "unwritable folder", "read-only file"],
)
def test_an_unusable_location_has_a_readable_error(
    tmp_path: Path, make: Callable[[Path], str | Path], message: str
) -> None:
    with pytest.raises(JournalError, match=message):
        SqlJournal(make(tmp_path))


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://user:secret@host/db", "mysql"),
        ("postgres://user:secret@host/db", "postgresql://host/database"),
        ("postgresql://user:secret@host:port/db", "cannot read the journal's URL"),
        ("postgresql://user:se@cret@host/db", "%40"),
        ("sqlite:///:memory:", "MemoryJournal"),
        ("sqlite://", "MemoryJournal"),
    ],
)
def test_an_invalid_url_is_refused_without_showing_it(url: str, message: str) -> None:
    with pytest.raises(InvalidValue, match=message) as caught:
        SqlJournal(url)
    assert "cret" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://user:secret@127.0.0.1:1/db",
        "postgresql://user@127.0.0.1:1/db?password=secret",
        "postgresql://user:secret@host.invalid/db",
        "postgresql://user:secret@127.0.0.1:1/db?nonsense=secret",
    ],
)
def test_the_error_of_an_unreachable_database_hides_the_password(url: str) -> None:
    with pytest.raises(JournalError, match="the database cannot be reached") as caught:
        SqlJournal(url)
    error: BaseException | None = caught.value
    while error is not None:
        assert "secret" not in str(error)
        error = error.__cause__


def test_postgres_without_psycopg_names_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(JournalError, match=r"pip install 'rheostat\[postgres\]'"):
        SqlJournal("postgresql://host/db")


def test_another_schema_version_is_refused_and_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    SqlJournal(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("UPDATE schema_version SET version = 7; DROP TABLE lease")
        newer = r"schema version 7, this Rheostat writes version 2: use the Rheostat that"
        with pytest.raises(JournalError, match=newer):
            SqlJournal(path)
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    assert "lease" not in tables


# Writing and reading


def test_a_batch_with_a_record_that_is_not_json_writes_nothing(tmp_path: Path) -> None:
    journal = SqlJournal(tmp_path / "j.db")
    lease = journal.acquire("job", "first", 10.0)
    bad = Outcome(0, Verdict.KEPT, "", cast(dict[str, float], {"thing": object()}))
    with pytest.raises(InvalidValue, match="'outcome' cannot be written as JSON"):
        journal.append(lease, 0, [intent_step("x"), bad])
    assert list(journal.read("job")) == []
    journal.close()


def test_sqlite_writes_begin_immediately_and_reads_begin_no_transaction(
    tmp_path: Path, statements: list[tuple[str, Any]]
) -> None:
    journal = SqlJournal(tmp_path / "j.db")
    lease = journal.acquire("job", "first", 10.0)
    for write in (
        lambda: journal.append(lease, 0, [intent_step("x"), snapshot(1.0)]),
        lambda: journal.prune(lease, 1.0),
        lambda: journal.release(lease),
    ):
        statements.clear()
        write()
        assert [text for text, _ in statements if "BEGIN" in text] == ["BEGIN IMMEDIATE"]
        assert statements[0][0] == "BEGIN IMMEDIATE"
    statements.clear()
    list(journal.read("job"))
    journal.latest("job", "snapshot")
    assert not [text for text, _ in statements if "BEGIN" in text]
    journal.close()


def test_sqlite_settings_survive_a_power_failure(tmp_path: Path) -> None:
    journal = SqlJournal(tmp_path / "j.db")
    with journal._connection() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL
    journal.close()


def test_a_lock_of_another_process_has_a_readable_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rheostat.journal.database.BUSY_S", 0)
    journal = SqlJournal(tmp_path / "j.db")
    other = sqlite3.connect(tmp_path / "j.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(JournalError, match="another process has been writing for too long"):
        journal.acquire("job", "first", 10.0)
    assert journal.jobs() == ()  # reads still work
    other.close()
    journal.acquire("job", "first", 10.0)
    journal.close()


def test_cost_does_not_grow_with_the_journal(tmp_path: Path, statements: list[tuple[str, Any]]) -> None:
    """Every statement on records uses an index."""
    journal = SqlJournal(tmp_path / "j.db")
    lease = journal.acquire("job", "first", 10.0)
    statements.clear()
    journal.append(lease, 0, [intent_step("x"), snapshot(1.0)])
    list(journal.read("job"))
    list(journal.read("job", after=1, kinds=("snapshot", "run")))
    journal.latest("job", "snapshot")
    journal.jobs()
    journal.prune(lease, 1.0)
    connection = sqlite3.connect(tmp_path / "j.db")
    plans = [
        str(step[-1])
        for text, parameters in statements
        if text.startswith(("SELECT", "UPDATE", "DELETE"))
        for step in connection.execute(f"EXPLAIN QUERY PLAN {text}", parameters)
    ]
    connection.close()
    journal.close()
    on_records = [plan for plan in plans if "record" in plan]
    assert len(on_records) >= 6
    assert all(plan.startswith("SEARCH record USING") for plan in on_records), on_records
    assert not [plan for plan in plans if "TEMP B-TREE" in plan], plans


@pytest.mark.parametrize("change", ["kind = 'telegram'", "body = '{}'", "body = 'x'"])
def test_a_record_of_another_version_is_named(tmp_path: Path, change: str) -> None:
    journal = SqlJournal(tmp_path / "j.db")
    journal.append(journal.acquire("job", "first", 10.0), 0, [intent_step("x")])
    with closing(sqlite3.connect(tmp_path / "j.db")) as connection, connection:
        connection.execute(f"UPDATE record SET {change}")
    connection.close()
    with pytest.raises(JournalError, match=r"record 1 of kind .* cannot be read"):
        list(journal.read("job"))
    journal.close()
