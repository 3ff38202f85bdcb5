"""`rheostat jobs`, `policies`, `loads` and `grounds`: one line for each of them."""

from __future__ import annotations

import inspect
from collections.abc import Iterable

import typer


def jobs() -> None:
    """List the built-in simulated jobs."""
    from rheostat.lab.jobs import JOBS

    plants = {name: make() for name, make in JOBS.items()}
    _print((name, f"{', '.join(plant.graph.operators)} ({plant.origin})") for name, plant in plants.items())


def policies() -> None:
    """List the policies."""
    from rheostat.lab.experiment.oracle.schedule import Oracle
    from rheostat.policy.registry import POLICIES, policy_class

    classes = {**{name: policy_class(name) for name in POLICIES}, "oracle": Oracle}
    _print((name, _first_line(cls)) for name, cls in classes.items())


def loads() -> None:
    """List the load shapes."""
    from rheostat.engine.testbed.loads import LOADS

    _print((name, _first_line(cls)) for name, cls in LOADS.items())


def grounds() -> None:
    """List the named grounds of `rheostat compare`."""
    from rheostat.lab.experiment.grounds import GROUNDS

    _print((ground.name, ground.sentence) for ground in GROUNDS.values())


def _first_line(cls: type) -> str:
    return (inspect.getdoc(cls) or "").partition("\n")[0]


def _print(lines: Iterable[tuple[str, str]]) -> None:
    rows = list(lines)
    width = max(len(name) for name, _ in rows)
    for name, sentence in rows:
        typer.echo(f"{name:{width}}  {sentence}")
