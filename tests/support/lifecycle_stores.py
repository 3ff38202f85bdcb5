"""A pipeline's checkpoint on stores of several kinds, with the same faults for all of them.

python lifecycle_stores.py FOLDER CHECKPOINT SETTINGS      # begin, and repartition the state; ends with its JVM
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from bad_store import BadStore, Fault, conf
from s3_server import LostAnswerError, RefusedError, Request, S3Server
from stateful_query import WordCount, start_spark

from rheostat.engine.spark.lifecycle.application import SparkApplication
from rheostat.engine.spark.lifecycle.checkpoint import StateStore
from rheostat.engine.spark.lifecycle.restart import Pipeline, build_at_start
from rheostat.engine.spark.lifecycle.shape import JOB, MicroBatch
from rheostat.job.allocation import Allocation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS = ("create", "rename", "delete", "list")
COPYING = (Fault("copy", "rename"), Fault("slow", "rename", ms=5))
"""Faults of a store whose renames copy and are slow."""


class Store(Protocol):
    """A store with faults. `Fault.path` is searched in the path of a call."""

    settings: dict[str, str]
    """What a Spark that is not yet started needs to reach it."""
    crash: Callable[[], None]
    """Ends the driver under test, where the store itself cannot."""

    def url(self, name: str) -> str:
        """Return the address of a folder."""

    def faults(self, *faults: Fault) -> Any:
        """Return a context with these faults."""

    def count(self, kind: str, path: str = "") -> int:
        """Return how many calls of a kind there were, on paths with a text."""

    @property
    def hit(self) -> bool:
        """Whether the last faults had an effect."""


class Bad:
    """The store `bad://`, with faults of its own that are always there."""

    def __init__(self, folder: Path, *always: Fault, access: Any = "FileContext") -> None:
        self._store, self._always = BadStore(folder), always
        self.settings, self.crash = conf(access), lambda: None
        self._before = 0
        self._store.set_faults(*always)

    def url(self, name: str) -> str:
        return self._store.url(name)

    @contextmanager
    def faults(self, *faults: Fault) -> Iterator[None]:
        self._before = len(self._store.calls())
        self._store.set_faults(*self._always, *faults)
        try:
            yield
        finally:
            self._store.set_faults(*self._always)

    def count(self, kind: Any, path: str = "") -> int:
        return len(self._store.calls(kind, path))

    @property
    def hit(self) -> bool:
        return any(call.outcome not in ("ok", "copy") for call in self._store.calls()[self._before :])


@dataclass
class _Counted:
    fault: Fault
    calls: int = 0
    effects: int = 0

    def applies(self, request: Request) -> bool:
        if self.fault.kind not in ("any", kind_of(request)) or not re.search(self.fault.path, path_of(request)):
            return False
        self.calls += 1
        applies = self.fault.nth in (None, self.calls)
        self.effects += applies
        return applies


class S3:
    """A bucket. A call that fails is one request that is refused; a client repeats one whose answer is lost."""

    def __init__(self, server: S3Server, folder: str, settings: dict[str, str]) -> None:
        self._server, self._folder, self.settings = server, folder, settings
        self.crash: Callable[[], None] = lambda: None
        self._counted: list[_Counted] = []
        self._lock = threading.Lock()

    def url(self, name: str) -> str:
        return f"s3a://bucket/{self._folder}/{name}"

    @contextmanager
    def faults(self, *faults: Fault) -> Iterator[None]:
        self._counted = [_Counted(fault) for fault in faults]
        losing: set[int] = set()

        def before(request: Request) -> None:
            with self._lock:
                effects = [one.fault for one in self._counted if one.applies(request)]
            for fault in effects:
                match fault.effect:
                    case "slow":
                        time.sleep(fault.ms / 1e3)
                    case "fail":
                        raise RefusedError(403, "AccessDenied")
                    case "lose":
                        losing.add(id(request))
                    case "crash":
                        self.crash()
                        raise LostAnswerError

        def after(request: Request) -> None:
            if id(request) in losing:
                losing.remove(id(request))
                raise LostAnswerError

        self._server.before, self._server.after = before, after
        try:
            yield
        finally:
            self._server.before = self._server.after = lambda request: None

    def count(self, kind: str, path: str = "") -> int:
        return sum(kind in ("any", kind_of(one)) and path in path_of(one) for one in list(self._server.requests))

    @property
    def hit(self) -> bool:
        return any(one.effects for one in self._counted)


def kind_of(request: Request) -> str:
    """Return the kind of call to which a request belongs."""
    match request.method:
        case "PUT":
            return "rename" if "x-amz-copy-source" in request.headers else "create"
        case "DELETE":
            return "delete"
        case "POST":
            return "delete" if "delete" in request.query else "create"
    return "list" if "list-type" in request.query else "open"


def path_of(request: Request) -> str:
    """Return the path that a request is about."""
    return "/" + (request.key or request.query.get("prefix", ""))


class Swinging(MicroBatch):
    """State with as many partitions as slots, more or fewer."""

    def shuffle_partitions(self, allocation: Allocation) -> int:
        """Return the slots."""
        return allocation.slots

    def state_partitions(self, allocation: Allocation, state: StateStore) -> int:
        """Return the slots."""
        return allocation.slots


class Driver:
    """A driver that counts words: its pipeline, and whether the counts are exact."""

    def __init__(self, spark: SparkSession, folder: Path, checkpoint: str) -> None:
        self.words, self.notes = WordCount(spark, folder, checkpoint), list[str]()
        build = build_at_start(lambda _: self.words.start(ends=False))
        self.pipeline = Pipeline(SparkApplication(spark), build, shape=Swinging())

    def begin(self, slots: int = 2) -> None:
        """Start the query, and wait for it."""
        self.words.add("begun a")
        self.pipeline.begin(Allocation({JOB: slots}))
        self.pipeline.wait()
        if self.pipeline.failure is not None:
            raise self.pipeline.failure

    def restart(self, slots: int) -> Exception | None:
        """Restart the query, and return what failed."""
        self.pipeline.restart(lambda: Allocation({JOB: slots}), self.notes.append)
        self.pipeline.wait()
        return self.pipeline.failure

    def runs(self) -> bool:
        """Return whether the query runs."""
        return self.pipeline.query is not None and bool(self.pipeline.query.isActive)

    def check(self) -> None:
        """Count what has arrived, and compare."""
        self.words.add("a b a", "c")
        self.pipeline.query.processAllAvailable()
        assert self.words.result() == self.words.expected()

    def partitions(self) -> int:
        """Return the partitions of the state."""
        application = self.pipeline.application
        state = application.checkpoint(self.words.checkpoint).state()
        assert state is not None
        return state.partitions

    def end(self) -> None:
        """End it in order."""
        if self.pipeline.query is not None:
            self.pipeline.query.stop()
        self.pipeline.finish()


def main(folder: str, checkpoint: str, settings: str) -> None:
    """Begin with two partitions, and go on with three."""
    spark = start_spark(json.loads(settings))
    jvm: Any = spark.sparkContext._gateway.proc  # type: ignore[union-attr]
    threading.Thread(target=lambda: (jvm.wait(), os._exit(9)), daemon=True).start()
    driver = Driver(spark, Path(folder), checkpoint)
    driver.begin()
    driver.check()
    failure = driver.restart(3)
    driver.check()
    driver.end()
    print(json.dumps({"failure": str(failure or ""), "partitions": driver.partitions()}))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
