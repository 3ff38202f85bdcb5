"""Simulated jobs, loads and policies from a file or the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields, make_dataclass
from pathlib import Path
from typing import Any, get_type_hints

from rheostat.config.build import build, path
from rheostat.config.named import named
from rheostat.engine.simulated.curves import UNLIMITED, Curve, Linear, Power, Table, Usl
from rheostat.engine.simulated.discipline import Flow
from rheostat.engine.simulated.microbatch.discipline import MicroBatch
from rheostat.engine.simulated.plant import Plant, PlantOperator
from rheostat.engine.simulated.realtime.discipline import RealTime
from rheostat.engine.testbed.loads import LOADS, Load, Permutation, Trace
from rheostat.errors import InvalidValue, nearest
from rheostat.job.graph import Edge, Graph
from rheostat.lab.data import data_folder
from rheostat.lab.experiment.oracle.schedule import make_oracle
from rheostat.lab.experiment.trial import PolicyMaker
from rheostat.lab.jobs import job

CURVES: Mapping[str, type[Linear | Power | Usl | Table]] = {
    "linear": Linear,
    "power": Power,
    "amdahl": Usl,
    "usl": Usl,
    "table": Table,
}
"""Kind of capacity curve -> class; Amdahl's law is the universal scalability law without kappa."""


def _keys(cls: Any, *excluded: str) -> list[tuple[str, Any, Any]]:
    """Return name, type and default of a dataclass's fields, for `make_dataclass`."""
    hints = get_type_hints(cls)
    return [
        (f.name, hints[f.name], field(default=f.default, default_factory=f.default_factory))
        for f in fields(cls)
        if f.name not in excluded
    ]


# Both follow their dataclasses field by field, so that a new field is a key of the file at once.
OPERATOR: type[Any] = make_dataclass("Operator", _keys(PlantOperator, "name", "curve"), frozen=True)
"""Keys of an operator, besides its name and its curve."""
JOB: type[Any] = make_dataclass(
    "Job",
    [
        ("name", str),
        ("sources", Mapping[str, float]),
        ("operators", Mapping[str, dict[str, Any]]),
        ("edges", tuple[Edge, ...], field(default=())),
        *_keys(Plant, "name", "graph", "operators", "unit_per_s", "discipline"),
        ("microbatch", MicroBatch | None, None),
        ("realtime", RealTime | None, None),
    ],
    frozen=True,
)
"""Keys of a job."""


def read_plant(value: str | Mapping[str, Any], where: str = "job") -> Plant:
    """Return a built-in job by name, or the job that a mapping describes."""
    if isinstance(value, str):
        return job(value)
    described = build(JOB, value, where)
    rest = {f.name: getattr(described, f.name) for f in fields(described)}
    sources, operators, edges = rest.pop("sources"), rest.pop("operators"), rest.pop("edges")
    disciplines = [given for key in ("microbatch", "realtime") if (given := rest.pop(key)) is not None]
    if len(disciplines) > 1:
        raise InvalidValue(f"{where} has both microbatch and realtime: remove one of them")
    rest.update(discipline=disciplines[0] if disciplines else Flow())
    # A source without a description only reads: its capacity is unlimited and it is not tuned.
    readers = [PlantOperator(name, pinned_tasks=1) for name in sources if name not in operators]
    tuned = [_operator(name, values, path(where, "operators", name)) for name, values in operators.items()]
    plant_operators = (*readers, *tuned)
    try:
        graph = Graph(tuple(o.name for o in plant_operators), edges, tuple(sources))
        plant = Plant(graph=graph, operators=plant_operators, unit_per_s=sources, **rest)
        plant.spec()
    except InvalidValue as error:
        raise InvalidValue(f"{where}: {error}") from error
    return plant


def _operator(name: str, values: Mapping[str, Any], where: str) -> PlantOperator:
    rest = dict(values)
    curve = _curve(rest.pop("curve"), path(where, "curve")) if "curve" in rest else UNLIMITED
    described = build(OPERATOR, rest, where)
    try:
        return PlantOperator(name, curve, **{f.name: getattr(described, f.name) for f in fields(described)})
    except InvalidValue as error:
        raise InvalidValue(f"{where}: {error}") from error


def _curve(value: Any, where: str) -> Curve:
    if not isinstance(value, Mapping):
        raise InvalidValue(f"{where} must be a mapping with a kind ({', '.join(CURVES)}), not {value!r}")
    rest = dict(value)
    kind = rest.pop("kind", None)
    if kind not in CURVES:
        raise InvalidValue(f"{where}.kind must be one of {', '.join(CURVES)}, not {kind!r}")
    if kind == "amdahl" and "kappa" in rest:
        raise InvalidValue(f"{where}.kappa {rest['kappa']!r}: Amdahl's law has no kappa; remove it, or use kind usl")
    return build(CURVES[kind], rest, where)


def read_load(value: str | Mapping[str, Any]) -> Load:
    """Return a load by shape and parameters."""
    shape, parameters = named(value, "shape", "load")
    if shape not in LOADS:
        raise InvalidValue(f"unknown load {shape!r}, {nearest(shape, LOADS)}")
    if shape == Trace.name and isinstance(file := parameters.get("file"), str) and file and not Path(file).suffix:
        # A name without an ending is one of the recorded traces.
        parameters = {**parameters, "file": str(data_folder() / "traces" / f"{file}.csv")}
    return build(LOADS[shape], parameters, f"load {shape}")


def natural_length_s(load: Load) -> float:
    """Return a load's own length: a permutation or a trace once, any other load two hours."""
    if isinstance(load, Permutation):
        return load.top * load.repeats * load.hold_s
    return load.length_s if isinstance(load, Trace) else 7200.0


def policy_maker(name: str, options: Mapping[str, Any]) -> PolicyMaker:
    """Return the maker of a trial's policy; wrong options are refused here."""
    if name == "oracle":
        if options:
            raise InvalidValue(f"policy oracle has no options, not {', '.join(options)}: curves and load are the run's")
        return make_oracle
    from rheostat.policy.registry import make_policy

    policy = make_policy(name, options)
    return lambda _: policy
