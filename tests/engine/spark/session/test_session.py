"""`rheostat.session` on a real embedded cluster: the interpreter of its workers, and its shuffle partitions."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rheostat.engine.spark.executors.scheduler import Executor
from rheostat.engine.spark.session import session as session_module
from rheostat.engine.spark.session.session import shrink_to_minimum, worker_python
from rheostat.errors import EngineError

pytestmark = pytest.mark.cluster

SCRIPT = """
import json, logging, sys
import pandas as pd
from pyspark.sql.functions import pandas_udf
import rheostat

logging.basicConfig(stream=sys.stderr, level=logging.INFO)
spark = rheostat.session("python", max_executors=2, cores=2, conf={"spark.ui.enabled": "false"})

@pandas_udf("string")
def interpreter(values: pd.Series) -> pd.Series:
    return values.map(lambda _: sys.executable)

row = spark.range(1).select(interpreter("id")).collect()[0]
again = rheostat.session("python", max_executors=2, cores=2, conf={"spark.ui.enabled": "false"})
print(json.dumps({
    "worker": row[0],
    "partitions": spark.conf.get("spark.sql.shuffle.partitions"),
    "delay": spark.conf.get("spark.standalone.executorRemoveDelayOnDisconnection"),
    "same": again is spark,
}))
spark.stop()
"""


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine whose first `python3` is not the user's, and runs nothing."""
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    python.write_text("#!/bin/sh\necho 'this is another python3' >&2\nexit 1\n")
    python.chmod(0o755)
    free = {key: value for key, value in os.environ.items() if key not in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")}
    return {**free, "PATH": f"{python.parent}:{os.environ['PATH']}"}


def run(environment: dict[str, str]) -> tuple[dict[str, Any], str]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


def test_workers_run_the_drivers_python_and_there_are_two_partitions_per_slot(machine: dict[str, str]) -> None:
    report, logged = run(machine)
    assert report == {"worker": sys.executable, "partitions": "8", "delay": "500ms", "same": True}
    assert "1 to 2 executors of 2 cores, spark.sql.shuffle.partitions=8" in logged


def test_a_python_and_partitions_that_the_user_configured_stay(machine: dict[str, str], tmp_path: Path) -> None:
    python = tmp_path / "own" / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\ntouch "{tmp_path}/used"\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    (tmp_path / "spark-defaults.conf").write_text("spark.sql.shuffle.partitions 5\n")
    report, _ = run({**machine, "PYSPARK_PYTHON": str(python), "SPARK_CONF_DIR": str(tmp_path)})
    assert (tmp_path / "used").exists()
    assert (report["partitions"], report["delay"], report["same"]) == ("5", "500ms", True)


@pytest.mark.parametrize(
    ("master", "local"),
    [
        ("local-cluster[2,1,512]", True),
        ("local[4]", True),
        ("spark://localhost:7077", True),
        ("spark://127.0.0.1:7077", True),
        ("spark://host:7077", False),
        ("yarn", False),
        ("k8s://https://127.0.0.1:6443", False),
    ],
)
def test_only_executors_on_this_machine_get_the_drivers_python(
    monkeypatch: pytest.MonkeyPatch, master: str, local: bool
) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    assert worker_python({"spark.master": master}) == ({"PYSPARK_PYTHON": sys.executable} if local else {})
    own = {"spark.master": master, "spark.pyspark.python": "/opt/python"}
    assert worker_python(own) == {"PYSPARK_PYTHON": "/opt/python"}
    monkeypatch.setenv("PYSPARK_PYTHON", "/usr/bin/python3.11")
    assert worker_python({"spark.master": master}) == {}


class Arriving:
    """A scheduler, and the clock beside it: every look brings the next executor."""

    decommissions = False

    def __init__(self, *ids: str) -> None:
        self.coming, self.there, self.now_s = list(ids), list[str](), 0.0
        self.withdrawn: list[str] = []
        self.deaf_s = 0.0
        """Until then no request is acknowledged."""

    def now(self) -> float:
        return self.now_s

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        if self.coming:
            self.there.append(self.coming.pop(0))

    def registered(self) -> tuple[str, ...]:
        return tuple(self.there)

    def describe(self, executor_id: str) -> Executor:
        return Executor(executor_id, "here", 1, self.now_s)

    def cores_setting(self) -> int:
        return 1

    def request_total(self, executors: int) -> bool:
        return self.now_s >= self.deaf_s

    def withdraw(self, ids: list[str]) -> None:
        self.withdrawn += ids
        self.coming = [each for each in self.coming if each not in ids]


@pytest.mark.parametrize(
    ("master", "coming", "withdrawn"),
    [("yarn", ("1", "2"), []), ("k8s://https://here", ("1", "2"), []), ("spark://here:7077", "0123", ["2", "3"])],
)
def test_executors_that_are_still_starting_count_when_they_register(
    monkeypatch: pytest.MonkeyPatch, master: str, coming: tuple[str, ...], withdrawn: list[str]
) -> None:
    # A standalone master launches all of them at once and numbers them from 0; YARN and Kubernetes number from 1.
    cluster = Arriving(*coming)
    monkeypatch.setattr(session_module, "SparkScheduler", lambda _context: cluster)
    context: Any = SimpleNamespace(master=master)
    shrink_to_minimum(context, 2, 4, cluster)
    assert (len(cluster.there), cluster.withdrawn) == (2, withdrawn)


def test_a_session_waits_for_an_application_master_that_registers_late(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Arriving("1")
    cluster.deaf_s = 30.0
    monkeypatch.setattr(session_module, "SparkScheduler", lambda _context: cluster)
    context: Any = SimpleNamespace(master="yarn")
    shrink_to_minimum(context, 1, 4, cluster)
    assert cluster.there == ["1"]
    assert 30.0 <= cluster.now_s < 31.0
    cluster.deaf_s = cluster.now_s + 1000.0
    with pytest.raises(EngineError, match="did not acknowledge a total of 1 executors"):
        shrink_to_minimum(context, 1, 4, cluster)
