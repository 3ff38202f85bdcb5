"""Every journal passes the conformance tests of the port."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rheostat.journal.memory import MemoryJournal
from rheostat.journal.sql import SqlJournal
from rheostat.ports import Journal
from rheostat.testing.journal import JournalConformance


class TestMemory(JournalConformance):
    def make_journal(self, tmp_path: Path, wall: Callable[[], float]) -> Journal:
        return MemoryJournal(wall=wall)


class TestSqlite(JournalConformance):
    def make_journal(self, tmp_path: Path, wall: Callable[[], float]) -> Journal:
        return SqlJournal(tmp_path / "journal.db", wall=wall)


class TestPostgres(JournalConformance):
    url: str

    @pytest.fixture(autouse=True)
    def _database(self, postgres_url: str) -> None:
        self.url = postgres_url

    def make_journal(self, tmp_path: Path, wall: Callable[[], float]) -> Journal:
        return SqlJournal(self.url, wall=wall)
