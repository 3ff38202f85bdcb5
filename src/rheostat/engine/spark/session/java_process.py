"""A Java program as a child of this process that ends with it, even when this process is killed.

A kernel would do that by a signal at the end of the *thread* that started the child, and only on Linux. Here a shell
keeps watch: it waits on a pipe that this process holds open, and becomes the Java program by `exec`, so that the
child's id is Java's own.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from rheostat.engine.spark.session.java import found_java

SMALL = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""For programs that start often and compute little: half the time to start."""
# A line means that all is well, the end of the pipe that nobody is left to say so. The watcher must not keep the
# program's output open, nor end by a signal that was meant for the program.
WATCHED = """
exec 3<&0 </dev/null
(trap '' HUP INT TERM; read -r _ <&3 || kill -9 $$) >/dev/null 2>&1 &
exec 3<&- "$@"
"""


def start_java(arguments: Sequence[str], output: IO[str] | int) -> subprocess.Popen[str]:
    """Start Java with these arguments; both of its streams go to `output`. Hand it to `ended` when it is over."""
    return subprocess.Popen(
        ["sh", "-c", WATCHED, "sh", found_java().path, *arguments],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        # Ctrl-C is for this process, which then ends the child in its own time.
        start_new_session=True,
    )


def ended(child: subprocess.Popen[str], patience_s: float = 0.0) -> int:
    """End a child that still runs, first by asking where there is patience; return its exit code."""
    if child.poll() is None and patience_s > 0.0:
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(patience_s)
    child.kill()
    code = child.wait()
    if child.stdin is not None and not child.stdin.closed:
        # The watcher may have seen the end of the pipe first, where the pipe was inherited and is closed elsewhere.
        with contextlib.suppress(OSError):
            child.stdin.write("\n")
            child.stdin.close()
    return code


def classpath(jars: Sequence[Path]) -> str:
    """Return jars as Java's option wants them."""
    return ":".join(map(str, jars))
