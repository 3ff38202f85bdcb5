"""The YAML file of a run, as one pydantic model; docs/configuration.md is written from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError, model_validator

from rheostat.config.build import UNKNOWN, build, plain, worded
from rheostat.config.named import Named, named
from rheostat.config.reader import read_yaml
from rheostat.errors import InvalidValue, nearest, shown
from rheostat.job.allocation import Allocation
from rheostat.job.forecast import Foresight
from rheostat.job.guards import UNGUARDED, Guards
from rheostat.job.slo import DEFAULT_HEADROOM, SLO
from rheostat.lab.experiment.descriptions import natural_length_s, policy_maker, read_load, read_plant
from rheostat.policy.registry import own_factor

if TYPE_CHECKING:
    from rheostat.engine.simulated.plant import Plant
    from rheostat.lab.experiment.trial import Trial


def _slo(value: Any) -> SLO:
    return value if isinstance(value, SLO) else build(SLO, value, "slo")


def _guards(value: Any) -> Guards:
    """Read guards; those that are left out stay off, so that policies are compared as published."""
    if isinstance(value, Guards):
        return value
    given = build(Guards, value, "guards")
    return replace(UNGUARDED, **{key: getattr(given, key) for key in value})


def _foresight(value: Any) -> Foresight:
    return value if isinstance(value, Foresight) else build(Foresight, value, "forecast")


MAX_LATENCY_S = 10.0
"""Latency objective, in seconds, of a comparison whose SLO says nothing: what its seconds over the SLO count."""


class Config(BaseModel):
    """A run on the simulator."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    job: str | dict[str, Any] = "wordcount"
    """Name of a built-in job, or a mapping that describes one."""
    load: str | dict[str, Any] = "permutation"
    """A load: `shape:parameter=value`, or a mapping with `shape` and its parameters."""
    policy: str | dict[str, Any] = "ds2"
    """A policy: `name:option=value`, or a mapping with `name` and its options; a .py file's path is a name, too."""
    slo: Annotated[SLO, PlainValidator(_slo)] = SLO(max_latency_s=MAX_LATENCY_S, headroom=DEFAULT_HEADROOM)
    """Objectives. Without this key: a latency of 10 s. Headroom is 0.2 unless it or a policy's own factor is set."""
    guards: Annotated[Guards, PlainValidator(_guards)] = UNGUARDED
    """Guards between a decision and the job."""
    forecast: Annotated[Foresight, PlainValidator(_foresight)] = Foresight()
    """How the load is forecast, if the recovery-time objective or the policy needs a forecast."""
    seed: int = Field(0, ge=0)
    """Seed of all randomness; the seeds of a comparison count up from it."""
    duration_s: float | None = Field(None, ge=1, allow_inf_nan=False)
    """Simulated seconds. Default: the load's own length (a permutation or a trace once, else 7200)."""
    interval_s: float = Field(60.0, ge=1, allow_inf_nan=False)
    """Simulated seconds between two decisions."""
    start: Literal["peak", "min"] | dict[str, int] = "peak"
    """Tasks at the start: `peak` for the highest load, `min` for the fewest allowed, or tasks by operator."""
    failures_s: list[Annotated[float, Field(ge=0, allow_inf_nan=False)]] = Field(default_factory=list)
    """Moments at which a worker is lost, in simulated seconds."""
    journal: str | None = None
    """Journal of every step: a path, sqlite:///path or postgresql://host/database."""

    @model_validator(mode="after")
    def _makes_sense(self) -> Config:
        if self.duration_s is not None and self.duration_s < self.interval_s:
            raise InvalidValue(
                f"duration_s {self.duration_s:g} is below interval_s {self.interval_s:g}, so there is no decision: "
                "make the run longer or the interval shorter"
            )
        return self

    def policy_named(self) -> Named:
        """Return the policy's name and options."""
        return named(self.policy, "name", "policy")

    def trial(self, seeds: Sequence[int] = ()) -> Trial[Plant]:
        """Return the trial without its policy, for the config's seed or for several; wrong values are refused."""
        from rheostat.forecast.registry import check_candidates
        from rheostat.lab.experiment.trial import Trial

        check_candidates(self.forecast.candidates)
        plant, load = read_plant(self.job), read_load(self.load)
        policy_maker(*self.policy_named())
        duration_s = natural_length_s(load) if self.duration_s is None else self.duration_s
        bare = Trial(
            plant,
            load,
            duration_s,
            self.interval_s,
            self.slo,
            self.guards,
            failures_s=tuple(self.failures_s),
            settings=self.settings(duration_s),
            foresight=self.forecast,
        )
        return replace(bare, start=self._start(bare, plant, seeds or (self.seed,)))

    def settings(self, duration_s: float) -> dict[str, Any]:
        """Return, as JSON values, the keys that recreate job, load and policy from a journal."""
        keys = ("job", "load", "policy", "seed", "interval_s", "start", "failures_s")
        return {"engine": "simulated", "duration_s": duration_s, **{key: getattr(self, key) for key in keys}}

    def _start(self, trial: Trial[Plant], plant: Plant, seeds: Sequence[int]) -> Allocation:
        from rheostat.control.limits import limits
        from rheostat.job.fit import clip
        from rheostat.lab.experiment.oracle.sizes import peak_allocation

        allowed = limits(plant.spec(), self.slo)
        if self.start == "peak":
            # Every seed may have its own load; all start with the same size.
            peaks = [peak_allocation(replace(trial, seed=seed)) for seed in seeds]
            most = {name: max(peak.tasks[name] for peak in peaks) for name in allowed.operators}
            return clip(peaks[0].with_tasks(most), allowed)[0]
        if self.start == "min":
            least = {name: bounds.min for name, bounds in allowed.operators.items()}
            return clip(plant.start().with_tasks(least), allowed)[0]
        for name in self.start:
            if name not in allowed.operators:
                raise InvalidValue(
                    f"start: {name!r} is not an operator that can be tuned, {nearest(name, allowed.operators)}"
                )
        start = plant.start().with_tasks(self.start)
        fitting, why = clip(start, allowed)
        if fitting != start:
            raise InvalidValue(f"start {start} is not allowed: {why}")
        return start


