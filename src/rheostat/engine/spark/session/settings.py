"""What live resizing needs of Spark: settings, each with its reason, and a master whose executors can change.

`attach_settings` returns the settings for a master. `rheostat settings` prints them, `rheostat.session` sets them, and
the refusal of `autoscale` ends with those that are missing. Nothing here imports Spark.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from rheostat.engine.spark.executors.scheduler import DECOMMISSION, is_true
from rheostat.errors import InvalidValue
from rheostat.job.frozen import check_whole

MAX_STAGE_ATTEMPTS = 100
"""Consecutive attempts of one stage that a session allows: far above what removals inside one batch cause."""
MIN_STAGE_ATTEMPTS = 20
"""Fewest consecutive attempts that are accepted: every removal inside a long batch can cost one."""
MIN_POD_FAILURES = 10_000
"""Fewest failures that are accepted on Kubernetes, within an hour: a refused pod is one every second."""
MIN_MEMORY_MB = 480
"""Smallest heap of an executor. Spark refuses less than 450 MB, and the JVM reports a few percent below its limit."""
MEMORY_MB = 512
"""Default heap of an executor of an embedded cluster."""
PARTITIONS_PER_SLOT = 2
"""Shuffle partitions per slot of the largest size: one would leave every slot waiting for the slowest partition."""
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
FAILURES_INTERVAL = "spark.executor.failuresValidityInterval"
EMBEDDED_NAME = "local-cluster"
EMBEDDED = re.compile(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,\s*(\d+)\s*\]")
"""Master URL of an embedded cluster: workers, cores of each, memory of each in MB."""
LOOPBACK = re.compile(r"spark://(localhost|127\.\d+\.\d+\.\d+|\[::1\]):\d+")


@dataclass(frozen=True, slots=True)
class Setting:
    """A Spark setting that resizing depends on."""

    key: str
    needs: str
    """Description of the accepted values, for messages."""
    fits: Callable[[str], bool]
    spark_default: str | None
    """Value that Spark uses when the key is not set; None where Spark's default is not acceptable on every master."""
    value: str | None
    """Value that `rheostat.session` sets; None where Spark's default fits, or where the executor's size decides."""
    why: str


@dataclass(frozen=True, slots=True)
class Missing:
    """A setting that makes live resizing unsafe: not set (`actual` is None), or set to a value that does not fit."""

    key: str
    needs: str
    actual: str | None
    why: str

    def __str__(self) -> str:
        actual = "not set" if self.actual is None else f"{self.actual!r}"
        return f"{self.key} is {actual}, it must be {self.needs}: {self.why}"


@dataclass(frozen=True, slots=True)
class ConfLine:
    """One `--conf` line of spark-submit."""

    key: str
    value: str
    needed: bool
    """True where `autoscale` refuses an application without it; False where it is only recommended."""
    why: str

    def __str__(self) -> str:
        return f"--conf {shlex.quote(f'{self.key}={self.value}')}"


def any_value(value: str) -> bool:
    """Accept whatever is set."""
    return bool(value.strip())


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
        "dynamic allocation does not see lag, reverts every resize, and real-time mode refuses it",
    ),
    Setting(
        "spark.stage.maxConsecutiveAttempts",
        f"{MIN_STAGE_ATTEMPTS} or more",
        at_least(MIN_STAGE_ATTEMPTS),
        "4",
        str(MAX_STAGE_ATTEMPTS),
        "a removed executor takes its shuffle files with it and Spark repeats the stage; by default the fourth "
        "repetition fails the query",
    ),
    Setting(
        "spark.stage.maxAttempts",
        f"{MIN_STAGE_ATTEMPTS} or more",
        at_least(MIN_STAGE_ATTEMPTS),
        "2147483647",
        None,
        "it is a second limit on the same attempts; Spark's default fits",
    ),
    Setting(
        "spark.task.maxFailures",
        "4 or more",
        at_least(4),
        "4",
        None,
        "removing an executor does not count as a failure of its tasks, but a crashed executor does, and so does a "
        "large task result that a removed executor held; Spark's default fits",
    ),
    Setting(
        "spark.excludeOnFailure.application.fetchFailure.enabled",
        "false",
        is_false,
        "false",
        None,
        "it excludes the whole host of a removed executor at the first missing shuffle file; Spark's default fits",
    ),
    Setting(
        "spark.executor.cores",
        "a whole number of at least 1",
        at_least(1),
        None,
        None,
        "every executor must have the same number of slots; by default a standalone executor takes all cores of its "
        "worker",
    ),
)
"""Settings without which a resize can fail the query or is reverted."""
FAILURES = Setting(
    "spark.executor.maxNumFailures",
    f"{MIN_STAGE_ATTEMPTS} or more",
    at_least(MIN_STAGE_ATTEMPTS),
    None,
    "100",
    "on YARN Spark ends the application after max(2 x instances, 3) executor failures, and it does not learn that the "
    "application has grown",
)
"""Needed on YARN."""
POD_FAILURES = replace(
    FAILURES,
    needs=f"{MIN_POD_FAILURES} or more",
    fits=at_least(MIN_POD_FAILURES),
    value="100000",
    why="on Kubernetes Spark ends the application after max(2 x instances, 3) executor failures; from 4.2 on a pod "
    "that a quota refuses is one, and Spark asks for it again every second",
)
"""Needed on Kubernetes."""
DEADLINE = Setting(
    "spark.executor.decommission.forceKillTimeout",
    "set",
    any_value,
    None,
    "60s",
    "spark.decommission.enabled is true, and without a deadline an executor whose blocks find no place never leaves",
)
"""Needed where executors are decommissioned."""
MOVING: Mapping[str, tuple[str, str]] = {
    "spark.storage.decommission.enabled": ("true", "a decommissioned executor moves its blocks before it leaves"),
    "spark.storage.decommission.shuffleBlocks.enabled": ("true", "shuffle files move, so no task is repeated"),
    "spark.storage.decommission.rddBlocks.enabled": ("true", "cached blocks move"),
    "spark.storage.decommission.replicationReattemptInterval": (
        "1s",
        "Spark looks for blocks that are left to move this often; by default every 30 s, which is how long an executor "
        "without any blocks stays",
    ),
}
"""Key -> value and reason, where executors are decommissioned."""


