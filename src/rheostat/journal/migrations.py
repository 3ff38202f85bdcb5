"""From older journals to the present one: numbered steps for the tables, and for the bodies of records.

Tables are migrated when a journal is opened, in one transaction, so an interrupted migration has changed nothing. Every
step adds columns that have defaults, which neither database rewrites rows for. Bodies are upgraded when they are read,
each from the version of its writer, so a journal of a million records opens as fast as an empty one.

A Rheostat of version 1 that was running during the migration goes on: its statements name their columns, its records
get the version 1 by default, and its lease counts. It refuses the journal when it opens it the next time.

Not Alembic: it migrates tables only, and would bring its own version table, a configuration and a folder of scripts for
three tables that change together with the bodies.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import Connection, func, insert, inspect, select, text, update

from rheostat.errors import InvalidValue, JournalError, first_line
from rheostat.job.frozen import to_json
from rheostat.journal import schema

Body = dict[str, Any]

# Two processes that open a PostgreSQL journal at once would both create its tables. The lock's number is arbitrary.
_ONE_AT_A_TIME = select(func.pg_advisory_xact_lock(0x5EED_0A11))


# Tables


def schema_version(connection: Connection) -> int | None:
    """Return the version of the tables; None where there are none."""
    if not inspect(connection).has_table(schema.schema_version.name):
        return None
    return connection.scalar(select(schema.schema_version.c.version))


def prepare_tables(connection: Connection, place: str) -> None:
    """Create missing tables, migrate older ones, and refuse newer ones."""
    if connection.dialect.name == "postgresql":
        connection.execute(_ONE_AT_A_TIME)
    version = schema_version(connection)
    if version is None:
        schema.TABLES.create_all(connection)
        connection.execute(insert(schema.schema_version), {"version": schema.VERSION})
        return
    if version > schema.VERSION:
        raise JournalError(
            f"journal {place} has schema version {version}, this Rheostat writes version {schema.VERSION}: "
            "use the Rheostat that wrote it or a newer one, or start another journal"
        )
    for old in range(version, schema.VERSION):
        for statement in TABLE_STEPS[old]:
            connection.execute(text(statement))
    connection.execute(update(schema.schema_version), {"version": schema.VERSION})


TABLE_STEPS: Mapping[int, tuple[str, ...]] = {
    1: (
        "ALTER TABLE record ADD COLUMN version INTEGER NOT NULL DEFAULT 1",
        "ALTER TABLE lease ADD COLUMN boot TEXT",
        "ALTER TABLE lease ADD COLUMN booted_s DOUBLE PRECISION",
    ),
}
"""Statements that make the next version of each version."""


# Bodies


def upgrade(kind: str, body: str, version: int) -> str:
    """Return a record's body, as JSON, in the shape of the present version; InvalidValue for one of no shape."""
    steps = [BODY_STEPS[old][kind] for old in range(version, schema.VERSION) if kind in BODY_STEPS[old]]
    if not steps:
        return body
    try:
        value = json.loads(body)
        for step in steps:
            value = step(value)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise InvalidValue(f"no body of schema version {version}: {first_line(error)}") from error
    return json.dumps(value)


def _rename(body: Body, names: Mapping[str, str]) -> Body:
    return {names.get(key, key): value for key, value in body.items()}


def _observation_1(body: Body) -> Body:
    return _rename(body, {"hindrances": "bottlenecks"})


def _with_observation_1(body: Body) -> Body:
    observation = body.get("observation")
    return body if observation is None else {**body, "observation": _observation_1(observation)}


_POLICIES_1 = {"clairvoyant": "oracle"}

_OPTIONS_1 = {"anticipate": {"promise": "confidence", "objective": "confidence"}}

_GUARDS_1 = {
    "shrink_after_s": 0.0,
    "max_changes_per_hour": None,
    "shrink_over_slo": True,
    "recovery_floor": False,
    "change_deadline_s": 1e9,
}
"""Guards that were added later, switched off: the present defaults would change what the run decided."""


def _run_1(body: Body) -> Body:
    policy = str(_POLICIES_1.get(body["policy"], body["policy"]))
    settings = body.get("settings", {})
    if isinstance(settings.get("policy"), dict) and settings["policy"].get("name") == body["policy"]:
        settings = {**settings, "policy": {**settings["policy"], "name": policy}}
    return {
        **body,
        "policy": policy,
        "options": _rename(body.get("options", {}), _OPTIONS_1.get(policy, {})),
        "guards": {**_GUARDS_1, **_rename(body["guards"], {"shadow": "dry_run"})},
        "settings": settings,
    }


_RENAMED_1 = {
    "ability_per_s": "capacity_per_s",
    "able_per_s": "capacity_per_s",
    "abilities": "capacities",
    "untested": "trial_problem",
}
"""Renamed keys in the capacities that the loop and the policies have learned."""

_LEARNERS_1 = frozenset(
    ("conttune", "big-ds2", "dragster", "autrascale", "max", "proportion", "exponent", "phoebe", "twres", "anticipate")
)
"""Policies whose knowledge has such keys; the knowledge of a user's policy stays as it is."""


def _snapshot_1(body: Body) -> Body:
    """Upgrade state and knowledge, which are JSON inside the JSON. The state names the policy and its options."""
    state, knowledge = json.loads(body["state"]), json.loads(body["knowledge"])
    name, _, options = state.get("policy", "").partition(" ")
    if name:
        policy = _POLICIES_1.get(name, name)
        renamed = _rename(json.loads(options), _OPTIONS_1.get(policy, {}))
        state["policy"] = f"{policy} {to_json(renamed)}"
        knowledge = _learned_1(knowledge) if policy in _LEARNERS_1 else knowledge
    if "recoveries" in state:
        state["recoveries"] = _learned_1(state["recoveries"])
    return {**body, "state": json.dumps(state), "knowledge": json.dumps(knowledge)}


def _learned_1(value: Any) -> Any:
    """Rename keys at any depth. `seen` was a number of windows in one place, and a list of samples in another."""
    if isinstance(value, list):
        return [_learned_1(item) for item in value]
    if not isinstance(value, dict):
        return value
    seen = {"seen": "samples" if isinstance(value.get("seen"), list) else "windows"}
    names = {**_RENAMED_1, **seen}
    return {names.get(key, key): _learned_1(item) for key, item in value.items()}


BODY_STEPS: Mapping[int, Mapping[str, Callable[[Body], Body]]] = {
    1: {
        "observation": _observation_1,
        "measurement": _with_observation_1,
        "estimate": _with_observation_1,
        "run": _run_1,
        "snapshot": _snapshot_1,
    },
}
"""Functions that make a kind's next version of each version. Kinds without one have not changed.

Journals of version 1 have several shapes: names were changed without a new version until 2. So a step accepts each.
"""
