"""Parts on several processes: what comes back, what a failure says, and that no process is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from math import sqrt
from pathlib import Path

import pytest
from proc import runs

from rheostat.errors import InvalidValue
from rheostat.lab.papers.parallel import PartFailed, run_tasks
from rheostat.lab.papers.registry import suite


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_back_by_name_and_progress_ends_with_all(workers: int) -> None:
    shares: list[float] = []
    found = run_tasks([("a", sqrt, (4,)), ("b", sqrt, (9,))], lambda _, share: shares.append(share), workers)
    assert found == {"a": 2.0, "b": 3.0}
    assert shares == [0.5, 1.0]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_failure_names_its_part(workers: int) -> None:
    with pytest.raises(PartFailed, match=r"^b failed: ZeroDivisionError: "):
        run_tasks([("a", sqrt, (4,)), ("b", divmod, (1, 0))], lambda *_: None, workers)


@pytest.mark.parametrize("workers", [1, 2])
def test_what_the_user_did_wrong_is_said_as_it_is(workers: int) -> None:
    with pytest.raises(InvalidValue, match=r"^unknown suite 'contune'"):
        run_tasks([("a", suite, ("contune",))], lambda *_: None, workers)


WAITING = """
import os, sys, time
from pathlib import Path
from rheostat.lab.papers.parallel import run_tasks

def wait(folder):
    Path(folder, str(os.getpid())).touch()
    time.sleep(600)

if __name__ == "__main__":
    run_tasks([(name, wait, (sys.argv[1],)) for name in "ab"], print, 2)
"""


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are looked up in /proc")
def test_workers_end_with_a_suite_that_is_killed(tmp_path: Path) -> None:
    script, folder = tmp_path / "waiting.py", tmp_path / "workers"
    script.write_text(WAITING)
    folder.mkdir()
    paths = os.pathsep.join(sys.path)
    parent = subprocess.Popen([sys.executable, script, folder], env={**os.environ, "PYTHONPATH": paths})
    try:
        deadline = time.monotonic() + 60
        while len(list(folder.iterdir())) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        workers = [int(each.name) for each in folder.iterdir()]
        assert len(workers) == 2
        os.kill(parent.pid, signal.SIGKILL)
        while any(map(runs, workers)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not any(map(runs, workers))
    finally:
        parent.kill()
        parent.wait()
