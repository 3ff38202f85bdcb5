"""A Spark session that can be resized while it runs: `rheostat.session`.

Without a master it starts a small cluster of its own, `local-cluster`: real executor processes on this machine, with
nothing to install or set up beyond Java.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING

from rheostat.clock import WallClock
from rheostat.engine.spark.executors.pool import Executors
from rheostat.engine.spark.executors.scheduler import SparkScheduler
from rheostat.engine.spark.session.embedded import LOCALHOST, embedded_cluster
from rheostat.engine.spark.session.java import use_java
from rheostat.engine.spark.session.settings import (
    EMBEDDED,
    MIN_MEMORY_MB,
    NEEDED,
    RECOMMENDED,
    check_master,
    checked_executors,
    missing_settings,
)
from rheostat.errors import EngineError, InvalidValue
from rheostat.job.frozen import check_whole
from rheostat.ports import Clock

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xss4m -XX:ReservedCodeCacheSize=240m"
"""Halves the start of a JVM. Long hot loops run slower for it, so only the embedded cluster gets it. The larger stack
is for Spark's regular expressions over generated code, which overflow where a plan has long literals (seen). With one
tier Java keeps room for 48 MB of compiled code instead of 240: a query that was started anew ten times has filled that,
Java stops compiling for good, and everything is several times slower (seen)."""
START_S = 120.0
"""After so long without the smallest number of executors the cluster is taken to have no room."""
POLL_S = 0.05


def session(
    app_name: str = "rheostat",
    master: str = "local-cluster",
    executors: tuple[int, int] = (1, 4),
    cores: int = 1,
    memory_mb: int = 512,
    conf: Mapping[str, str] | None = None,
) -> SparkSession:
    """Start a session with `executors[0]` executors that can be resized up to `executors[1]` while queries run.

    `cores` and `memory_mb` are those of one executor. `conf` adds Spark settings; one that contradicts what resizing
    needs is refused. The master `local-cluster` is a cluster on this machine, as large as `executors` may become.
    """
    settings = session_settings(app_name, master, executors, cores, memory_mb, conf)
    refuse_connect({**settings, **os.environ})
    if (active := _active_session()) is not None:
        return _same_or_refuse(active, settings)
    embedded = EMBEDDED.fullmatch(settings["spark.master"]) is not None
    spark = started(settings, embedded)
    try:
        context = spark.sparkContext
        if missing := missing_settings(dict(context.getConf().getAll())):
            raise InvalidValue("; ".join(map(str, missing)))
        cut(context, executors, WallClock())
    except BaseException:
        spark.stop()
        raise
    return spark


def session_settings(
    app_name: str,
    master: str,
    executors: tuple[int, int],
    cores: int,
    memory_mb: int,
    conf: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return every Spark setting of a session, after checking the arguments against each other."""
    smallest, largest = checked_executors(executors)
    check_whole("cores", cores, 1)
    check_whole("memory_mb", memory_mb, MIN_MEMORY_MB)
    if master == "local-cluster":
        master = f"local-cluster[{largest},{cores},{memory_mb}]"
    if problem := check_master(master):
        raise InvalidValue(problem)
    _check_room(master, largest, cores, memory_mb)
    given = {
        "spark.app.name": app_name,
        "spark.master": master,
        "spark.executor.cores": str(cores),
        "spark.executor.memory": f"{memory_mb}m",
        # A standalone cluster gives all it has at the start; this bounds it. YARN and Kubernetes read the second.
        "spark.cores.max": str(largest * cores),
        "spark.executor.instances": str(smallest),
    }
    defaults = {key: value for key, (value, _) in RECOMMENDED.items()}
    defaults |= {s.key: s.value for s in NEEDED if s.value is not None}
    if EMBEDDED.fullmatch(master):
        defaults |= {
            "spark.driver.host": LOCALHOST,
            "spark.driver.bindAddress": LOCALHOST,
            "spark.driver.extraJavaOptions": QUICK_START,
            "spark.executor.extraJavaOptions": QUICK_START,
            "spark.ui.showConsoleProgress": "false",
        }
    own = dict(conf or {})
    for key, value in own.items():
        if not isinstance(value, str):
            raise InvalidValue(f"conf[{key!r}] is {value!r}: Spark settings are strings")
        if key in given and given[key] != value:
            raise InvalidValue(f"conf[{key!r}] is {value!r}, but the session's arguments say {given[key]!r}")
    settings = {**defaults, **own, **given}
    if missing := missing_settings(settings):
        raise InvalidValue("conf: " + "; ".join(map(str, missing)))
    return settings


