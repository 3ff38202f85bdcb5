"""A real micro-batch engine passes the conformance tests of the simulated ones."""

import subprocess
import sys

import pytest
import spark_engine_conformance

from rheostat.testing.engine import EngineConformance

pytestmark = pytest.mark.cluster


def test_the_micro_batch_engine_conforms() -> None:
    rules = [name for name in dir(EngineConformance) if name.startswith("test_")]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--import-mode=importlib", spark_engine_conformance.__file__],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert f"{len(rules)} passed" in done.stdout
