"""Options that several commands share, and their merge with a YAML file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rheostat.config.named import Named
    from rheostat.lab.experiment.config import Config

File = Annotated[Path | None, typer.Argument(metavar="CONFIG.yaml", help="A file that describes the run.")]
Job = Annotated[str | None, typer.Option(metavar="NAME", help="Built-in job (see `rheostat jobs`).")]
Load = Annotated[str | None, typer.Option(metavar="SHAPE[:KEY=VALUE]", help="Load (see `rheostat loads`).")]
Policy = Annotated[
    str | None, typer.Option(metavar="NAME[:KEY=VALUE]", help="Policy (see `rheostat policies`), or a .py file.")
]
Policies = Annotated[
    str | None, typer.Option("--policy", metavar="A,B,C", help="Policies, separated by commas, as in `simulate`.")
]
# Numbers are text here and are checked with the file's values: typer's own message does not name the value.
Seed = Annotated[str | None, typer.Option(metavar="N", help="Seed of everything random (default: 0).")]
Duration = Annotated[
    str | None, typer.Option(metavar="SECONDS", help="Simulated seconds (default: the load's own length).")
]
Interval = Annotated[
    str | None, typer.Option(metavar="SECONDS", help="Simulated seconds between decisions (default: 60).")
]
Headroom = Annotated[
    str | None, typer.Option(metavar="SHARE", help="Spare capacity as a share of the demand (default: 0.2).")
]
MaxLatency = Annotated[str | None, typer.Option(metavar="SECONDS", help="Largest latency (default: 10).")]
MaxLag = Annotated[str | None, typer.Option(metavar="SECONDS", help="Largest age of a waiting record.")]
MaxRecovery = Annotated[str | None, typer.Option(metavar="SECONDS", help="Longest recovery time after a failure.")]
Failures = Annotated[
    str | None, typer.Option(metavar="SECONDS,...", help="Moments at which a worker is lost (default: never).")
]
Start = Annotated[
    str | None, typer.Option(metavar="peak|min|OPERATOR=TASKS,...", help="Tasks at the start (default: peak).")
]
JournalUrl = Annotated[str | None, typer.Option("--journal", metavar="URL", help="Journal every step there.")]
JsonFile = Annotated[str | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON; - is stdout.")]
HtmlFile = Annotated[str | None, typer.Option("--html", metavar="FILE", help="Write an HTML report.")]
Measurements = Annotated[
    str | None, typer.Option("--journal", metavar="URL", help="Store measurements there, and reuse those it has.")
]
Master = Annotated[str | None, typer.Option(metavar="URL", help="Spark's master (default: a cluster on this machine).")]
LogJson = Annotated[bool, typer.Option("--log-json", help="Log JSON lines, for a collector of logs.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Log everything, not only warnings; show tracebacks.")]


@dataclass(frozen=True)
class Setup:
    """A file merged with the options of the command line."""

    config: Config
    policies: Mapping[str, Named]
    """Short form -> name and options, in the order of the command line."""
    notes: tuple[str, ...]
    """Defaults that depend on other values, in a sentence each."""


def read_setup(
    file: Path | None,
    policies: str | None,
    values: Mapping[str, str | None],
    objectives: Mapping[str, str | None],
    beside: str = "",
    base: Mapping[str, Any] | None = None,
) -> Setup:
    """Merge the options over the file's values, or over `base`.

    Without `policies` the file's own policy runs `beside` others.
    """
    from rheostat.config.named import label, named, parse_named
    from rheostat.config.reader import read_yaml, scalar
    from rheostat.errors import InvalidValue
    from rheostat.lab.experiment.config import make_config
    from rheostat.policy.registry import own_factor

    given = read_yaml(file) if file is not None else dict(base or {})
    texts = ("job", "load", "start", "journal")
    own = {key: value if key in texts else scalar(value) for key, value in values.items() if value is not None}
    if "failures_s" in own:
        own["failures_s"] = [scalar(part) for part in str(values["failures_s"]).split(",")]
    merged = {**given, **own}
    if isinstance(merged.get("start"), str):
        merged["start"] = _start(merged["start"])
    if policies is not None:
        named_policies = [parse_named(text) for text in policies.split(",")]
    else:
        others = [parse_named(text) for text in beside.split(",")] if beside else []
        first = [named(merged.get("policy", "ds2"), "name", "policy")] if "policy" in merged or not others else []
        named_policies = first + [one for one in others if one not in first]
    labels = [label(*one) for one in named_policies]
    if repeated := sorted({text for text in labels if labels.count(text) > 1}):
        raise InvalidValue(f"--policy names {repeated[0]!r} twice: name it once")
    name, policy_options = named_policies[0]
    merged["policy"] = {"name": name, **policy_options}
    slo = {key: scalar(value) for key, value in objectives.items() if value is not None}
    config = make_config(merged, slo, named_policies)
    factor = own_factor(named_policies) if config.slo.headroom is None else ""
    notes = (f"no default headroom: {factor} sets its own factor",) if factor else ()
    return Setup(config, dict(zip(labels, named_policies, strict=True)), notes)


def _start(text: str) -> str | dict[str, int]:
    """Parse `splitter=3,count=2`; the config checks other text."""
    if "=" not in text:
        return text
    from rheostat.config.named import parse_named

    return parse_named(f"start:{text.replace(',', ':')}")[1]


def number(option: str, text: str, least: float = 0.0) -> float:
    """Parse an option's number."""
    from rheostat.errors import InvalidValue
    from rheostat.job.frozen import check_number

    try:
        value = float(text)
    except ValueError as error:
        raise InvalidValue(f"{option} must be a number, not {text!r}") from error
    check_number(option, value, least=least)
    return value


def whole(option: str, text: str, least: int = 0) -> int:
    """Parse an option's whole number."""
    from rheostat.errors import InvalidValue

    value = number(option, text, least)
    if value != int(value):
        raise InvalidValue(f"{option} must be a whole number, not {text!r}")
    return int(value)
