"""Inside the process of a driver under test: its life until SIGTERM, and the size of its heap."""

from __future__ import annotations

import json
import logging
import os
import signal
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rheostat.errors import describe
from rheostat.lab.soak.memory import HEAPS, Heap

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rheostat.api.scaler import Scaler

POLL_S = 0.2
"""Seconds between two looks at the scaler."""
HEAP_S = 30.0
"""Seconds between two collections of all garbage, after which the heap holds what is alive."""
MB = 2**20

log = logging.getLogger(__name__)


def serve(scaler: Scaler, spark: SparkSession, folder: Path) -> None:
    """Wait until SIGTERM or the end of the query, and note the heap meanwhile; then stop the scaler and the query."""
    ending: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ending.append(number))
    with scaler:
        noted_s, heap_file = time.monotonic(), folder / f"{HEAPS}{os.getpid()}"
        while not ending and scaler.holds:
            time.sleep(POLL_S)
            if time.monotonic() - noted_s >= HEAP_S:
                noted_s = time.monotonic()
                _note_heap(spark, heap_file)
        log.info("the driver ends: %s", "SIGTERM" if ending else scaler.status)
    for query in scaler.queries:
        query.stop()


def _note_heap(spark: SparkSession, file: Path) -> None:
    try:
        jvm: Any = spark._jvm
        memory = jvm.java.lang.management.ManagementFactory.getMemoryMXBean()
        memory.gc()
        heap, other = memory.getHeapMemoryUsage(), memory.getNonHeapMemoryUsage()
        heap_mb = Heap(time.monotonic(), heap.getUsed() / MB, heap.getCommitted() / MB, other.getCommitted() / MB)
    except Exception as error:  # noqa: BLE001 - a killed JVM ends the driver in its own way
        log.warning("the heap cannot be read: %s", describe(error))
        return
    with file.open("a") as lines:
        lines.write(json.dumps(asdict(heap_mb)) + "\n")
