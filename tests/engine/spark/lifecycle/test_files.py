"""Files: the double in a folder and Hadoop's in a real Spark behave alike."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from folder_spark import FolderFiles
from pyspark.sql import SparkSession

from rheostat.engine.spark.lifecycle.files import Files, HadoopFiles

LONG = "x" * 100_000


class FilesConformance:
    """What holds for all files; a subclass has a fixture `files` over an empty folder."""

    def test_a_missing_folder_is_empty(self, files: Files) -> None:
        assert dict(files.entries()) == {}
        assert dict(files.entries("none", "at", "all")) == {}
        files.create("", "a", "file")
        assert set(files.entries()) == {"a"}

    def test_entries_are_files_and_folders(self, files: Files) -> None:
        before_s = time.time()
        files.replace("1", "offsets", "0")
        files.create("2", "offsets", "deeper", "1")
        listed = files.entries("offsets")
        assert {name: entry.is_folder for name, entry in listed.items()} == {"0": False, "deeper": True}
        assert listed["0"].modified_s == pytest.approx(before_s, abs=60)

    def test_a_missing_file_has_no_text(self, files: Files) -> None:
        assert files.text("none") is None
        assert files.text("none", "at all") is None

    @pytest.mark.parametrize("text", ["", "v1\n{}\n-", "Ω → 1\n", LONG])
    def test_text_comes_back(self, files: Files, text: str) -> None:
        assert files.create(text, "a")
        files.replace(text, "b")
        assert (files.text("a"), files.text("b")) == (text, text)

    def test_a_file_is_created_once(self, files: Files) -> None:
        assert files.create("first", "drivers", "1") is True
        assert files.create("second", "drivers", "1") is False
        assert files.text("drivers", "1") == "first"
        # The answer of the first call may have been lost.
        assert files.create("first", "drivers", "1") is True

    def test_replace_writes_over_what_create_wrote(self, files: Files) -> None:
        files.create("first", "a")
        files.replace("second", "a")
        assert files.text("a") == "second"
        assert files.create("first", "a") is False
        files.replace("third", "a")
        assert files.text("a") == "third"
        assert set(files.entries()) == {"a"}

    def test_a_deleted_file_is_gone_and_may_be_created_again(self, files: Files) -> None:
        files.delete("none")
        files.delete("none", "at all")
        for write in (files.create, files.replace):
            write("first", "folder", "a")
            files.delete("folder", "a")
            assert (files.text("folder", "a"), dict(files.entries("folder"))) == (None, {})
        assert files.create("second", "folder", "a") is True

    def test_of_four_threads_one_creates_a_file(self, files: Files) -> None:
        for number in range(5):
            together = threading.Barrier(4)

            def create(who: int, name: str = str(number), begin: Callable[[], Any] = together.wait) -> tuple[bool, str]:
                begin()
                return files.create(f"thread {who}", "drivers", name), f"thread {who}"

            with ThreadPoolExecutor(4) as pool:
                answers = list(pool.map(create, range(4)))
            assert [text for created, text in answers if created] == [files.text("drivers", str(number))]

    def test_a_reader_sees_the_old_text_or_the_new_one(self, files: Files) -> None:
        def write_often() -> None:
            for number in range(50):
                files.replace(str(number % 10) * 20_000, "a")

        files.replace("0" * 20_000, "a")
        with ThreadPoolExecutor(1) as pool:
            writes = pool.submit(write_often)
            seen, listed = {files.text("a")}, {"a" in files.entries()}
            while not writes.done():
                seen.add(files.text("a"))
                listed.add("a" in files.entries())
            writes.result()
        assert seen <= {str(n) * 20_000 for n in range(10)}
        assert listed == {True}


class TestFolderFiles(FilesConformance):
    @pytest.fixture
    def files(self, tmp_path: Path) -> Files:
        return FolderFiles(tmp_path / "checkpoint")


@pytest.mark.cluster
class TestHadoopFiles(FilesConformance):
    @pytest.fixture
    def files(self, spark: SparkSession, tmp_path: Path) -> Files:
        return HadoopFiles(spark, str(tmp_path / "checkpoint"))

    def test_spark_reads_what_replaces_a_file_with_a_checksum(self, spark: SparkSession, tmp_path: Path) -> None:
        files = HadoopFiles(spark, str(tmp_path))
        spark.range(1).selectExpr("'first' as value").coalesce(1).write.text(str(tmp_path / "first"))
        (part,) = [name for name in files.entries("first") if name.startswith("part-")]
        assert (tmp_path / "first" / f".{part}.crc").exists()
        files.replace("third", "first", part)
        assert [row["value"] for row in spark.read.text(str(tmp_path / "first")).collect()] == ["third"]
