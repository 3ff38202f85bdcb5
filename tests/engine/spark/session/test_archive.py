"""Archives of Spark's classes: which JVMs use them, and that Java accepts what `make setup` has written."""

import subprocess
import sys
from pathlib import Path

import pytest

from rheostat.engine.spark.session import archive
from rheostat.engine.spark.session.archive import archive_file, archive_folder, class_path, spark_home, use_archives
from rheostat.engine.spark.session.java import Java, find_java

JAVA = Java("/usr/bin/java", "PATH", "17.0.1")
OPTIONS = {"spark.driver.extraJavaOptions": "-Xss4m", "spark.executor.extraJavaOptions": "-Xss8m"}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Spark with archives for JAVA, in a virtual environment of its own."""
    home = tmp_path / "spark"
    (home / "jars").mkdir(parents=True)
    (home / "jars" / "spark-core_2.13-4.3.0.jar").touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(archive, "spark_home", lambda: home)
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    archive_folder(home, JAVA).mkdir(parents=True)
    return home


@pytest.mark.parametrize("master", ["local[2]", "local-cluster[2,1,512]", "spark://127.0.0.1:7077"])
def test_jvms_on_this_machine_use_them(home: Path, master: str) -> None:
    used = use_archives({"spark.master": master, **OPTIONS}, JAVA)
    for role, own in (("driver", "-Xss4m"), ("executor", "-Xss8m")):
        options = used[f"spark.{role}.extraJavaOptions"]
        assert options.startswith(f"-XX:SharedArchiveFile={archive_file(archive_folder(home, JAVA), role)} ")
        assert options.endswith(f" {own}")
        assert used[f"spark.{role}.extraClassPath"] == f"{home}/jars/*"


@pytest.mark.parametrize("master", ["yarn", "k8s://https://127.0.0.1:6443", "spark://host:7077"])
def test_executors_elsewhere_do_not(home: Path, master: str) -> None:
    used = use_archives({"spark.master": master, **OPTIONS}, JAVA)
    assert "SharedArchiveFile" in used["spark.driver.extraJavaOptions"]
    assert used["spark.executor.extraJavaOptions"] == "-Xss8m"
    assert "spark.executor.extraClassPath" not in used


def test_options_and_class_paths_of_the_site_are_not_replaced(home: Path) -> None:
    local = {"spark.master": "local[2]"}
    assert use_archives(local, JAVA) == local
    own = {**local, **OPTIONS, "spark.driver.extraClassPath": "own.jar"}
    used = use_archives(own, JAVA)
    assert used["spark.driver.extraClassPath"] == "own.jar"
    assert used["spark.driver.extraJavaOptions"] == "-Xss4m"
    (home / "conf").mkdir()
    (home / "conf" / "spark-defaults.conf").write_text("spark.executor.extraClassPath site.jar\n")
    assert use_archives({**local, **OPTIONS}, JAVA) == {**local, **OPTIONS}


def test_another_java_or_another_spark_has_none(home: Path) -> None:
    settings = {"spark.master": "local[2]", **OPTIONS}
    assert use_archives(settings, Java(JAVA.path, "PATH", "21.0.1")) == settings
    (home / "jars" / "spark-core_2.13-4.3.0.jar").rename(home / "jars" / "spark-core_2.13-4.4.0.jar")
    assert use_archives(settings, JAVA) == settings


@pytest.mark.parametrize("role", ["driver", "executor"])
def test_java_maps_the_classes_of_spark_that_set_up_has_archived(role: str) -> None:
    home, java = spark_home(), find_java()
    file = archive_file(archive_folder(home, java), role)
    if not file.exists():
        pytest.skip("no archives here: python -m rheostat.engine.spark.session.archive_writer")
    command = [java.path, f"-XX:SharedArchiveFile={file}", "-Xlog:class+load", "-cp", class_path(home)]
    # A main class that ends at once: its arguments are missing.
    main = {
        "driver": "org.apache.spark.deploy.SparkSubmit",
        "executor": "org.apache.spark.executor.CoarseGrainedExecutorBackend",
    }
    ended = subprocess.run([*command, main[role]], capture_output=True, text=True, check=False)
    [line] = [line for line in ended.stdout.splitlines() if f" {main[role]} source:" in line]
    assert "shared objects file" in line
