"""Journals of every earlier shape open, are read completely, replay and resume.

The golden journals are dumps of files that Rheostat wrote with `rheostat simulate --load spikes --start min`:

| file | commit | jobs |
|---|---|---|
| `version-1-first` | 68e7684, the first day | wordcount under ds2 with two windows |
| `version-1-old-names` | 6bcbe86, before the fields were renamed | wordcount under conttune with a recovery objective and a failure, q1 under the oracle (`clairvoyant`), q2 under autrascale |
| `version-1-last` | 563789b, the last of version 1 | wordcount under conttune as above, q1 under ds2 |
| `version-2` | the first of version 2 | the same |
"""  # noqa: E501

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any

import psycopg
import pytest
from sqlalchemy import inspect

from rheostat.cli import journals
from rheostat.control.controller import IMMEDIATE, Controller
from rheostat.control.cycle import Mind
from rheostat.control.memory import remember
from rheostat.control.replay import replay
from rheostat.engine.simulated import Fleet, FleetClock
from rheostat.engine.testbed.loads import Constant
from rheostat.errors import InvalidValue, JournalError, LeaseRefused, UnreadableRecord
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision
from rheostat.job.frozen import to_json
from rheostat.job.guards import UNGUARDED
from rheostat.job.observation import Observation
from rheostat.job.record import Run, Snapshot, kind_of
from rheostat.journal import migrations, schema
from rheostat.journal.memory import MemoryJournal
from rheostat.journal.migrations import upgrade
from rheostat.journal.sql import SqlJournal
from rheostat.lab.jobs import job
from rheostat.ports import Journal, Policy
from rheostat.testing.journal import Wall, intent_step
from rheostat.testing.records import EXAMPLES

GOLDEN = Path(__file__).with_name("golden")
NAMES = sorted(path.stem for path in GOLDEN.glob("version-*.sql"))
JOBS = {
    "version-1-first": ("wordcount",),
    "version-1-old-names": ("q1", "q2", "wordcount"),
    "version-1-last": ("q1", "wordcount"),
    "version-2": ("q1", "wordcount"),
}

GONE = ("version-1-old-names", "q1")
"""A job whose policy, the oracle of that time, is gone."""
REPLAYED = [(name, each) for name in NAMES for each in JOBS[name] if (name, each) != GONE]


