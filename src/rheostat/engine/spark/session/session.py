"""A Spark session whose executors can be resized while queries run: `rheostat.session`.

Without a master it starts `local-cluster`: a real cluster with executor processes on this machine, which needs nothing
but Java.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Collection, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from rheostat.clock import WallClock
from rheostat.engine.spark.executors.pool import Executors, Unacknowledged
from rheostat.engine.spark.executors.scheduler import SparkScheduler
from rheostat.engine.spark.session.archive import use_archives
from rheostat.engine.spark.session.embedded import LOCALHOST, embedded_cluster, environment
from rheostat.engine.spark.session.java import use_java
from rheostat.engine.spark.session.settings import (
    EMBEDDED,
    EMBEDDED_NAME,
    MEMORY_MB,
    MIN_MEMORY_MB,
    SHUFFLE_PARTITIONS,
    YIELDING,
    attach_settings,
    check_master,
    checked_executors,
    is_standalone,
    missing_settings,
    on_this_machine,
)
from rheostat.engine.spark.session.verbs import missing_verbs
from rheostat.engine.spark.session.versions import refuse_old, refuse_other_scala
from rheostat.errors import EngineError, InvalidValue, shown
from rheostat.job.frozen import check_whole
from rheostat.ports import Clock

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xss4m -XX:ReservedCodeCacheSize=240m"
"""JVM options that halve the start. Long hot loops run slower, so only an embedded cluster gets them. Spark's regular
expressions over generated code overflow the default stack where a plan has long literals (seen). With one compiler tier
Java reserves 48 MB for compiled code instead of 240; ten restarts of a query filled that, Java stopped compiling, and
everything ran several times slower (seen)."""
WORKER_PYTHON = "spark.pyspark.python"
START_S = 120.0
"""Seconds that the cluster has to supply `min_executors`; after that it has no free cores or memory."""
POLL_S = 0.05


def session(
    name: str = "rheostat",
    master: str = EMBEDDED_NAME,
    *,
    min_executors: int = 1,
    max_executors: int = 4,
    cores: int = 1,
    memory_mb: int = MEMORY_MB,
    conf: Mapping[str, str] | None = None,
) -> SparkSession:
    """Start a session with `min_executors` executors that can grow to `max_executors` while queries run.

    `cores` and `memory_mb` are those of one executor. The master `local-cluster` starts a cluster on this machine with
    room for `max_executors`. `conf` adds Spark settings; one that contradicts what resizing needs is refused.

    `spark.sql.shuffle.partitions` is 2 x max_executors x cores (8 by default) unless `conf` or spark-defaults.conf
    sets it. A stateful query fixes the number in its checkpoint, so the largest size decides. Where all executors run
    on this machine, Python workers use the driver's interpreter unless `spark.pyspark.python` or PYSPARK_PYTHON
    names another.
    """
    settings = session_settings(
        name,
        master,
        min_executors=min_executors,
        max_executors=max_executors,
        cores=cores,
        memory_mb=memory_mb,
        conf=conf,
    )
    refuse_connect({**settings, **os.environ})
    yielding = YIELDING.difference(conf or ())
    if (active := _active_session()) is not None:
        return _same_or_refuse(active, {key: value for key, value in settings.items() if key not in yielding})
    spark = start_session(settings, yielding)
    try:
        context = spark.sparkContext
        running = dict(context.getConf().getAll())
        if missing := missing_settings(running):
            raise InvalidValue("; ".join(map(str, missing)))
        jvm: Any = context._jvm
        jars = ",".join(running.get(key, "") for key in ("spark.jars", "spark.jars.packages")).split(",")
        refuse_other_scala(jars, str(jvm.scala.util.Properties.versionNumberString()))
        if verbs := missing_verbs(context):
            raise InvalidValue(f"the driver's account may not {', '.join(verbs)} pods: examples/kubernetes has a role")
        shrink_to_minimum(context, min_executors, max_executors, WallClock())
    except BaseException:
        spark.stop()
        raise
    log.info(
        "session %r on %s: %d to %d executors of %d cores, %s=%s",
        name,
        settings["spark.master"],
        min_executors,
        max_executors,
        cores,
        SHUFFLE_PARTITIONS,
        spark.conf.get(SHUFFLE_PARTITIONS),
    )
    return spark


def session_settings(
    name: str,
    master: str = EMBEDDED_NAME,
    *,
    min_executors: int = 1,
    max_executors: int = 4,
    cores: int = 1,
    memory_mb: int = MEMORY_MB,
    conf: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return every Spark setting of a session, after checking the arguments against each other."""
    checked_executors(min_executors, max_executors)
    check_whole("cores", cores, 1)
    check_whole("memory_mb", memory_mb, MIN_MEMORY_MB)
    if master == EMBEDDED_NAME:
        master = f"{EMBEDDED_NAME}[{max_executors},{cores},{memory_mb}]"
    if problem := check_master(master):
        raise InvalidValue(problem)
    _check_room(master, max_executors, cores, memory_mb)
    fixed = {
        "spark.app.name": name,
        "spark.master": master,
        "spark.executor.cores": str(cores),
        "spark.executor.memory": f"{memory_mb}m",
        # A standalone cluster gives all it has at the start; this bounds it. YARN and Kubernetes read the second.
        "spark.cores.max": str(max_executors * cores),
        "spark.executor.instances": str(min_executors),
    }
    lines = attach_settings(master, min_executors=min_executors, max_executors=max_executors, cores=cores, conf=conf)
    defaults = {line.key: line.value for line in lines}
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
            raise InvalidValue(f"conf[{key!r}] is {shown(key, value)}: Spark settings are strings")
        if key in fixed and fixed[key] != value:
            raise InvalidValue(f"conf[{key!r}] is {value!r}, but the session's arguments say {fixed[key]!r}")
    settings = {**defaults, **own, **fixed}
    if missing := missing_settings(settings):
        raise InvalidValue("conf: " + "; ".join(map(str, missing)))
    return settings


