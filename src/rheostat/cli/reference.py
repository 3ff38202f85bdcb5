"""Writes docs/configuration.md from the code: every key with its type, default and description.

    python -m rheostat.cli.reference docs/configuration.md

The descriptions are the string literals under the fields, so each has one place.
"""

from __future__ import annotations

import ast
import inspect
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from itertools import pairwise
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from rheostat.api.options import Options
from rheostat.config.run_file import RunFile
from rheostat.engine.batches.offsets import OffsetCounter
from rheostat.engine.simulated.curves import Curve
from rheostat.engine.simulated.microbatch.discipline import MicroBatch
from rheostat.engine.simulated.plant import (
    Failure,
    Interference,
    LatencyLaw,
    Memory,
    Metrics,
    Plant,
    PlantOperator,
    Restart,
)
from rheostat.engine.simulated.realtime.discipline import RealTime
from rheostat.engine.testbed.loads import LOADS
from rheostat.job.forecast import Foresight
from rheostat.job.graph import Edge
from rheostat.job.guards import FrozenPeriod, Guards
from rheostat.job.slo import SLO, Bounds, Budget
from rheostat.lab.experiment.config import Config
from rheostat.lab.experiment.descriptions import CURVES, JOB, OPERATOR
from rheostat.lab.experiment.oracle.schedule import Oracle
from rheostat.lab.jobs import JOBS
from rheostat.policy.dragster.throughput import EdgeFunction
from rheostat.policy.registry import POLICIES, policy_class
from rheostat.ports import Testbed

TYPE_NAMES: Mapping[Any, str] = {
    str: "text",
    float: "number",
    int: "whole number",
    bool: "true or false",
    NoneType: "none",
    Any: "anything",
    Curve: "[curve](#curves)",
    OffsetCounter: "[OffsetCounter](spark.md#what-it-measures)",
    Testbed: "testbed",
}
JOB_DESCRIPTIONS = {
    "name": "Name of the job in the journal and in reports.",
    "sources": "Source -> records/s at level 1 of the load. A source that is not an operator only reads.",
    "operators": "Operator -> its [keys](#operator).",
    "edges": "List of [edges](#edge) between operators.",
    "microbatch": "Runs in micro-batches, like Spark. Without this and `realtime`: fluid flow, like Flink.",
    "realtime": "Runs like Spark's real-time mode: all stages at once, no back pressure, long batches.",
}
HEAD = """# Configuration

<!-- Written by `make docs` from the code; a test fails when it is out of date. Do not edit. -->

A [file of `rheostat run`](#rheostat-run) configures your own job; in Python, the arguments of `rheostat.autoscale` and
`rheostat.start` and their [`Options`](#rheostatoptions) do. [defaults.md](defaults.md) has the reason of each default.
A [file of `rheostat simulate` and `rheostat compare`](#a-simulated-run) describes a simulated job.

Every key may be left out unless it is required. The command line overrides the file. Unknown keys, repeated keys and
impossible values are errors that name the key. Paths are relative to the folder in which the command runs.

Policies and loads also have a short form, in files, in Python and on the command line: `name:key=value:key=value`.
Values are written as in YAML; a list of numbers is `1+5+10`, a list of one `5+`. A policy may be a Python file with one
policy class: `./steady.py:option=1`. Infinity is written `Infinity`. Examples are in `examples/`.
"""


def page() -> str:
    """Return the whole page."""
    return "\n".join(_lines()).rstrip() + "\n"


def _lines() -> Iterator[str]:
    yield HEAD
    yield from _section("`rheostat run`", RunFile, f"{_about(RunFile)} [run.md](run.md) has an example.")
    yield from _section("`rheostat.Options`", Options)
    yield from _section("SLO", SLO)
    yield from _section("Budget", Budget, level=3)
    yield from _section("Bounds", Bounds, level=3)
    yield from _section("Guards", Guards)
    periods = "Also as text: `22:00-06:00` (every day, UTC) or `2026-12-24T00:00/2026-12-27T00:00` (once, UTC)."
    yield from _section("FrozenPeriod", FrozenPeriod, f"{_about(FrozenPeriod)} {periods}", level=3)
    yield from _section("Foresight", Foresight)
    yield "## Policies\n"
    for name in POLICIES:
        yield from _section(f"`{name}`", policy_class(name), level=3)
    yield from _section("EdgeFunction", EdgeFunction, level=3)
    yield f"### `oracle`\n\n{_about(Oracle)} It has no options.\n"
    yield from _simulated()


def _simulated() -> Iterator[str]:
    yield from _section(
        "A simulated run", Config, f"{_about(Config)} `rheostat simulate` and `rheostat compare` read it."
    )
    about = "A job of your own, where `job` is a mapping; otherwise it names a [built-in one](#built-in-jobs)."
    yield from _section("Job", JOB, about, meanings={**descriptions(Plant), **JOB_DESCRIPTIONS})
    yield from _section("Edge", Edge, level=3)
    about = "An operator. Besides these, `curve` is its [capacity curve](#curves); without one it never limits."
    yield from _section("Operator", OPERATOR, about, level=3, meanings=descriptions(PlantOperator))
    yield from _curves()
    for block in (Interference, Memory, LatencyLaw, Restart, Failure, Metrics, MicroBatch, RealTime):
        yield from _section(block.__name__, block, level=3)
    yield "## Loads\n"
    for name, shape in LOADS.items():
        yield from _section(f"`{name}`", shape, level=3)
    yield from _jobs()


