"""A stateful query whose result is known: it counts words in text files, and its state is in RocksDB.

python stateful_query.py FOLDER CHECKPOINT SETTINGS     # one run in a Spark of its own; prints the counts as JSON
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.shuffle.partitions": "2",
}
TIMEOUT_S = 120


class WordCount:
    """Text files, and the query that counts their words: a batch per file."""

    def __init__(self, spark: SparkSession, folder: Path, checkpoint: str) -> None:
        self._spark, self.folder, self.checkpoint = spark, folder, checkpoint
        self._name = "words_" + folder.name.replace("-", "_")
        folder.mkdir(parents=True, exist_ok=True)

    def add(self, *texts: str) -> None:
        """Write a file per text."""
        for text in texts:
            (self.folder / f"{len(list(self.folder.iterdir())):06}.txt").write_text("\n".join(text.split()))

    def run(self) -> None:
        """Run the query on the files that it has not read; raise what it fails with."""
        query = self.start()
        try:
            if not query.awaitTermination(TIMEOUT_S):
                raise TimeoutError(f"the query runs after {TIMEOUT_S} s: {query.status}")
        finally:
            query.stop()

    def start(self, *, ends: bool = True) -> StreamingQuery:
        """Start the query; unless told otherwise it ends when it has read all files."""
        files = self._spark.readStream.option("maxFilesPerTrigger", "1").text(str(self.folder))
        writer = files.groupBy("value").count().writeStream.outputMode("complete").format("memory")
        writer = writer.queryName(self._name).option("checkpointLocation", self.checkpoint)
        return (writer.trigger(availableNow=True) if ends else writer.trigger(processingTime="20 milliseconds")).start()

    def result(self) -> dict[str, int]:
        """Return the counts after the last batch."""
        return {str(row["value"]): int(row["count"]) for row in self._spark.table(self._name).collect()}

    def expected(self) -> dict[str, int]:
        """Return the counts of all files."""
        return dict(Counter(word for file in self.folder.iterdir() for word in file.read_text().split()))


def start_spark(settings: Mapping[str, str]) -> SparkSession:
    """Start a small Spark with these settings."""
    from rheostat.engine.spark.session.session import QUICK_START, start_session

    own = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": QUICK_START,
        "spark.ui.showConsoleProgress": "false",
    }
    spark = start_session({**own, **SETTINGS, **settings})
    spark.sparkContext.setLogLevel("OFF")
    return spark


def main(folder: str, checkpoint: str, settings: str) -> None:
    """Run the query once."""
    spark = start_spark(json.loads(settings))
    words = WordCount(spark, Path(folder), checkpoint)
    words.run()
    print(json.dumps(words.result()))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
