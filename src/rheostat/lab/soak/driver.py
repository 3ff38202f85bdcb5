"""Inside the process of a driver under test: its log, its temporary files, its life until SIGTERM."""

from __future__ import annotations

import logging
import os
import signal
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rheostat.api.scaler import Scaler

POLL_S = 0.2
"""Seconds between two looks at the scaler."""

log = logging.getLogger(__name__)


def enclose(folder: Path, log_file: str = os.devnull) -> None:
    """Send all output of this process to a file, and temporary files, which a killed JVM leaves behind, to a folder."""
    output = os.open(log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in (1, 2):
        os.dup2(output, stream)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    logging.getLogger("rheostat").setLevel(logging.INFO)
    temporary = folder / "tmp"
    temporary.mkdir(exist_ok=True)
    os.environ["TMPDIR"] = tempfile.tempdir = str(temporary)
    os.environ["JAVA_TOOL_OPTIONS"] = f"-Djava.io.tmpdir={temporary}"


def serve(scaler: Scaler) -> None:
    """Wait until SIGTERM or the end of the query; then stop the scaler and the query."""
    ending: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ending.append(number))
    with scaler:
        while not ending and scaler.holds:
            time.sleep(POLL_S)
        log.info("the driver ends: %s", "SIGTERM" if ending else scaler.status)
    for query in scaler.queries:
        query.stop()
