"""The tables of a SQL journal: the same three in SQLite and in PostgreSQL."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, Index, Integer, MetaData, Table, Text

VERSION = 1
"""Version of the tables, to be raised with every change of them; a journal of another version is refused."""

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
)