def _needed(master: str, conf: Mapping[str, str]) -> tuple[Setting, ...]:
    """Return the settings that resizing needs under this master, with this configuration."""
    failures = FAILURES if master.startswith("yarn") else POD_FAILURES if master.startswith("k8s://") else None
    return (*NEEDED, *((failures,) if failures else ()), *((DEADLINE,) if decommissions(conf) else ()))


def decommissions(conf: Mapping[str, str]) -> bool:
    """Whether Spark decommissions executors that leave."""
    return is_true(conf.get(DECOMMISSION, ""))


RECOMMENDED: Mapping[str, tuple[str, str]] = {
    "spark.standalone.executorRemoveDelayOnDisconnection": (
        "500ms",
        "by default Spark waits 5 s before it reschedules the tasks of an executor that has left",
    ),
}
"""Key -> value and reason, on standalone clusters. Results are right without them; resizing is slower."""
ANYWHERE: Mapping[str, tuple[str, str]] = {
    "spark.locality.wait": (
        "300ms",
        "by default a task waits 3 s for its preferred executor while others are idle: partitions of the state stay on "
        "the executors that were there first, and tasks of a Kafka source wait for an executor that has left",
    ),
    "spark.executor.heartbeatInterval": (
        "1s",
        "heartbeats carry the rows of running tasks and bring the status store up to date; by default every 10 s, "
        "which leaves a long batch unseen. It stays far below spark.network.timeout (120 s)",
    ),
    "spark.executor.heartbeat.maxFailures": (
        "600",
        "the number of heartbeats without an answer after which an executor exits: 600 of 1 s are the 10 minutes of "
        "Spark's 60 of 10 s, so a driver that pauses for a minute keeps its executors",
    ),
}
"""Key -> value and reason, on every cluster. Results are right without them; executors that come are used later, and a
running batch is seen later."""
YIELDING = frozenset({*RECOMMENDED, *ANYWHERE, *MOVING, FAILURES_INTERVAL, SHUFFLE_PARTITIONS})
"""Keys that `rheostat.session` leaves alone where spark-defaults.conf or PYSPARK_SUBMIT_ARGS sets them."""


