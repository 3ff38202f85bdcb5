"""Archives of the classes that Spark loads: with them JVMs on this machine start in about half the time.

Java maps an archive (class data sharing) instead of reading, verifying and linking ten thousand classes from three
hundred jars. An archive is valid for one Java and one beginning of the class path. The home of an embedded cluster is
temporary, so the installed jars come first, by `extraClassPath`. Java itself checks whether an archive fits; without
one that does, it loads classes from the jars. `archive_writer.py` writes them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from rheostat.engine.spark.session.java import Java, own_folder
from rheostat.engine.spark.session.settings import on_this_machine

ROLES = ("driver", "executor")
SILENT = "-Xlog:cds=off -Xlog:cds+dynamic=off"
"""JVM options against messages about archives: one that does not fit is no problem."""
SITE = "spark-defaults.conf"


def use_archives(settings: Mapping[str, str], java: Java) -> dict[str, str]:
    """Return the settings of an application, whose JVMs on this machine use the archives that exist.

    JVMs whose options are not among the settings are left alone, and so is a class path of the user's own.
    """
    home, used = spark_home(), dict(settings)
    folder = archive_folder(home, java)
    if not folder.is_dir() or _site_sets_class_path(home):
        return used
    for role in ROLES if on_this_machine(settings.get("spark.master", "")) else ROLES[:1]:
        options, path = f"spark.{role}.extraJavaOptions", f"spark.{role}.extraClassPath"
        if options in settings and path not in settings:
            # Spark and the user append to options, so those of the archive come first.
            used[options] = f"-XX:SharedArchiveFile={archive_file(folder, role)} {SILENT} {settings[options]}"
            used[path] = class_path(home)
    return used


def spark_home() -> Path:
    """Return the home of the Spark that PySpark starts."""
    from pyspark.find_spark_home import _find_spark_home

    return Path(_find_spark_home()).absolute()


def class_path(home: Path) -> str:
    """Return the beginning of the class path for which archives are valid."""
    return f"{home}/jars/*"


def archive_folder(home: Path, java: Java) -> Path:
    """Return the folder of the archives of this Spark on this Java."""
    core = [jar.name for jar in (home / "jars").glob("spark-core_*.jar")]
    key = " ".join((str(home), *core, os.path.realpath(java.path), java.version))
    return own_folder(f"classes-{hashlib.sha256(key.encode()).hexdigest()[:12]}")


def archive_file(folder: Path, role: str) -> Path:
    """Return the archive of drivers or executors."""
    return folder / f"{role}.jsa"


def _site_sets_class_path(home: Path) -> bool:
    """Whether the site's configuration has a class path, which a setting of ours would replace."""
    site = Path(os.environ.get("SPARK_CONF_DIR") or home / "conf") / SITE
    return site.is_file() and "extraClassPath" in site.read_text(errors="replace")
