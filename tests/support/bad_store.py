"""A store for checkpoints with faults that a test sets while Spark runs: Hadoop's scheme `bad://` over a local folder.

    store = BadStore(tmp_path)
    spark = builder.config(map=conf()).getOrCreate()            # or add_to(spark), when Spark runs already
    query = frame.writeStream.option("checkpointLocation", store.url("checkpoint"))...
    with store.faults(Fault("fail", "rename", nth=3, path="/commits/")):
        ...
    assert store.calls("rename", "/commits/")[2].outcome == "fail"

Without faults the store is as good as HDFS. `BadFileSystem.java` is the store; Janino, which Spark ships, compiles it.
"""

from __future__ import annotations

import functools
import hashlib
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from spark_jars import add_jars

from rheostat.engine.spark.session.ivy import cache_folder
from rheostat.engine.spark.session.java import find_java
from rheostat.engine.spark.session.java_process import SMALL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCE = Path(__file__).with_name("BadFileSystem.java")
FILE_SYSTEM = "rheostat.stores.BadFileSystem"
CONTEXT = "fs.AbstractFileSystem.bad.impl"

Kind = Literal["create", "close", "open", "rename", "delete", "list", "mkdirs", "status", "half", "copied", "any"]
"""Kinds of calls. `status` is getFileStatus and exists; `half` and `copied` are the steps of a rename that copies."""
Effect = Literal["slow", "fail", "lose", "hold", "copy", "crash", "crash after"]
"""What a fault does to a call.

| effect | what |
|---|---|
| `slow` | the call takes `ms` milliseconds more |
| `fail` | an IOException, without effect on the store |
| `lose` | the call takes effect, then an IOException: its answer is lost |
| `hold` | the call waits until the fault is removed, then proceeds |
| `copy` | a rename copies the file, then deletes the source, and overwrites an existing file |
| `crash`, `crash after` | the JVM halts, before or after the call takes effect |
"""


Access = Literal["FileContext", "FileSystem", "deleting"]
"""Spark's way to the store. `deleting` is a FileContext that deletes a file before a rename replaces it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to calls of one kind."""

    effect: Effect
    kind: Kind
    nth: int | None = None
    """The only call that is affected, counted from 1 in each JVM since the fault was set; None for every call."""
    path: str = ""
    """Regular expression: only calls on a path in which it occurs are counted. A rename's path is its target."""
    ms: int = 0


@dataclass(frozen=True, slots=True)
class Call:
    """A call that the store has got. It is logged when it begins."""

    kind: str
    outcome: str
    """The effect of its fault, `ok` without one or with `slow`."""
    path: str


class BadStore:
    """A folder whose files Spark reaches as `bad://`, and its faults. Several stores may be used by one Spark."""

    def __init__(self, folder: Path, name: str = "store") -> None:
        self.folder = folder.absolute() / f"{name}.bad"
        self.folder.mkdir(parents=True)
        self._faults, self._calls = self.folder.with_suffix(".bad.faults"), self.folder.with_suffix(".bad.calls")

    def url(self, *names: str) -> str:
        """Return the address of a file or folder in the store."""
        return "bad://" + quote(str(self.folder.joinpath(*names)))

    def set_faults(self, *faults: Fault) -> None:
        """Replace all faults by these, and begin to count calls; calls that a removed `hold` holds proceed."""
        lines = [
            "\t".join((os.urandom(8).hex(), fault.effect, fault.kind, str(fault.nth or 0), str(fault.ms), fault.path))
            for fault in faults
        ]
        draft = self._faults.with_suffix(".draft")
        draft.write_text("\n".join(lines))
        draft.replace(self._faults)

    @contextmanager
    def faults(self, *faults: Fault) -> Iterator[None]:
        """Set these faults, and remove them in the end."""
        self.set_faults(*faults)
        try:
            yield
        finally:
            self.set_faults()

    def calls(self, kind: Kind = "any", path: str = "") -> list[Call]:
        """Return the calls of this kind, in the order of their beginnings, whose path contains a text."""
        lines = self._calls.read_text().splitlines() if self._calls.exists() else []
        calls = [Call(*line.split("\t", 2)) for line in lines]
        return [call for call in calls if kind in ("any", call.kind) and path in call.path]

    def forget_calls(self) -> None:
        """Empty the list of calls."""
        self._calls.unlink(missing_ok=True)


def conf(access: Access = "FileContext") -> dict[str, str]:
    """Return the settings of a Spark that is not yet started."""
    settings = {f"spark.hadoop.{key}": value for key, value in _hadoop_conf(access).items()}
    return {"spark.driver.extraClassPath": str(jar()), "spark.executor.extraClassPath": str(jar()), **settings}


def add_to(spark: SparkSession, access: Access = "FileContext") -> None:
    """Add the scheme to a local Spark that runs already."""
    add_jars(spark, [jar()], {CONTEXT: None, **_hadoop_conf(access)})


def _hadoop_conf(access: Access) -> dict[str, str]:
    # Without FileContext Spark's CheckpointFileManager is the one over FileSystem.
    contexts = {"FileContext": "Context", "deleting": "DeletingContext"}
    context = {CONTEXT: f"{FILE_SYSTEM}${contexts[access]}"} if access in contexts else {}
    return {"fs.bad.impl": FILE_SYSTEM} | context


@functools.cache
def jar() -> Path:
    """Return the jar of the store, and compile it first where the cache does not have it."""
    source = SOURCE.read_text()
    built = cache_folder() / f"bad-store-{hashlib.sha256(source.encode()).hexdigest()[:12]}.jar"
    if not built.exists():
        built.parent.mkdir(parents=True, exist_ok=True)
        draft = built.with_suffix(f".{os.getpid()}")
        with zipfile.ZipFile(draft, "w") as archive:
            for name, code in _compile(source).items():
                archive.writestr(name.replace(".", "/") + ".class", code)
        draft.replace(built)
    return built


def _compile(source: str) -> dict[str, bytes]:
    """Return name -> byte code of the classes in a Java source, compiled by Janino: a Java runtime is enough."""
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
    from pyspark.find_spark_home import _find_spark_home

    jars = Path(_find_spark_home()) / "jars"
    port, child = launch_gateway(
        jarpath=str(next(jars.glob("py4j-*.jar"))),
        classpath=str(jars / "*"),
        java_path=find_java().path,
        javaopts=list(SMALL),
        die_on_exit=True,
        return_proc=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
    try:
        compiler: Any = gateway.jvm.org.codehaus.janino.SimpleCompiler()
        compiler.cook(source)
        return {str(name): bytes(code) for name, code in compiler.getBytecodes().items()}
    finally:
        gateway.shutdown()
        child.stdin.close()
        child.wait()
