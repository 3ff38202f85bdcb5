"""What every cluster on this machine has."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rheostat.engine.spark.session.embedded import LOCALHOST
from rheostat.engine.spark.session.java import find_java
from rheostat.engine.spark.session.session import QUICK_START
from rheostat.errors import EngineError

CLIENT: Mapping[str, str] = {
    "spark.driver.host": LOCALHOST,
    "spark.driver.bindAddress": LOCALHOST,
    "spark.driver.extraJavaOptions": QUICK_START,
    "spark.executor.extraJavaOptions": QUICK_START,
}
"""Settings of a driver in client mode on this machine, whose processes live for minutes."""


@dataclass(frozen=True)
class Cluster:
    """A cluster that runs: how a driver reaches it."""

    master: str
    conf: Mapping[str, str] = field(default_factory=dict)
    """Spark settings of a driver in client mode."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of the driver."""


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as probe:
        probe.bind((LOCALHOST, 0))
        return int(probe.getsockname()[1])


def start_logged(
    command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a process whose output goes to a file."""
    with log.open("ab") as output:
        return subprocess.Popen(
            list(command), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environment
        )


def stop_all(processes: Sequence[subprocess.Popen[bytes]], patience_s: float = 5.0) -> None:
    """End processes in the given order: SIGTERM, some patience, SIGKILL."""
    for process in processes:
        process.terminate()
    for process in processes:
        try:
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def check_started(condition: bool, what: str, log: Path) -> None:
    """Raise with the end of a log where something has not started."""
    if not condition:
        tail = log.read_text(errors="replace")[-2000:] if log.exists() else "it wrote nothing"
        raise EngineError(f"{what} has not started:\n{tail}")


def java_home() -> str:
    """Return the home of the Java that Spark starts."""
    return str(Path(find_java().path).resolve().parent.parent)


def run_folder(prefix: str) -> Path:
    """Return the folder that the command line names, else a temporary one."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix=prefix)).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def show(cluster: Cluster, what: str, more: str = "") -> None:
    """Print how a person uses a cluster, and wait for Ctrl-C."""
    print(f"{what}. In another terminal:\n")
    for key, value in cluster.environment.items():
        print(f"export {key}={value}")
    print(f"\nrheostat.session('clicks', {cluster.master!r}, conf={{")
    for key, value in cluster.conf.items():
        print(f"    {key!r}: {value!r},")
    print(f"}})\n\n{more}Ctrl-C ends it.", flush=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        print("ended")