def load(name: str, path: Path) -> Path:
    """Write a golden journal to a file."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((GOLDEN / f"{name}.sql").read_text())
    return path


def policy_of(run: Run) -> Policy[Any]:
    """Return the policy of a golden run; none is in a file."""
    return journals.policy_of(run, journals.Consent(False, False))


def stored(path: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


@pytest.mark.parametrize("name", NAMES)
def test_every_record_is_read_with_every_value(tmp_path: Path, name: str) -> None:
    path = load(name, tmp_path / "j.db")
    bodies = [json.loads(body) for (body,) in stored(path, "SELECT body FROM record ORDER BY job, number")]
    journal = SqlJournal(path)
    assert journal.jobs() == JOBS[name]
    entries = [entry for each in journal.jobs() for entry in journal.read(each)]
    journal.close()
    assert len(entries) == len(bodies)
    for entry, body in zip(entries, bodies, strict=True):
        if not isinstance(entry.record, Snapshot):
            lost = leaves(body) - leaves(json.loads(to_json(entry.record)))
            assert not lost, (entry.number, lost)
    assert stored(path, "SELECT version FROM schema_version") == [(schema.VERSION,)]


def leaves(value: Any) -> set[Any]:
    """Return all single values in JSON, without the names of their keys; a renamed policy counts as the same."""
    if isinstance(value, dict):
        return set().union(*map(leaves, value.values()))
    if isinstance(value, list):
        return set().union(*map(leaves, value))
    return {"oracle" if value == "clairvoyant" else value}


def test_the_oracle_of_an_earlier_version_is_refused_by_what_it_was(tmp_path: Path) -> None:
    name, each = GONE
    with pytest.raises(InvalidValue, match=r"'q1' is that of an earlier version \(horizon_s, stay_s, worth\)"):
        replay(SqlJournal(load(name, tmp_path / "j.db")), each, policy_of)


@pytest.mark.parametrize(("name", "each"), REPLAYED)
def test_a_replay_decides_the_same_sizes(tmp_path: Path, name: str, each: str) -> None:
    """Sentences may have been reworded since; sizes and reasons may not change."""
    journal = SqlJournal(load(name, tmp_path / "j.db"))
    windows = len(list(journal.read(each, kinds=["observation"])))
    replayed = replay(journal, each, policy_of)
    journal.close()
    assert replayed.steps == windows > 0
    assert replayed.failures == ()
    for difference in replayed.differences:
        recorded, again = (
            [r for r in records if isinstance(r, Decision)] for records in (difference.recorded, difference.again)
        )
        assert [(d.target, d.reason) for d in recorded] == [(d.target, d.reason) for d in again], difference
    if name in ("version-1-last", "version-2"):
        assert replayed.differences == ()


@pytest.mark.parametrize(("name", "each"), REPLAYED)
def test_a_controller_resumes(tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, each: str) -> None:
    """The snapshot is used, says the same as all records, and the loop goes on in the same journal."""
    path = load(name, tmp_path / "j.db")
    journal = SqlJournal(path)
    before = list(journal.read(each))
    run = next(e.record for e in before if isinstance(e.record, Run))
    policy = policy_of(run)
    fleet = Fleet(job(each), [Constant(3.0)], [1], start=[Allocation(last_size(journal, each))])
    fleet.advance(1_000)
    with caplog.at_level(logging.WARNING):
        controller = Controller(
            fleet.engine(0),
            policy,
            journal,
            FleetClock(fleet),
            slo=run.slo,
            guards=run.guards,
            pace=IMMEDIATE,
            settings=run.settings,
        )
        controller.start()
        assert caplog.records == []
        folded = MemoryJournal()
        lease = folded.acquire(each, "all records", 60.0)
        for entry in journal.read(each):  # with the run record of this version, and its prior of the downtime
            if not isinstance(entry.record, Snapshot):
                folded.append(lease, entry.step, [entry.record])
        state, knowledge = remember(folded, Mind(policy, run.spec, run.slo, run.guards, run.seed))
        assert controller.knowledge == knowledge
        assert controller.state.step == state.step > 0
        for field in ("memo", "asked", "applied", "changed_at_s", "last_end_s", "open", "recoveries", "loads"):
            assert to_json(getattr(controller.state, field)) == to_json(getattr(state, field)), field
        fleet.advance(60)
        step = controller.step()
    assert step.problem is None
    assert step.number == state.step
    controller.stop()
    assert replay(journal, each, policy_of).steps == state.step + 1
    journal.close()
    versions = stored(path, f"SELECT version FROM record WHERE job = '{each}' ORDER BY number")
    first = 2 if name == "version-2" else 1
    assert {version for (version,) in versions[: len(before)]} == {first}
    assert {version for (version,) in versions[len(before) :]} == {schema.VERSION}


def last_size(journal: Journal, each: str) -> dict[str, int]:
    windows = [e.record for e in journal.read(each, kinds=["observation"])]
    running = [w.running for w in windows if isinstance(w, Observation) and w.running is not None]
    return dict(running[-1].tasks)


# Tables


TABLES_1 = """
CREATE TABLE schema_version (version INTEGER NOT NULL, PRIMARY KEY (version));
CREATE TABLE record (
    number BIGSERIAL NOT NULL, job TEXT NOT NULL, token BIGINT NOT NULL, step BIGINT NOT NULL, kind TEXT NOT NULL,
    at_s DOUBLE PRECISION, body TEXT NOT NULL, PRIMARY KEY (number)
);
CREATE INDEX record_job_number ON record (job, number);
CREATE INDEX record_job_kind_number ON record (job, kind, number);
CREATE TABLE lease (
    job TEXT NOT NULL, holder TEXT NOT NULL, token BIGINT NOT NULL, ttl_s DOUBLE PRECISION NOT NULL,
    expires_s DOUBLE PRECISION, PRIMARY KEY (job)
);
INSERT INTO schema_version VALUES (1);
"""
"""What version 1 created in PostgreSQL."""


def load_postgres(name: str, url: str, path: Path) -> None:
    """Put the rows of a golden journal of version 1 into PostgreSQL."""
    load(name, path)
    with psycopg.connect(url) as connection:
        connection.execute(TABLES_1.encode())
        for row in stored(path, "SELECT job, token, step, kind, at_s, body FROM record ORDER BY number"):
            connection.execute(
                "INSERT INTO record (job, token, step, kind, at_s, body) VALUES (%s, %s, %s, %s, %s, %s)", row
            )
        for row in stored(path, "SELECT job, holder, token, ttl_s, expires_s FROM lease"):
            connection.execute("INSERT INTO lease VALUES (%s, %s, %s, %s, %s)", row)


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("version-1")])
def test_postgres_journals_are_migrated_alike(tmp_path: Path, postgres_url: str, name: str) -> None:
    load_postgres(name, postgres_url, tmp_path / "j.db")
    one, other = SqlJournal(tmp_path / "j.db"), SqlJournal(postgres_url)
    assert other.jobs() == one.jobs()
    for each in one.jobs():
        assert [e.record for e in other.read(each)] == [e.record for e in one.read(each)]
        if (name, each) != GONE:
            assert replay(other, each, policy_of) == replay(one, each, policy_of)
        lease = other.acquire(each, "next", 60.0)
        assert lease.token == 2
        other.append(lease, 99, [intent_step("x")])
    one.close()
    other.close()


def columns(journal: SqlJournal) -> dict[str, Any]:
    with journal._connection() as connection:
        seen = inspect(connection)
        return {
            table: (
                {c["name"]: (c["type"].python_type, c["nullable"], c["default"]) for c in seen.get_columns(table)},
                sorted(str(index["name"]) for index in seen.get_indexes(table)),
            )
            for table in sorted(seen.get_table_names())
        }


def test_migrated_tables_are_like_new_ones(tmp_path: Path, postgres_server: str, postgres_url: str) -> None:
    migrated, new = SqlJournal(load("version-1-first", tmp_path / "old.db")), SqlJournal(tmp_path / "new.db")
    assert columns(migrated) == columns(new)
    load_postgres("version-1-first", postgres_url, tmp_path / "rows.db")
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("CREATE DATABASE like_new")
    on_postgres = SqlJournal(postgres_url), SqlJournal(postgres_server.replace("/postgres?", "/like_new?"))
    assert columns(on_postgres[0]) == columns(on_postgres[1])
    for journal in (migrated, new, *on_postgres):
        journal.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_several_processes_migrate_a_journal_once(tmp_path: Path, request: pytest.FixtureRequest, kind: str) -> None:
    path = load("version-1-first", tmp_path / "j.db")
    url = str(path)
    if kind == "postgres":
        url = request.getfixturevalue("postgres_url")
        load_postgres("version-1-first", url, tmp_path / "rows.db")
    together = Barrier(4)

    def opening(_: int) -> int:
        together.wait()
        with closing(SqlJournal(url)) as journal:
            return len(list(journal.read("wordcount")))

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(opening, range(4))) == {38}


def test_a_migration_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = load("version-1-first", tmp_path / "j.db")
    before = stored(path, "SELECT name, sql FROM sqlite_master")
    with monkeypatch.context() as patched:
        patched.setattr(
            migrations, "TABLE_STEPS", {1: (*migrations.TABLE_STEPS[1], "ALTER TABLE missing ADD COLUMN x TEXT")}
        )
        with pytest.raises(JournalError, match="no such table: missing"):
            SqlJournal(path)
    assert stored(path, "SELECT name, sql FROM sqlite_master") == before
    assert stored(path, "SELECT version FROM schema_version") == [(1,)]
    SqlJournal(path).close()


def test_a_present_journal_opens_without_a_write(tmp_path: Path) -> None:
    path = load("version-2", tmp_path / "j.db")
    SqlJournal(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        reader = SqlJournal(path)
        assert len(list(reader.read("q1"))) == 17
        reader.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_writer_of_version_1_that_was_running_is_harmless(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    """Its records count as version 1, it holds its lease, and it is fenced as any other once that is taken over."""
    path, wall = load("version-1-first", tmp_path / "j.db"), Wall()
    if kind == "postgres":
        url = request.getfixturevalue("postgres_url")
        load_postgres("version-1-first", url, tmp_path / "rows.db")
        old: Any = psycopg.connect(url)
    else:
        url, old = str(path), sqlite3.connect(path)
    # The statements of version 1, with their columns.
    take = "UPDATE lease SET holder='old', token=2, ttl_s=60, expires_s={}"
    extend = (
        "UPDATE lease SET expires_s={} WHERE job='wordcount' AND holder='old' AND token=2 AND expires_s IS NOT NULL"
    )
    write = (
        "INSERT INTO record (job, token, step, kind, at_s, body) VALUES ('wordcount', 2, 13, 'observation', 0, '{}')"
    )
    body = stored(path, "SELECT body FROM record WHERE kind = 'observation'")[0][0]
    old.execute(take.format(wall.now_s + 60))
    old.commit()

    journal = SqlJournal(url, wall=wall)
    wall.now_s += 50.0
    assert old.execute(extend.format(wall.now_s + 60)).rowcount == 1
    old.execute(write.replace("{}", body))
    old.commit()
    assert list(journal.read("wordcount"))[-1].step == 13
    wall.now_s += 50.0
    with pytest.raises(LeaseRefused, match=r"held by 'old' for another 10\.0 s"):
        journal.acquire("wordcount", "new", 60.0)
    wall.now_s += 10.0
    lease = journal.acquire("wordcount", "new", 60.0)
    assert old.execute(extend.format(wall.now_s + 60)).rowcount == 0, "its writes are refused"
    old.commit()
    journal.append(lease, 14, [intent_step("new")])
    journal.close()
    old.close()


# Bodies


def test_what_limited_a_window_keeps_its_text() -> None:
    window = '{"hindrances": ["skew"], "at_s": 1.0}'
    assert json.loads(upgrade("observation", window, 1)) == {"bottlenecks": ["skew"], "at_s": 1.0}
    for kind in ("measurement", "estimate"):
        body = f'{{"observation": {window}, "seconds": 2}}'
        assert json.loads(upgrade(kind, body, 1))["observation"]["bottlenecks"] == ["skew"]
        assert json.loads(upgrade(kind, '{"observation": null}', 1)) == {"observation": None}


@pytest.mark.parametrize("version", [1, 2])
def test_a_body_of_the_present_shape_stays(version: int) -> None:
    """Version 1 has it, too: names were changed without a new version until 2."""
    for record in EXAMPLES:
        if not isinstance(record, Snapshot):
            body = to_json(record)
            assert json.loads(upgrade(kind_of(record), body, version)) == json.loads(body)


def test_options_that_were_renamed_keep_their_values() -> None:
    options = {"promise": 0.9, "soon_s": 5.0}
    body = {"policy": "anticipate", "options": options, "guards": {"shadow": True, "shrink_over_slo": False}}
    run = json.loads(upgrade("run", json.dumps(body), 1))
    assert run["options"] == {"confidence": 0.9, "soon_s": 5.0}
    assert run["guards"]["dry_run"] is True
    assert run["guards"]["shrink_over_slo"] is False
    assert run["guards"]["max_changes_per_hour"] is None
    state = {"policy": f"anticipate {to_json(options)}"}
    body = {"state": json.dumps(state), "knowledge": '{"busy": [{"scale_out": 2, "able_per_s": 7.0}]}'}
    snapshot = json.loads(upgrade("snapshot", json.dumps(body), 1))
    assert json.loads(snapshot["state"])["policy"] == f"anticipate {to_json(run['options'])}"
    assert json.loads(snapshot["knowledge"]) == {"busy": [{"scale_out": 2, "capacity_per_s": 7.0}]}


def test_guards_that_a_run_did_not_have_are_off(tmp_path: Path) -> None:
    """The present defaults are more careful: with them a replay would decide something else."""
    journal = SqlJournal(load("version-1-first", tmp_path / "j.db"))
    run = next(iter(journal.read("wordcount", kinds=["run"]))).record
    journal.close()
    assert isinstance(run, Run)
    assert run.guards == replace(UNGUARDED, recovery_floor=False, change_deadline_s=1e9)


def test_knowledge_of_a_users_policy_stays_as_it_is() -> None:
    body = {"state": '{"policy": "mine {}", "memo": {"seen": [1]}}', "knowledge": '{"seen": 3, "abilities": []}'}
    snapshot = json.loads(upgrade("snapshot", json.dumps(body), 1))
    assert snapshot["knowledge"] == body["knowledge"]
    assert json.loads(snapshot["state"])["memo"] == {"seen": [1]}


@pytest.mark.parametrize("body", ["x", "[]", "{}", "null", '{"guards": 3, "policy": "ds2"}'])
@pytest.mark.parametrize("kind", ["run", "snapshot"])
def test_a_damaged_record_of_an_older_version_is_named(tmp_path: Path, kind: str, body: str) -> None:
    path = load("version-1-first", tmp_path / "j.db")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE record SET body = ? WHERE kind = ?", (body, kind))
        connection.commit()
    journal = SqlJournal(path)
    skipped: list[UnreadableRecord] = []
    reading: list[Callable[[], object]] = [
        lambda: journal.latest("wordcount", kind),
        lambda: list(journal.read("wordcount")),
    ]
    for read in reading:
        with pytest.raises(UnreadableRecord, match="cannot be read"):
            read()
    assert len(list(journal.read("wordcount", skip=skipped.append))) == 37
    assert len(skipped) == 1
    journal.close()
