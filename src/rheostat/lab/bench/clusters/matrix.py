"""Every Spark on every cluster manager: one job grows, shrinks, loses an executor and its driver, and loses no row."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from rheostat.engine.spark.session.settings import EMBEDDED_NAME
from rheostat.errors import RheostatError, first_line
from rheostat.lab.bench.measure import Measure
from rheostat.lab.clusters.cluster import Cluster
from rheostat.lab.clusters.kubernetes.cluster import has_go, kubernetes
from rheostat.lab.clusters.sparks import NEWEST, OLDEST, VERSIONS, pyspark_folder, spark_home
from rheostat.lab.clusters.standalone import standalone
from rheostat.lab.clusters.table_source import FORMATS, jars_of, watch_table
from rheostat.lab.clusters.table_source import SPARK as TABLE_SPARK
from rheostat.lab.clusters.visit import Visit, visit, visit_stock
from rheostat.lab.clusters.yarn import yarn
from rheostat.lab.experiment.processes import in_own_process
from rheostat.lab.experiment.trial import Progress

Visiting = Callable[[Path, Cluster, Path | None, Progress], Visit]
"""Takes a job through everything on a cluster, with a PySpark."""


def embedded(quick: bool, progress: Progress) -> list[Measure]:
    """Visit the cluster that a session starts by itself."""
    return _visit_all(EMBEDDED_NAME, (OLDEST,) if quick else VERSIONS, progress)


def on_standalone(quick: bool, progress: Progress) -> list[Measure]:
    """Visit Spark's own master and workers."""
    return _visit_all("standalone", (NEWEST,) if quick else VERSIONS, progress)


def on_yarn(quick: bool, progress: Progress) -> list[Measure]:
    """Visit YARN."""
    return _visit_all("yarn", (OLDEST,) if quick else (OLDEST, NEWEST), progress)


def on_kubernetes(quick: bool, progress: Progress) -> list[Measure]:
    """Visit Kubernetes."""
    return _visit_all("kubernetes", (NEWEST,) if quick else (OLDEST, NEWEST), progress) if _has_go(progress) else []


def stock(quick: bool, progress: Progress) -> list[Measure]:
    """Visit with the stock job: every Spark on the embedded cluster, the oldest and the newest on YARN and Kubernetes.

    It needs a Kafka broker, pandas and pyarrow.
    """
    where = [(EMBEDDED_NAME, version) for version in VERSIONS]
    where += [(manager, version) for manager in ("yarn", "kubernetes") for version in (OLDEST, NEWEST)]
    if quick:
        where = where[:1]
    elif not _has_go(progress):
        where = [(manager, version) for manager, version in where if manager != "kubernetes"]
    return [_visit_one(*one, progress, visit_stock, "stock") for one in where]


def tables(quick: bool, progress: Progress) -> list[Measure]:
    """Watch streams of real Delta and Iceberg tables."""
    return [_watch(name, progress) for name in FORMATS]


def _watch(name: str, progress: Progress) -> Measure:
    progress(f"{name} on Spark {TABLE_SPARK}")
    wrong, note = math.inf, ""
    try:
        with TemporaryDirectory(prefix="rheostat-table-", ignore_cleanup_errors=True) as folder:
            pyspark, jars = pyspark_folder(TABLE_SPARK, progress), jars_of(name, progress)
            seen = in_own_process(watch_table, name, Path(folder), pyspark, jars)
        wrong = float(seen.wrong) if seen.waiting and seen.after else math.inf
        windows = (*seen.waiting, *seen.after)
        shown = "; ".join(dict.fromkeys(map(str, windows)))
        note = f"of {len(windows)} windows; {seen.appended} waited; shown: {shown}"
    except (RheostatError, OSError, RuntimeError) as error:
        note = f"failed: {error}"
    return Measure("matrix", f"wrong_backlogs_{name}", wrong, "windows", "<= 0", "lower", note)


def _visit_all(manager: str, versions: Sequence[str], progress: Progress) -> list[Measure]:
    return [_visit_one(manager, version, progress) for version in versions]


def _visit_one(manager: str, version: str, progress: Progress, visiting: Visiting = visit, job: str = "") -> Measure:
    where = f"Spark {version} on {manager}" + (f", {job} job" if job else "")
    try:
        with TemporaryDirectory(prefix="rheostat-matrix-", ignore_cleanup_errors=True) as folder:
            pyspark = pyspark_folder(version, progress)
            with started(manager, Path(folder), pyspark, progress) as cluster:
                seen = visiting(Path(folder) / "job", cluster, pyspark, lambda what: progress(f"{where}: {what}"))
        wrong, note = float(seen.rows_lost + seen.rows_repeated), describe(seen)
    except (RheostatError, OSError) as error:
        progress(f"{where}: {error}")
        wrong, note = math.inf, f"failed: {first_line(error)}"
    return Measure(
        "matrix", "_".join(filter(None, ("rows_wrong", job, manager, version))), wrong, "rows", "<= 0", "lower", note
    )


def _has_go(progress: Progress) -> bool:
    if not (here := has_go()):
        progress("kubernetes: left out, its control plane is built by Go, which is not on the PATH")
    return here


@contextmanager
def started(manager: str, folder: Path, pyspark: Path | None, progress: Progress) -> Iterator[Cluster]:
    """Start a cluster whose executors run this PySpark."""
    home = spark_home(pyspark)
    if manager == "standalone":
        with standalone(folder, home) as cluster:
            yield cluster
    elif manager == "yarn":
        with yarn(folder, home, progress) as cluster:
            yield cluster
    elif manager == "kubernetes":
        with kubernetes(folder, home, notify=progress) as made:
            yield made.cluster
    else:
        yield Cluster(EMBEDDED_NAME)


def describe(seen: Visit) -> str:
    """Return what a visit saw."""
    words = f"; {'; '.join(seen.words)}" if seen.words else ""
    return (
        f"1 -> 3 executors {seen.grow_s:.1f} s, 3 -> 1 {seen.shrink_s:.1f} s, a killed executor replaced "
        f"{seen.replaced_s:.1f} s, a killed driver back {seen.back_s:.1f} s; {seen.rows_lost} rows lost, "
        f"{seen.rows_repeated} repeated in {seen.batches} batches{words}"
    )
