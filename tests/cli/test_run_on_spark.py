"""`rheostat run`, as a user starts it: the example grows, ends cleanly after a signal; a failing query says so."""

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from project import ROOT

from rheostat.journal import open_journal

pytestmark = pytest.mark.cluster

RUN = [sys.executable, "-m", "rheostat", "run"]
JOB = "examples.clicks:start"


def test_the_example_of_a_file_is_scaled_until_a_signal_ends_it(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    file = {"pipeline": JOB, "max_executors": 9, "interval_s": 2, "window_s": 8, "journal": "clicks.db"}
    (tmp_path / "clicks.yaml").write_text(json.dumps(file))
    # The command line goes above the file.
    command = [*RUN, "clicks.yaml", "--max-executors", "3", "--html", "page.html", "--log-json", "--seconds", "240"]
    lines = []
    with (
        (tmp_path / "errors").open("w+") as errors,
        subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=errors, text=True) as running,
    ):
        assert running.stdout is not None
        for line in running.stdout:
            lines.append(line)
            if "1 -> 3 slots" in line:
                running.send_signal(signal.SIGTERM)
    assert running.returncode == 0, (tmp_path / "errors").read_text()[-3000:]
    printed = "".join(lines)
    assert "under-provisioned" in printed
    assert "with 1 changes" in printed
    logged = [json.loads(line) for line in (tmp_path / "errors").read_text().splitlines() if line.startswith("{")]
    (change,) = [entry["message"] for entry in logged if " -> " in entry["message"]]
    assert change.startswith(f"{JOB}: job=1 -> job=3 (under-provisioned: ")
    assert JOB in (tmp_path / "page.html").read_text()
    journal = open_journal(str(tmp_path / "clicks.db"))
    assert journal.jobs() == (JOB,)
    journal.acquire(JOB, "the next one", 1.0)  # the lease was given back
    journal.close()


FAILING = """
from pyspark.sql import SparkSession

def start(allocation):
    rows = SparkSession.active().readStream.format("rate").load().selectExpr("raise_error('no such page') as page")
    return rows.writeStream.format("noop").option("checkpointLocation", "checkpoint").start()
"""


def test_a_query_that_fails_ends_the_command_with_its_error(tmp_path: Path) -> None:
    (tmp_path / "failing.py").write_text(FAILING)
    command = [*RUN, "failing:start", "--max-executors", "1", "--seconds", "200"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1, done.stdout + done.stderr[-3000:]
    assert "failed: " in done.stderr
    assert "no such page" in done.stderr