def _section(
    title: str,
    cls: Any,
    about: str = "",
    level: int = 2,
    meanings: Mapping[str, str] | None = None,
) -> Iterator[str]:
    yield f"{'#' * level} {title}\n"
    yield f"{about or _about(cls)}\n"
    rows = list(_rows(cls, meanings if meanings is not None else descriptions(cls)))
    if not rows:
        yield "It has no options.\n"
        return
    yield "| key | type | default | meaning |\n|---|---|---|---|"
    for key, kind, default, meaning in rows:
        yield f"| `{key}` | {kind} | {default} | {meaning} |"
    yield ""


def _curves() -> Iterator[str]:
    yield "### Curves\n"
    yield "Capacity in records/s of the whole operator, by tasks. `kind` is one of:\n"
    yield "| kind | what | keys |\n|---|---|---|"
    for kind, cls in CURVES.items():
        about = "Amdahl's law: `usl` without kappa." if kind == "amdahl" else _about(cls)
        keys = [f"`{name}` ({type_}, {default})" for name, type_, default, _ in _rows(cls, {})]
        yield f"| `{kind}` | {about} | {', '.join(k for k in keys if kind != 'amdahl' or 'kappa' not in k)} |"
    yield ""


def _jobs() -> Iterator[str]:
    yield "## Built-in jobs\n"
    yield "| name | operators | records/s at level 1 | origin |\n|---|---|---|---|"
    for name, make in JOBS.items():
        plant = make()
        units = ", ".join(f"{source} {unit:,.0f}" for source, unit in plant.unit_per_s.items())
        yield f"| `{name}` | {', '.join(plant.graph.operators)} | {units} | {plant.origin} |"


def _rows(cls: Any, meanings: Mapping[str, str]) -> Iterator[tuple[str, str, str, str]]:
    """Yield key, type, default and description of every field."""
    hints = get_type_hints(cls)
    if is_dataclass(cls):
        # A base's keyword-only fields come first in a dataclass; the class's own fields matter more.
        ordered = sorted(fields(cls), key=lambda f: f.kw_only is True)
        keys = [(f.name, f.default, f.default_factory) for f in ordered]
    else:
        keys = [(name, f.default, f.default_factory or MISSING) for name, f in cls.model_fields.items()]
    for name, default, factory in keys:
        yield name, type_text(hints[name]), _default(default, factory), meanings.get(name) or _about_block(hints[name])


def descriptions(cls: type) -> dict[str, str]:
    """Return the string literals under the fields of a class and of its bases."""
    literals: dict[str, str] = {}
    for each in reversed(cls.__mro__):
        if not each.__module__.startswith("rheostat."):
            continue
        tree = ast.parse(inspect.getsource(sys.modules[each.__module__]))
        body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == each.__name__)
        for field, literal in pairwise(body):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(literal, ast.Expr)
                and isinstance(literal.value, ast.Constant)
            ):
                literals[field.target.id] = " ".join(str(literal.value.value).split()).replace("|", "\\|")
    return literals


def type_text(kind: Any) -> str:
    """Return a type as the page names it."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in TYPE_NAMES:
        return TYPE_NAMES[kind]
    if origin in (Union, UnionType):
        return " or ".join(type_text(each) for each in arguments)
    if origin is Literal:
        return " or ".join(f"`{each}`" for each in arguments)
    if origin is list or (origin is tuple and arguments[-1] is Ellipsis):
        return f"list of {type_text(arguments[0])}"
    if origin is tuple:
        return f"[{', '.join(type_text(each) for each in arguments)}]"
    if origin is not None and issubclass(origin, Mapping):
        return f"mapping of {type_text(arguments[0])} to {type_text(arguments[1])}"
    return f"[{kind.__name__}](#{kind.__name__.lower()})"


def _default(default: Any, factory: Any) -> str:
    if default in (MISSING, inspect.Parameter.empty) or type(default).__name__ == "PydanticUndefinedType":
        return "required" if factory is MISSING else _default(factory(), MISSING)
    if is_dataclass(default):
        changed = {f.name: getattr(default, f.name) for f in fields(default) if getattr(default, f.name) != f.default}
        text = ", ".join(f"{name} {value}" for name, value in changed.items() if value != {})
        return text or "its defaults"
    if default is None or isinstance(default, bool):
        return {None: "none", True: "true", False: "false"}[default]
    if isinstance(default, Mapping | list | tuple):
        return ", ".join(str(each) for each in default) or "none"
    if isinstance(default, float):
        return "Infinity" if math.isinf(default) else f"{default:.10g}"
    return f"`{default}`" if isinstance(default, str) and default else str(default) or "none"


def _about_block(kind: Any) -> str:
    """Return the docstring of a block's class, for a key without a description."""
    blocks = [each for each in (kind, *get_args(kind)) if is_dataclass(each)]
    return _about(blocks[0]) if blocks and isinstance(blocks[0], type) else ""


def _about(cls: type) -> str:
    return " ".join((inspect.getdoc(cls) or "").partition("\n\n")[0].split())


def main() -> None:
    """Write the page to the path on the command line."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m rheostat.cli.reference FILE.md")
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
