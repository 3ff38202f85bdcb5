"""The input of the query under kills, as a source that can be read again from any offset.

Spark's tool drops a batch that has begun and not ended, where exactly-once is off. The next batch begins before it
again. Kafka allows that; Spark's file source does not: its query ends with "assertion failed". Rheostat drops batches
in real-time mode only, which reads Kafka. This source counts files, and stands for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType


class NumberedFiles(DataSource):
    """The lines of the files `0000.txt`, `0001.txt`, ... in a folder; its offset is the number of files."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "numbered_files"

    def schema(self) -> str:
        """Return the one column."""
        return "value string"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return what reads the folder."""
        return FolderReader(Path(self.options["path"]))


class FolderReader(DataSourceStreamReader):
    """Reads one file per task."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Return 0: every file is read."""
        return {"files": 0}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Return the next file, if there is one: a batch has one file."""
        return {"files": min(start["files"] + 1, sum(1 for _ in self._folder.glob("*.txt")))}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """Return the files between two offsets."""
        return [InputPartition(number) for number in range(start["files"], end["files"])]

    def read(self, partition: InputPartition) -> Iterator[tuple[str]]:
        """Read a file."""
        yield ((self._folder / f"{partition.value:04}.txt").read_text(),)
