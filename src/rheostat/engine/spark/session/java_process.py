"""A Java program as a child process that ends with this process, even when this process is killed.

Linux can signal a child at the end of the *thread* that started it; other systems cannot. Here a shell starts a watcher
that reads from a pipe which this process holds open, and then becomes the Java program by `exec`, so that the child's
pid is Java's.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from rheostat.engine.spark.session.java import find_java

SMALL = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""JVM options that halve the start of a program which starts often and computes little."""
# A line on the pipe ends the watcher; the end of the pipe means that this process is gone, and the watcher kills the
# program. The watcher must neither hold the program's output open nor end by a signal for the program.
WATCHED = """
exec 3<&0 </dev/null
(trap '' HUP INT TERM; read -r _ <&3 || kill -9 $$) >/dev/null 2>&1 &
exec 3<&- "$@"
"""


def start_java(arguments: Sequence[str], output: IO[str] | int) -> subprocess.Popen[str]:
    """Start Java with these arguments, stdout and stderr to `output`. Pass the child to `end_process` in the end."""
    return subprocess.Popen(
        ["sh", "-c", WATCHED, "sh", find_java().path, *arguments],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        # Ctrl-C reaches only this process, which then ends the child itself.
        start_new_session=True,
    )


def end_process(child: subprocess.Popen[str], patience_s: float = 0.0) -> int:
    """End a child that still runs and return its exit code: SIGTERM and `patience_s` seconds first, then SIGKILL."""
    if child.poll() is None and patience_s > 0.0:
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(patience_s)
    child.kill()
    code = child.wait()
    if child.stdin is not None and not child.stdin.closed:
        # The watcher may have ended already, where another process inherited the pipe and closed it.
        with contextlib.suppress(OSError):
            child.stdin.write("\n")
            child.stdin.close()
    return code


def classpath(jars: Sequence[Path]) -> str:
    """Return the jars as the value of Java's -cp option."""
    return ":".join(map(str, jars))
