"""The options that several commands share, and what they make of a YAML file's values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
# Numbers come as text and are checked with the file's values: typer's own message would not name the value.
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
MaxRecovery = Annotated[
    str | None, typer.Option(metavar="SECONDS", help="Longest time from a failure until it is caught up with.")
]
Failures = Annotated[
    str | None, typer.Option(metavar="SECONDS,...", help="Moments at which a worker is lost (default: never).")
]
Start = Annotated[
    str | None, typer.Option(metavar="peak|min|OPERATOR=TASKS,...", help="Tasks at the start (default: peak).")
]
JournalUrl = Annotated[str | None, typer.Option("--journal", metavar="URL", help="Write every step down there.")]
JsonFile = Annotated[str | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON; - is stdout.")]
HtmlFile = Annotated[str | None, typer.Option("--html", metavar="FILE", help="Write a report to look at.")]
Measurements = Annotated[
    str | None, typer.Option("--journal", metavar="URL", help="Keep measurements there, and go on from them.")
]
Master = Annotated[str | None, typer.Option(metavar="URL", help="Spark's master (default: a cluster on this machine).")]
LogJson = Annotated[bool, typer.Option("--log-json", help="Log JSON lines, for a collector of logs.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show everything that is logged, not only warnings.")]


@dataclass(frozen=True)
class Chosen:
    """What a file and the options above it come to."""

    config: Config
    policies: Mapping[str, Named]
    """Short form -> name and options, in the order in which they were asked for."""
    notes: tuple[str, ...]
    """What was decided for the user."""


def choose(
    file: Path | None,
    policies: str | None,
    values: Mapping[str, str | None],
    objectives: Mapping[str, str | None],
    beside: str = "",
) -> Chosen:
    """Put the options above the file's values; where no policies are asked for, the file's own runs `beside` others."""
    from rheostat.config.named import label, named, parse_named
    from rheostat.config.reader import read_yaml, scalar
    from rheostat.errors import InvalidValue
    from rheostat.lab.experiment.config import make_config
    from rheostat.policy.registry import own_factor

    base = read_yaml(file) if file is not None else {}
    words = ("job", "load", "start", "journal")
    chosen = {key: value if key in words else scalar(value) for key, value in values.items() if value is not None}
    if "failures_s" in chosen:
        chosen["failures_s"] = [scalar(part) for part in str(values["failures_s"]).split(",")]
    merged = {**base, **chosen}
    if isinstance(merged.get("start"), str):
        merged["start"] = _start(merged["start"])
    if policies is not None:
        asked = [parse_named(text) for text in policies.split(",")]
    else:
        others = [parse_named(text) for text in beside.split(",")] if beside else []
        own = [named(merged.get("policy", "ds2"), "name", "policy")] if "policy" in merged or not others else []
        asked = own + [one for one in others if one not in own]
    labels = [label(*one) for one in asked]
    if twice := sorted({text for text in labels if labels.count(text) > 1}):
        raise InvalidValue(f"policy {twice[0]!r} is there twice")
    merged["policy"] = {"name": asked[0][0], **asked[0][1]}
    given = {key: scalar(value) for key, value in objectives.items() if value is not None}
    config = make_config(merged, given, asked)
    factor = own_factor(asked) if config.slo.headroom is None else ""
    notes = (f"no default headroom, because {factor} sets its own factor",) if factor else ()
    return Chosen(config, dict(zip(labels, asked, strict=True)), notes)


def _start(text: str) -> str | dict[str, int]:
    """Read `splitter=3,count=2`; words are left to the config's own check."""
    if "=" not in text:
        return text
    from rheostat.config.named import parse_named

    return parse_named(f"start:{text.replace(',', ':')}")[1]


def number(option: str, text: str, least: float = 0.0) -> float:
    """Read the number that an option was given."""
    from rheostat.errors import InvalidValue
    from rheostat.job.frozen import check_number

    try:
        value = float(text)
    except ValueError as error:
        raise InvalidValue(f"{option} {text!r} is not a number") from error
    check_number(option, value, least=least)
    return value


def whole(option: str, text: str, least: int = 0) -> int:
    """Read the whole number that an option was given."""
    from rheostat.errors import InvalidValue

    value = number(option, text, least)
    if value != int(value):
        raise InvalidValue(f"{option} {text!r} is not a whole number")
    return int(value)