def start_session(settings: Mapping[str, str], yielding: Collection[str] = ()) -> SparkSession:
    """Start a session with these settings; the `yielding` keys are only set where no Spark configuration sets them."""
    java = use_java()
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession
    from pyspark.version import __version__

    refuse_old(__version__)
    settings = use_archives(settings, java)
    firm = {key: value for key, value in settings.items() if key not in yielding}
    embedded = EMBEDDED.fullmatch(settings.get("spark.master", "")) is not None
    with embedded_cluster() if embedded else nullcontext(), environment(worker_python(settings)):
        # The JVM reads spark-defaults.conf when it starts, so that is where the site's own settings are known.
        SparkContext._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll(list(firm.items())))
        site = SparkConf(loadDefaults=True)
        weak = {key: value for key, value in settings.items() if key in yielding and not site.contains(key)}
        builder = SparkSession.builder
        for key, value in {**firm, **weak}.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()


def worker_python(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variable that names the interpreter of Python workers, where it has to be set.

    PySpark reads `spark.pyspark.python` only under spark-submit, and otherwise starts the `python3` of the PATH. Where
    a virtual environment is used but not activated, that is another interpreter, without the user's packages.
    """
    if python := settings.get(WORKER_PYTHON):
        return {"PYSPARK_PYTHON": python}
    if os.environ.get("PYSPARK_PYTHON") or not on_this_machine(settings.get("spark.master", "")) or not sys.executable:
        return {}
    return {"PYSPARK_PYTHON": sys.executable}


def shrink_to_minimum(context: SparkContext, min_executors: int, max_executors: int, clock: Clock) -> None:
    """Bring an application that has just started to its smallest size, and wait until it has it."""
    scheduler = SparkScheduler(context)
    executors = Executors(scheduler, clock)
    deadline_s = clock.monotonic() + START_S
    _request(executors, min_executors, clock, deadline_s)
    if is_standalone(str(context.master)):
        registered = scheduler.registered()
        staying = len(set(registered) - set(executors.leaving()))
        executors.withdraw(unregistered_executors(registered, max_executors)[max(min_executors - staying, 0) :])
    while len(executors.running()) != min_executors or executors.leaving():
        if clock.monotonic() > deadline_s:
            raise EngineError(
                f"{len(executors.running())} of {min_executors} executors registered within {START_S:g} s: the cluster "
                "may have no free cores or memory; use fewer or smaller executors"
            )
        _request(executors, min_executors, clock, deadline_s)
        clock.sleep(POLL_S)


def _request(executors: Executors, number: int, clock: Clock, deadline_s: float) -> None:
    """Request executors until the cluster manager acknowledges: YARN's application master may register later."""
    while True:
        try:
            executors.request(number)
            return
        except Unacknowledged:
            if clock.monotonic() > deadline_s:
                raise
            clock.sleep(POLL_S)


def unregistered_executors(registered: Collection[str], launched: int) -> list[str]:
    """Return the executors that a standalone master, which numbers them from 0, launched and that have not registered.

    Those beyond the smallest size are withdrawn: they would register later, as surplus.
    """
    return [name for name in map(str, range(launched)) if name not in registered]


def refuse_connect(settings: Mapping[str, str]) -> None:
    """Refuse settings and environment variables that select Spark Connect: its clients have no SparkContext."""
    connect = [key for key in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "spark.remote") if settings.get(key)]
    connect += [key for key in ("spark.api.mode", "SPARK_API_MODE") if settings.get(key, "").lower() == "connect"]
    if connect:
        raise InvalidValue(
            f"{' and '.join(connect)} selects Spark Connect, whose clients cannot add or remove executors: "
            "unset it and run in the driver's own process"
        )


def classic_context(spark: SparkSession) -> SparkContext:
    """Return the session's SparkContext; refuse a Spark Connect session, which has none."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise InvalidValue("this is a Spark Connect session: executors can only be resized from the driver's process")
    return spark.sparkContext


def _check_room(master: str, max_executors: int, cores: int, memory_mb: int) -> None:
    """Refuse an embedded cluster that is too small; only its master URL states its size."""
    if (size := EMBEDDED.fullmatch(master)) is None:
        return
    workers, worker_cores, worker_mb = map(int, size.groups())
    room = workers * min(worker_cores // cores, worker_mb // memory_mb)
    if room < max_executors:
        raise InvalidValue(
            f"{master} has room for {room} executors of {cores} cores and {memory_mb} MB, but max_executors is "
            f"{max_executors}: make it larger, or use the master {EMBEDDED_NAME!r}, which takes its size from the "
            "arguments"
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
    """Return the running session if it has these settings: Spark itself would return it and ignore most of them."""
    running = dict(classic_context(active).getConf().getAll())
    different = [
        f"{key} is {shown(key, running.get(key))}, not {shown(key, value)}"
        for key, value in settings.items()
        if not _equal(key, running, value)
    ]
    if different:
        raise InvalidValue(
            "a Spark session with other settings runs in this process, and Spark allows only one: stop it first "
            f"(spark.stop()), or use it as it is. Different: {'; '.join(different)}"
        )
    return active


def _equal(key: str, running: Mapping[str, str], value: str) -> bool:
    # Spark puts options of its own in front of the JVM options that it was given.
    return running.get(key, "").endswith(value) if key.endswith("JavaOptions") else running.get(key) == value
