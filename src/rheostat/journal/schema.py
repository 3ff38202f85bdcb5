"""The tables of a SQL journal: the same three in SQLite and in PostgreSQL."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, Index, Integer, MetaData, Table, Text, text

VERSION = 2
"""Version of the tables and of the records in them, to be raised with every change of either, and with a step in
`migrations.py` from the version before."""

TABLES = MetaData()

_BIG = BigInteger().with_variant(Integer, "sqlite")  # SQLite autoincrements only a column of type INTEGER

schema_version = Table("schema_version", TABLES, Column("version", Integer, primary_key=True, autoincrement=False))

record = Table(
    "record",
    TABLES,
    Column("number", _BIG, primary_key=True, autoincrement=True),
    Column("job", Text, nullable=False),
    Column("token", _BIG, nullable=False),  # of the writer's lease
    Column("step", _BIG, nullable=False),
    Column("kind", Text, nullable=False),
    Column("at_s", Double),
    Column("body", Text, nullable=False),
    # Schema version of the writer. The default is for a writer of version 1 that was running during the migration.
    Column("version", Integer, nullable=False, server_default=text("1")),
    sqlite_autoincrement=True,  # a number is never used twice, even if records are deleted by hand
)
Index("record_job_number", record.c.job, record.c.number)
Index("record_job_kind_number", record.c.job, record.c.kind, record.c.number)

lease = Table(
    "lease",
    TABLES,
    Column("job", Text, primary_key=True),
    Column("holder", Text, nullable=False),
    Column("token", _BIG, nullable=False),
    Column("ttl_s", Double, nullable=False),
    Column("expires_s", Double),  # NULL: released
    Column("boot", Text),  # of the holder's host, where its clock ends the lease
    Column("booted_s", Double),
)