def cut(context: SparkContext, executors: tuple[int, int], clock: Clock) -> None:
    """Bring an application that has just started down to its smallest size, and wait until it is there."""
    smallest, largest = executors
    scheduler = SparkScheduler(context)
    lever = Executors(scheduler, clock)
    lever.request(smallest)
    registered = scheduler.registered()
    staying = len(set(registered) - set(lever.leaving()))
    lever.withdraw(still_starting(registered, largest)[max(smallest - staying, 0) :])
    deadline_s = clock.now() + START_S
    while len(lever.running()) != smallest or lever.leaving():
        if clock.now() > deadline_s:
            raise EngineError(
                f"{len(lever.running())} of {smallest} executors came within {START_S:g} s: the cluster may have no "
                "free cores or memory; ask for fewer or smaller executors"
            )
        lever.request(smallest)
        clock.sleep_until(clock.now() + POLL_S)


def still_starting(registered: Collection[str], launched: int) -> list[str]:
    """Return the executors that a standalone master, which numbers them from 0, has launched and that are not here yet.

    They are taken back where they are not needed: they would come up after the session is handed over, as too many.
    """
    return [name for name in map(str, range(launched)) if name not in registered]


def refuse_connect(settings: Mapping[str, str]) -> None:
    """Refuse Spark Connect, given settings and environment: its clients have no SparkContext to resize."""
    found = [key for key in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "spark.remote") if settings.get(key)]
    found += [key for key in ("spark.api.mode", "SPARK_API_MODE") if settings.get(key, "").lower() == "connect"]
    if found:
        raise InvalidValue(
            f"{' and '.join(found)} asks for Spark Connect, whose clients cannot add or remove executors: "
            "unset it and run in the driver's own process"
        )


def classic_context(spark: SparkSession) -> SparkContext:
    """Return the session's SparkContext; a Spark Connect session has none, and the error says so."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise InvalidValue("this is a Spark Connect session: executors can only be resized from the driver's process")
    return spark.sparkContext


def _check_room(master: str, largest: int, cores: int, memory_mb: int) -> None:
    """An embedded cluster's size is in its name; a real one's is not known before it is asked."""
    if (size := EMBEDDED.fullmatch(master)) is None:
        return
    workers, worker_cores, worker_mb = map(int, size.groups())
    room = workers * min(worker_cores // cores, worker_mb // memory_mb)
    if room < largest:
        raise InvalidValue(
            f"{master} holds {room} executors of {cores} cores and {memory_mb} MB, but executors asks for up to "
            f"{largest}: make it larger, or leave the master out and it is made to measure"
        )


def _active_session() -> SparkSession | None:
    try:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise EngineError(f"{error}: Spark is not installed; pip install 'rheostat[spark]'") from error
    active = SparkSession.getActiveSession()
    if active is not None or SparkContext._active_spark_context is None:
        return active
    return SparkSession(SparkContext._active_spark_context)


def _same_or_refuse(active: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """Spark would hand out the running session and ignore most of the settings that were asked for."""
    running = dict(classic_context(active).getConf().getAll())
    other = [f"{k} is {running.get(k)!r}, not {v!r}" for k, v in settings.items() if running.get(k) != v]
    if other:
        raise InvalidValue(
            "a Spark session with other settings runs in this process, and Spark allows only one: stop it first "
            f"(spark.stop()), or use it as it is. Different: {'; '.join(other)}"
        )
    return active


def started(settings: Mapping[str, str], embedded: bool) -> SparkSession:
    """Start a session with exactly these settings."""
    use_java()
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    with embedded_cluster() if embedded else nullcontext():
        return builder.getOrCreate()
