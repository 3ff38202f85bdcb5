"""The journal: append-only memory of every job, in a SQLite file or a PostgreSQL database."""