def attach_settings(
    master: str,
    *,
    min_executors: int = 1,
    max_executors: int | None = None,
    cores: int | None = None,
    conf: Mapping[str, str] | None = None,
) -> tuple[ConfLine, ...]:
    """Return the settings that an application on this master is started with, the needed ones first.

    `conf` is what is set already: where executors are decommissioned, more is needed. The master's own size supplies
    `max_executors` and `cores` for an embedded cluster; elsewhere they are 4 and 1.
    """
    if problem := check_master(master):
        raise InvalidValue(problem)
    size = EMBEDDED.fullmatch(master.strip())
    if cores is None:
        cores = int(size[2]) if size else 1
    check_whole("cores", cores, 1)
    if max_executors is None:
        max_executors = int(size[1]) * (int(size[2]) // cores) if size else max(4, min_executors)
    checked_executors(min_executors, max_executors)
    needed = (
        ConfLine(setting.key, setting.value or setting.spark_default or str(cores), True, setting.why)
        for setting in _needed(master.strip(), conf or {})
    )
    moving = MOVING if decommissions(conf or {}) else {}
    return (*needed, *_recommended(master.strip(), min_executors, max_executors, cores, {**ANYWHERE, **moving}))


def _recommended(
    master: str, smallest: int, largest: int, cores: int, anywhere: Mapping[str, tuple[str, str]]
) -> Iterator[ConfLine]:
    if is_standalone(master):
        # spark.executor.instances does not bound the start of a standalone application without dynamic allocation.
        most = "a standalone master gives an application every free core at its start; this is max_executors x cores"
        yield ConfLine("spark.cores.max", str(largest * cores), False, most)
        for key, (value, why) in RECOMMENDED.items():
            yield ConfLine(key, value, False, why)
    else:
        yield ConfLine("spark.executor.instances", str(smallest), False, "the application starts with min_executors")
        failures = "executor failures are counted over the application's whole life by default; a query runs for months"
        yield ConfLine(FAILURES_INTERVAL, "1h", False, failures)
    for key, (value, why) in anywhere.items():
        yield ConfLine(key, value, False, why)
    if size := EMBEDDED.fullmatch(master):
        heap = f"{max(int(size[3]) // max(int(size[2]) // cores, 1), MIN_MEMORY_MB)}m"
        why = "a worker of local-cluster starts no executor that asks for more memory than it has; Spark asks for 1 GB"
        yield ConfLine("spark.executor.memory", heap, False, why)
    partitions = (
        f"a stateful query fixes this number in its checkpoint at its first start: {PARTITIONS_PER_SLOT} x "
        "max_executors x cores gives every slot of the largest size a partition, and evens out skew; Spark's default "
        "is 200"
    )
    yield ConfLine(SHUFFLE_PARTITIONS, str(shuffle_partitions(largest, cores)), False, partitions)


def submit_lines(lines: Iterable[ConfLine]) -> str:
    """Join `--conf` lines so that they can be pasted into a spark-submit command."""
    return " \\\n".join(map(str, lines))


def shuffle_partitions(max_executors: int, cores: int) -> int:
    """Return the shuffle partitions for an application that grows to this size.

    A stateful query fixes the number in its checkpoint, so the largest size decides: with fewer partitions than slots
    some slots would stay idle.
    """
    return PARTITIONS_PER_SLOT * max_executors * cores


def checked_executors(min_executors: int | None, max_executors: int | None) -> tuple[int, int]:
    """Return both numbers of executors; refuse what is missing, not a whole number, or in the wrong order."""
    if min_executors is None or max_executors is None:
        name = "min_executors" if min_executors is None else "max_executors"
        raise InvalidValue(f"{name} is missing: give both, as in min_executors=2, max_executors=8")
    check_whole("min_executors", min_executors, 1)
    check_whole("max_executors", max_executors, 1)
    if min_executors > max_executors:
        raise InvalidValue(
            f"min_executors is {min_executors} and max_executors is {max_executors}: the minimum must not exceed the "
            "maximum"
        )
    return min_executors, max_executors


def missing_settings(conf: Mapping[str, str]) -> tuple[Missing, ...]:
    """Return every setting that makes live resizing unsafe; empty when all of them fit."""
    missing = []
    for setting in _needed(conf.get("spark.master", "").strip(), conf):
        actual = conf.get(setting.key)
        effective = setting.spark_default if actual is None else actual
        if effective is None or not setting.fits(effective):
            missing.append(Missing(setting.key, setting.needs, actual, setting.why))
    return tuple(missing)


def check_master(master: str) -> str | None:
    """Return why executors cannot be added and removed under this master; None when they can."""
    name = master.strip()
    if EMBEDDED.fullmatch(name) or name.startswith(("spark://", "k8s://")) or name == "yarn":
        return None
    if re.fullmatch(r"local(\[.*\])?", name):
        return (
            f"master {name!r} runs everything in the driver's process and has no executors to add or remove: "
            "use local-cluster[n,cores,mb], which rheostat.session starts by itself, or a cluster"
        )
    if name.startswith("sc://"):
        return (
            f"master {name!r} is Spark Connect, whose clients cannot resize executors: run the driver on the cluster, "
            "with the cluster's own master URL"
        )
    return f"master {name!r} is unknown: use local-cluster[n,cores,mb], spark://host:port, yarn or k8s://host:port"


def is_standalone(master: str) -> bool:
    """Whether a standalone master schedules the executors; that of an embedded cluster is one."""
    return master.startswith("spark://") or EMBEDDED.fullmatch(master) is not None


def on_this_machine(master: str) -> bool:
    """Whether every executor runs on the driver's machine, where the driver's files and interpreter exist."""
    return master.startswith("local") or LOOPBACK.fullmatch(master) is not None


def application_needs(master: str, conf: Mapping[str, str]) -> tuple[str, ...]:
    """Return what keeps the executors of an application from being added and removed safely; () where nothing does."""
    if problem := check_master(master):
        return (problem,)
    return tuple(map(str, missing_settings({**conf, "spark.master": master})))


def check_application(master: str, conf: Mapping[str, str]) -> None:
    """Refuse an application whose executors cannot be added and removed safely; end with the lines that mend it."""
    if problem := check_master(master):
        raise InvalidValue(problem)
    if missing := missing_settings({**conf, "spark.master": master}):
        reasons = "\n".join(f"  {item}" for item in missing)
        keys = {item.key for item in missing}
        lines = submit_lines(line for line in attach_settings(master, conf=conf) if line.key in keys)
        raise InvalidValue(
            f"this Spark application cannot be resized safely:\n{reasons}\n"
            "Start it with rheostat.session, or give spark-submit these lines (rheostat settings prints all of them):\n"
            f"{lines}"
        )
