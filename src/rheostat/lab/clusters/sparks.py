"""The Sparks that people have: PySpark from PyPI, each version once in the cache.

A folder of its own that comes first on Python's path is enough: PySpark finds its jars beside its own files.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from rheostat.engine.spark.session.ivy import Notify, cache_folder, ignore
from rheostat.errors import EngineError, InvalidValue, nearest

PY4J: Mapping[str, str] = {
    "3.5.9": "0.10.9.7",
    "4.0.5": "0.10.9.9",
    "4.1.4": "0.10.9.9",
    "4.2.1": "0.10.9.9",
    "4.3.0": "0.10.9.9",
}
"""Version of PySpark -> the Py4J that it demands; the newest of each minor version, oldest first."""
VERSIONS = tuple(PY4J)
OLDEST, NEWEST = VERSIONS[0], VERSIONS[-1]
PREFIX = "pyspark-"
"""Of the folder of a version, in the cache."""


def pyspark_folder(version: str, notify: Notify = ignore) -> Path | None:
    """Return the folder with a version of PySpark, installed first if it is not; None for the one that runs here."""
    if version not in VERSIONS:
        raise InvalidValue(f"unknown version of Spark {version!r}, {nearest(version, VERSIONS)}")
    if metadata.version("pyspark") == version:
        return None
    folder = cache_folder() / f"{PREFIX}{version}"
    if folder.is_dir():
        return folder
    notify(f"installing PySpark {version} into {folder}, once")
    draft = folder.with_name(f"{folder.name}.{os.getpid()}")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(draft)]
    done = subprocess.run(
        [*command, f"pyspark=={version}", f"py4j=={PY4J[version]}"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        shutil.rmtree(draft, ignore_errors=True)
        raise EngineError(f"PySpark {version} could not be installed: {done.stderr.strip()[-500:]}")
    try:
        draft.rename(folder)
    except OSError:  # another process was quicker
        shutil.rmtree(draft, ignore_errors=True)
    return folder


def version_of(folder: Path | None) -> str:
    """Return the version of PySpark in a folder of `pyspark_folder`."""
    return metadata.version("pyspark") if folder is None else folder.name.removeprefix(PREFIX)


def use_pyspark(folder: Path | None) -> None:
    """Let this process, before it imports PySpark, and its Python workers take a version of it."""
    if folder is not None:
        sys.path.insert(0, str(folder))
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH", "")]))


def spark_home(folder: Path | None) -> Path:
    """Return the SPARK_HOME of an installed version."""
    if folder is not None:
        return folder / "pyspark"
    from pyspark.find_spark_home import _find_spark_home

    return Path(_find_spark_home())
