"""The faults of a soak: the same from the same seed, and what they do to processes."""

from __future__ import annotations

import subprocess
import threading
import time
from itertools import islice
from pathlib import Path

import pytest
from proc import state

from rheostat.lab.experiment.processes import Child, driver_jvm
from rheostat.lab.soak.faults import GAP_S, STOP_S, Fault, Kind, draw_faults, strike

LINUX = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
# A shell whose name is what `ps` shows of a driver's JVM.
JVM = ["sh", "-c", "sleep 300; :", "org.apache.spark.deploy.SparkSubmit"]


def jvm_of(driver: Child) -> int:
    deadline_s = time.monotonic() + 60
    while (jvm := driver_jvm(driver.pid)) is None:
        assert time.monotonic() < deadline_s
        time.sleep(0.05)  # a real process is waited for, not a clock
    return jvm


def test_a_seed_gives_the_same_faults_and_another_seed_others() -> None:
    kinds = tuple(Kind)
    first = list(islice(draw_faults(7, kinds), 40))
    assert first == list(islice(draw_faults(7, kinds), 40))
    assert first != list(islice(draw_faults(8, kinds), 40))


def test_every_round_has_every_kind_once() -> None:
    kinds = (Kind.DRIVER, Kind.JVM, Kind.STOP)
    drawn = [fault.kind for fault in islice(draw_faults(3, kinds), 30)]
    assert all(sorted(drawn[first : first + 3]) == sorted(kinds) for first in range(0, 30, 3))
    assert len({tuple(drawn[first : first + 3]) for first in range(0, 30, 3)}) > 1


def test_gaps_and_stops_stay_within_their_bounds() -> None:
    for fault in islice(draw_faults(1, tuple(Kind)), 200):
        assert GAP_S[0] <= fault.after_s <= GAP_S[1]
        assert STOP_S[0] <= fault.stop_s <= STOP_S[1]
        assert 0.0 <= fault.share < 1.0


@LINUX
def test_a_stop_suspends_the_driver_and_its_jvm_and_lets_them_go_on() -> None:
    with Child(subprocess.call, JVM) as driver:
        pids = (driver.pid, jvm_of(driver))
        stop = threading.Thread(target=strike, args=(Fault(Kind.STOP, 0.0, 1.0, 0.0), driver))
        stop.start()
        deadline_s, seen = time.monotonic() + 30, set[str]()
        while seen != {"T"} and time.monotonic() < deadline_s:
            seen = {state(pid) for pid in pids}
        stop.join()
        assert seen == {"T"}
        assert "T" not in {state(pid) for pid in pids}


@LINUX
def test_a_killed_jvm_leaves_the_driver() -> None:
    with Child(subprocess.call, JVM) as driver:
        jvm_of(driver)
        stopped = threading.Event()
        assert strike(Fault(Kind.JVM, 0.0, 0.0, 0.0), driver)
        while driver.exitcode is None:  # the driver notices that its JVM is gone, and ends by itself
            stopped.wait(0.05)
        assert driver.exitcode == 0


@LINUX
def test_without_a_process_for_it_a_fault_does_not_happen() -> None:
    with Child(time.sleep, 300) as driver:
        for kind in (Kind.EXECUTOR, Kind.JVM, Kind.STOP):
            assert not strike(Fault(kind, 0.0, 0.1, 0.5), driver)


def test_a_command_of_the_jvm_is_not_taken_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child of a JVM has its command line until it is another program, and its number may be the lower one."""
    listed = "PID PPID COMMAND\n31 1 python\n7 400 java SparkSubmit\n400 31 java SparkSubmit\n"
    listed = listed.replace("SparkSubmit", "org.apache.spark.deploy.SparkSubmit")
    done = subprocess.CompletedProcess([], 0, listed)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    assert driver_jvm(31) == 400
