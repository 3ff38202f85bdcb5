"""Child processes that end with this one, freeze and thaw, and executors that are killed."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

from rheostat.errors import RheostatError

T = TypeVar("T")
WATCHER = "rheostat-watcher"
"""Name of the shell that watches a child, in its command line."""
EXECUTORS = ("CoarseGrainedExecutorBackend", "KubernetesExecutorBackend")
"""Classes of executors: on YARN the first has a prefix."""
SPAWN = get_context("spawn")
# The end of the pipe means that the parent is gone or has finished with the child. The child gets SIGTERM first, so
# that it can stop Spark and delete its folders; then the rest of its process group is killed, this shell included.
WATCH = """
trap '' HUP INT TERM
read -r _
kill -TERM "$1"
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do kill -0 "$1" || break; sleep 0.5; done
kill -9 "-$1"
"""


class Child:
    """A process in its own session. It ends with this process, and so does everything that it has started.

    Only this process holds one end of a pipe open. A shell in the child's process group watches the other end, also
    while the child hangs or is dead. Spark's JVM and its executors stay in that group.
    """

    def __init__(self, work: Callable[..., object], *arguments: object) -> None:
        watched, self._lifeline = SPAWN.Pipe(duplex=False)
        self._process = SPAWN.Process(target=_live, args=(watched, work, arguments))
        self._process.start()
        watched.close()

    @property
    def pid(self) -> int:
        """The child's process id, which is also its group's."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def exitcode(self) -> int | None:
        """The child's exit code; None while it runs."""
        return self._process.exitcode

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """End the child in order, and then kill whatever it has left behind."""
        self._lifeline.close()
        self._process.join()

    def kill(self) -> None:
        """Kill the child and everything that it has started, as a machine failure does."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.end()

    def freeze(self, *, whole: bool) -> None:
        """Suspend the child's own process, or with `whole` also all that it has started, until `thaw`.

        The watcher stays awake: a frozen child, too, ends with this process.
        """
        below = processes_below(self.pid) if whole else []
        self._signal(signal.SIGSTOP, [self.pid, *(pid for pid, line in below if WATCHER not in line)])

    def thaw(self) -> None:
        """Let everything that is frozen continue."""
        self._signal(signal.SIGCONT, [self.pid, *(pid for pid, _ in processes_below(self.pid))])

    def _signal(self, number: signal.Signals, pids: list[int]) -> None:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)


def await_true(condition: Callable[[], bool], within_s: float, poll_s: float = 0.1) -> bool:
    """Wait until a condition holds, at most these seconds; return whether it does."""
    deadline_s = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(poll_s)
    return True


def silence() -> None:
    """Discard the output of this process and of what it starts: a killed driver and its JVM log much."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)


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


def in_own_process(work: Callable[..., T], *arguments: object) -> T:
    """Run work in its own process, because Spark allows one application per process; return its result."""
    answers, answer = SPAWN.Pipe(duplex=False)
    with Child(_answer, answer, work, *arguments) as child:
        answer.close()
        try:
            done, result = answers.recv()
        except EOFError:
            child.end()
            raise RheostatError(f"the process of {work.__name__} ended with exit code {child.exitcode}") from None
    if not done:
        raise result
    return result  # type: ignore[no-any-return]


def _live(watched: Connection, work: Callable[..., object], arguments: tuple[object, ...]) -> None:
    """Run the child: open a session, start the watcher, then do the work."""
    os.setsid()
    watch = ["sh", "-c", WATCH, WATCHER, str(os.getpid())]
    _watcher = subprocess.Popen(watch, stdin=watched.fileno(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    watched.close()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    work(*arguments)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it ends by itself now, and an exit inside that prints a traceback


def _answer(answer: Connection, work: Callable[..., object], *arguments: object) -> None:
    message: tuple[bool, Any]
    try:
        message = True, work(*arguments)
    except RheostatError as error:
        message = False, error
    except Exception:  # noqa: BLE001 - the parent raises it
        message = False, RuntimeError(traceback.format_exc())
    answer.send(message)


def kill_an_executor(root: int | None = None, share: float = 0.0) -> bool:
    """Send SIGKILL to one executor below a process, by default this one; return whether there was one.

    `share` (0 up to 1) says how far down the list it is; 0 is the oldest.
    """
    executors = executors_below(root or os.getpid())
    if not executors:
        return False
    os.kill(executors[int(share * len(executors))], signal.SIGKILL)
    return True


def executors_below(root: int) -> list[int]:
    """Return the process ids of the executors below a process, oldest first."""
    return [pid for pid, line in processes_below(root) if any(name in line for name in EXECUTORS)]


def driver_jvm(root: int) -> int | None:
    """Return the process id of the JVM that a driver's Python process has started; None without one.

    A command that the JVM starts shows the JVM's own command line for a moment.
    """
    submits = {pid: parent for pid, parent, line in _processes(root) if "org.apache.spark.deploy.SparkSubmit" in line}
    return next((pid for pid, parent in submits.items() if parent not in submits), None)


def processes_below(root: int) -> list[tuple[int, str]]:
    """Return the descendants of a process, with their command lines."""
    return [(pid, line) for pid, _, line in _processes(root)]


def _processes(root: int) -> list[tuple[int, int, str]]:
    """Return the descendants of a process, with their parents and their command lines."""
    if shutil.which("ps") is None:
        return []
    output = subprocess.run(["ps", "-ww", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=False).stdout
    rows = [(int(pid), int(parent), line) for pid, parent, line in (r.split(None, 2) for r in output.splitlines()[1:])]
    parent_of = {pid: parent for pid, parent, _ in rows}

    def below(pid: int) -> bool:
        while (pid := parent_of.get(pid, 0)) > 0:
            if pid == root:
                return True
        return False

    return [row for row in rows if below(row[0])]
