"""What live resizing needs of a Spark: settings as data, each with its reason, and a master that can scale.

Nothing here imports Spark, so that `rheostat doctor` and the configuration can ask without starting it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rheostat.errors import InvalidValue
from rheostat.job.frozen import check_whole

MAX_STAGE_ATTEMPTS = 100
MIN_STAGE_ATTEMPTS = 20
MIN_MEMORY_MB = 480
"""Spark refuses a heap below 450 MB as the JVM counts it, and the JVM counts a few percent less than it is given."""
EMBEDDED = re.compile(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,\s*(\d+)\s*\]")


@dataclass(frozen=True, slots=True)
class Setting:
    """One Spark setting that resizing depends on."""

    key: str
    needs: str
    """What the value must be, for messages."""
    fits: Callable[[str], bool]
    spark_default: str | None
    """What Spark does where the key is not set; None means that there is no usable default."""
    value: str | None
    """What `rheostat.session` sets; None where Spark's own default is right, or where the caller's numbers decide."""
    why: str


@dataclass(frozen=True, slots=True)
class Missing:
    """A setting that keeps live resizing from being safe, with the value that was found (None: not set)."""

    key: str
    needs: str
    found: str | None
    why: str

    def __str__(self) -> str:
        found = "not set" if self.found is None else f"{self.found!r}"
        return f"{self.key} is {found}, it must be {self.needs}: {self.why}"


def is_false(value: str) -> bool:
    """Read a boolean as Spark does."""
    return value.strip().lower() == "false"


def at_least(minimum: int) -> Callable[[str], bool]:
    """Return a test for a whole number of at least the minimum."""

    def fits(value: str) -> bool:
        return re.fullmatch(r"\s*\d+\s*", value) is not None and int(value) >= minimum

    return fits


NEEDED: tuple[Setting, ...] = (
    Setting(
        "spark.dynamicAllocation.enabled",
        "false",
        is_false,
        "false",
        "false",
        "dynamic allocation is blind to lag, would undo every resize, and real-time mode refuses it",
    ),
    Setting(
        "spark.stage.maxConsecutiveAttempts",
        f"{MIN_STAGE_ATTEMPTS} or more",
        at_least(MIN_STAGE_ATTEMPTS),
        "4",
        str(MAX_STAGE_ATTEMPTS),
        "a removed executor takes its shuffle files along and the stage is tried again; Spark's default gives the "
        "query up at the fourth time",
    ),
    Setting(
        "spark.stage.maxAttempts",
        f"{MIN_STAGE_ATTEMPTS} or more",
        at_least(MIN_STAGE_ATTEMPTS),
        "2147483647",
        None,
        "it is a second limit on the same attempts",
    ),
    Setting(
        "spark.task.maxFailures",
        "4 or more",
        at_least(4),
        "4",
        None,
        "executors that are removed on purpose do not count as failures, but one that crashes does, and so does a "
        "large task result that went with a removed executor",
    ),
    Setting(
        "spark.excludeOnFailure.application.fetchFailure.enabled",
        "false",
        is_false,
        "false",
        None,
        "it would shut out the whole host of a removed executor at the first shuffle file that is missed",
    ),
    Setting(
        "spark.executor.cores",
        "a whole number of at least 1",
        at_least(1),
        None,
        None,
        "executors must all be of one known size; where it is not set, a standalone executor takes all of its worker",
    ),
)
"""Without these a resize can fail the query or be undone."""

RECOMMENDED: Mapping[str, tuple[str, str]] = {
    "spark.standalone.executorRemoveDelayOnDisconnection": (
        "500ms",
        "Spark waits 5 s before it believes that an executor is gone, even one that was removed on purpose, and the "
        "tasks that ran on it hang for as long",
    ),
}
"""Key -> what `rheostat.session` sets unless the caller says otherwise, and why. Right without it, only slower."""


def checked_executors(executors: tuple[int, int] | None) -> tuple[int, int]:
    """Return the smallest and largest number of executors; refuse what cannot be that."""
    if executors is None:
        raise InvalidValue("executors is missing: the smallest and the largest number of them, as in executors=(2, 8)")
    try:
        smallest, largest = executors
    except (TypeError, ValueError):
        raise InvalidValue(f"executors is {executors!r}: give the smallest and largest number, as in (2, 8)") from None
    check_whole("executors[0]", smallest, 1)
    check_whole("executors[1]", largest, 1)
    if smallest > largest:
        raise InvalidValue(
            f"executors is ({smallest}, {largest}): the smallest number comes first, as in ({largest}, {smallest})"
        )
    return smallest, largest


def missing_settings(conf: Mapping[str, str]) -> tuple[Missing, ...]:
    """Name every setting that keeps live resizing from being safe; empty when all is well."""
    found = []
    for setting in NEEDED:
        value = conf.get(setting.key)
        effective = setting.spark_default if value is None else value
        if effective is None or not setting.fits(effective):
            found.append(Missing(setting.key, setting.needs, value, setting.why))
    return tuple(found)


def check_master(master: str) -> str | None:
    """Say why executors cannot be added and removed under this master; None when they can.

    Tried: `local-cluster[n,cores,mb]`, and `spark://` with one worker. YARN and Kubernetes: same calls, untested.
    """
    name = master.strip()
    if EMBEDDED.fullmatch(name) or name.startswith(("spark://", "k8s://")) or name == "yarn":
        return None
    if re.fullmatch(r"local(\[.*\])?", name):
        return (
            f"master {name!r} runs everything in one process and has no executors to add or remove: "
            "use local-cluster[n,cores,mb], which rheostat.session starts by itself, or a cluster"
        )
    if name.startswith("sc://"):
        return f"master {name!r} is Spark Connect, whose clients cannot reach the scheduler: connect to the cluster"
    return f"master {name!r} is not known: use local-cluster[n,cores,mb], spark://host:port, yarn or k8s://host:port"


def untested_master(master: str) -> bool:
    """Whether the resizing calls exist under this master, but nobody has tried them here."""
    return master.startswith(("yarn", "k8s://"))


def check_application(master: str, conf: Mapping[str, str]) -> None:
    """Refuse an application whose executors cannot be added and removed safely."""
    if problem := check_master(master):
        raise InvalidValue(problem)
    if missing := missing_settings(conf):
        lines = "\n".join(f"  {item}" for item in missing)
        raise InvalidValue(f"Spark settings that live resizing needs are missing:\n{lines}\nrheostat.session sets them")
