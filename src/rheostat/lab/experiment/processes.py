"""Processes of a bench: work in one of its own, executors that are killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeVar

T = TypeVar("T")


def in_own_process(work: Callable[..., T], *given: object) -> T:
    """Do work in a process of its own: Spark allows one application per process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *given).result()


def kill_an_executor(root: int | None = None) -> bool:
    """Send SIGKILL to one executor process below a process, this one unless told; False when none was found."""
    found = [pid for pid, line in processes_below(root or os.getpid()) if "CoarseGrainedExecutorBackend" in line]
    if not found:
        return False
    os.kill(found[0], signal.SIGKILL)
    return True


def processes_below(root: int) -> list[tuple[int, str]]:
    """Return the processes that a process has started, directly or not, with their command lines."""
    if shutil.which("ps") is None:
        return []
    listed = subprocess.run(["ps", "-ww", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=False).stdout
    rows = [(int(pid), int(parent), line) for pid, parent, line in (r.split(None, 2) for r in listed.splitlines()[1:])]
    parent_of = {pid: parent for pid, parent, _ in rows}

    def below(pid: int) -> bool:
        while (pid := parent_of.get(pid, 0)) > 0:
            if pid == root:
                return True
        return False

    return [(pid, line) for pid, _, line in rows if below(pid)]
