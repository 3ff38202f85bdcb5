"""What `rheostat run` reads: the pipeline, its Spark, and how it is scaled. A file, with the command line above it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from rheostat.config.build import build
from rheostat.config.reader import read_yaml, scalar
from rheostat.errors import InvalidValue
from rheostat.job.forecast import Foresight
from rheostat.job.frozen import FrozenMap, check_number, put
from rheostat.job.guards import Guards
from rheostat.job.record import RETENTION_S
from rheostat.job.slo import SLO

SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class RunFile:
    """Everything that `rheostat.start` takes, and the Spark session that it runs in."""

    pipeline: str
    """What is started: `module:function`, a rheostat.pipeline or a function that starts a query for an allocation."""
    pipeline_options: Mapping[str, str] = field(default_factory=FrozenMap, repr=False)
    """Arguments of a rheostat.pipeline."""
    mode: Literal["micro-batch", "realtime"] = "micro-batch"
    """How Spark runs it; real-time mode needs a rheostat.pipeline, whose stages then have tasks of their own."""
    initial: Mapping[str, int] = field(default_factory=FrozenMap)
    """Tasks per stage (micro-batch: slots of `job`) at the very first start; later the journal's last size is used."""
    master: str | None = None
    """Spark's master; left out, an embedded cluster on this machine, or what spark-submit says."""
    min_executors: int = 1
    """The fewest executors."""
    max_executors: int | None = None
    """The most executors; left out, 4. A master of one process (`local[4]`) has none."""
    cores: int | None = None
    """Cores of one executor; left out, 1."""
    memory_mb: int | None = None
    """Memory of one executor, in MB; left out, 512."""
    conf: Mapping[str, str] = field(default_factory=FrozenMap, repr=False)
    """Further settings of Spark."""
    name: str | None = None
    """The job's name in the journal; left out, `pipeline`."""
    slo: SLO = SLO()
    """The objectives; headroom is 0.2 unless it, or a factor of the policy's own, is set."""
    policy: str | Mapping[str, Any] = "ds2"
    """A policy: `name:option=value`, or a mapping with `name` and its options; a path of a .py file is a name too."""
    guards: Guards = Guards()
    """What may stop or delay a change."""
    forecast: Foresight = Foresight()
    """How the load is forecast, where an objective or the policy needs a forecast."""
    interval_s: float = 5.0
    """Seconds between two decisions."""
    window_s: float | None = None
    """Seconds that a decision looks back; left out, 30, or as long as three batches if that is longer."""
    seed: int = 0
    """Seed of a policy's random choices."""
    journal: str | None = field(default=None, repr=False)
    """Where every step is written: a path, sqlite:///path or postgresql://host/database; left out, in memory."""
    retention_s: float | None = RETENTION_S
    """Seconds for which records stay in the journal; none keeps them for ever."""
    dry_run: bool = False
    """Decide and journal, but change nothing."""
    rename_state: bool = False
    """Whether state of a checkpoint that real-time mode made itself may be renamed for repartitioning."""
    seconds: float | None = None
    """Seconds after which it stops by itself; left out, it runs until Ctrl-C or SIGTERM."""

    def __post_init__(self) -> None:
        if ":" not in self.pipeline:
            raise InvalidValue(f"pipeline is {self.pipeline!r}: write module:function, as in {self.pipeline}:start")
        check_number("seconds", self.seconds, least=0.1)
        for key in self.conf:
            if not key.startswith("spark."):
                raise InvalidValue(f"conf has the key {key!r}: a setting of Spark begins with spark.")
        for name in ("pipeline_options", "initial", "conf"):
            put(self, **{name: FrozenMap(getattr(self, name))})


def read_run(target: str, overrides: Mapping[str, Any]) -> RunFile:
    """Read `target`, a YAML file or `module:function`, with the overrides (`slo.max_lag_s` -> value) above it."""
    values: dict[str, Any] = read_yaml(Path(target)) if target.endswith(SUFFIXES) else {"pipeline": target}
    for key, value in overrides.items():
        if isinstance(value, Mapping) and isinstance(values.get(key, {}), Mapping):
            values[key] = {**values.get(key, {}), **value}
        else:
            _set(values, key.split("."), value, key)
    for name in ("conf", "pipeline_options"):
        if isinstance(values.get(name), Mapping):
            values[name] = {str(key): _text(value) for key, value in values[name].items()}
    return build(RunFile, values, "")


def parse_setting(text: str, option: str) -> tuple[str, Any]:
    """Read `key=value`, the value as YAML has it."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise InvalidValue(f"{option} {text!r}: write KEY=VALUE, as in guards.cooldown_down_s=600")
    return key.strip(), scalar(value)


def _set(values: dict[str, Any], path: list[str], value: Any, key: str) -> None:
    """Put a value at a dotted path; what is there already is copied, not changed."""
    head, *rest = path
    if not rest:
        values[head] = value
        return
    inner = values.get(head, {})
    if not isinstance(inner, Mapping):
        raise InvalidValue(f"{key} cannot be set: {head} is {inner!r}, not a mapping")
    values[head] = dict(inner)
    _set(values[head], rest, value, key)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