def load_config(file: str | Path) -> Config:
    """Read a YAML file and check every key: none is silently ignored."""
    config = make_config(read_yaml(file))
    config.trial()
    return config


def make_config(
    values: Mapping[str, Any],
    objectives: Mapping[str, Any] | None = None,
    policies: Sequence[Named] | None = None,
) -> Config:
    """Return a Config from plain values; errors name the key and the value.

    `objectives` are keys of the SLO that override those of the values. The default headroom is dropped if one of the
    policies sets its own factor; an explicit headroom is not.
    """
    given = plain(values, "")
    slo = given.get("slo")
    if slo is None:
        slo = {"max_latency_s": MAX_LATENCY_S}
    if isinstance(slo, Mapping) and "headroom" not in slo:
        named_policies = [named(given.get("policy", "ds2"), "name", "policy")] if policies is None else policies
        slo = slo if own_factor(named_policies) else {**slo, "headroom": DEFAULT_HEADROOM}
    if isinstance(slo, Mapping):
        slo = {**slo, **plain(objectives or {}, "slo")}
    try:
        return Config(**{**given, "slo": slo})
    except ValidationError as error:
        raise InvalidValue("; ".join(dict.fromkeys(filter(None, map(_sentence, error.errors()))))) from error


def _sentence(error: Mapping[str, Any]) -> str:
    """Return one error in words; "" for a member of a union that another error explains better."""
    # Of a union (text or mapping) pydantic names the member that does not fit, which is not a key of the file.
    place = [part for part in error["loc"] if part not in ("str", "dict[str,any]", "dict[str,int]")]
    place = [part for part in place if not str(part).startswith(("literal[", "constrained"))]
    key, value = ".".join(str(part) for part in place), error.get("input")
    if key == "start":
        expected = "start must be peak, min or tasks by operator, such as count=3"
        return "" if isinstance(value, Mapping) else f"{expected}, not {value!r}"
    if error["type"] in UNKNOWN:
        return f"unknown key {key!r}, {nearest(key, Config.model_fields)}"
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])  # our own message, with the path
    return f"{key} {worded(error['msg'])}, not {shown(key, value)}"
