"""Work in a process of its own ends with the process that asked for it, and takes along whatever it has started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from proc import runs, state

from rheostat.errors import InvalidValue, RheostatError
from rheostat.job.frozen import check_whole
from rheostat.lab.experiment.processes import WATCHER, Child, in_own_process, processes_below

# The grandchild ignores what a terminal or a service manager sends, as Spark's JVM ignores an interrupt.
STUBBORN = "trap '' HUP INT TERM; sleep 300; :"
PARENT = f"""
import signal, subprocess
signal.signal(2, signal.default_int_handler)
from rheostat.lab.experiment.processes import in_own_process
in_own_process(subprocess.call, ["sh", "-c", {STUBBORN!r}])
"""


def wait_until(true: object, within_s: float) -> bool:
    deadline_s = time.monotonic() + within_s
    while not true():  # type: ignore[operator]
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.05)  # real processes are waited for, not a clock
    return True


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_outlives_the_process_that_asked(number: int) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stderr=subprocess.DEVNULL)
    try:
        assert wait_until(lambda: any("sleep 300" in line for _, line in processes_below(parent.pid)), 60)
        below = [pid for pid, _ in processes_below(parent.pid)]
        assert len(below) >= 3  # the child, the shell and its sleep
        parent.send_signal(number)
        parent.wait(30)
        gone = wait_until(lambda: not any(map(runs, below)), 20)
        left = [pid for pid in below if runs(pid)]
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        assert gone, f"{len(left)} of {len(below)} processes are left"
    finally:
        parent.kill()


def test_what_was_computed_comes_back() -> None:
    assert in_own_process(max, 3, 5) == 5


def test_our_own_errors_come_back_as_they_are_and_others_with_their_traceback() -> None:
    with pytest.raises(InvalidValue, match="--seeds must be a whole number of at least 1, not 0"):
        in_own_process(check_whole, "--seeds", 0, 1)
    with pytest.raises(RuntimeError, match="ValueError: invalid literal for int"):
        in_own_process(int, "five")


def test_a_process_that_dies_is_an_error() -> None:
    with pytest.raises(RheostatError, match="ended with exit code 3"):
        in_own_process(os._exit, 3)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
def test_a_child_freezes_alone_or_with_all_that_it_has_started_and_still_ends() -> None:
    child = Child(subprocess.call, ["sleep", "300"])
    try:
        assert wait_until(lambda: any(line == "sleep 300" for _, line in processes_below(child.pid)), 60)
        (asleep,) = [pid for pid, line in processes_below(child.pid) if line == "sleep 300"]
        (watcher,) = [pid for pid, line in processes_below(child.pid) if WATCHER in line]
        child.freeze(whole=False)
        assert wait_until(lambda: state(child.pid) == "T", 10)
        assert state(asleep) == "S"
        child.freeze(whole=True)
        assert wait_until(lambda: state(asleep) == "T", 10)
        assert state(watcher) == "S"
        child.thaw()
        assert wait_until(lambda: [state(pid) for pid in (child.pid, asleep)] == ["S", "S"], 10)
        child.freeze(whole=True)
    finally:
        child.kill()
    assert not runs(asleep)
