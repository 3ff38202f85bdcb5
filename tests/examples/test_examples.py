"""The examples, run as their docstrings say: a cluster of their own, a real broker, results that are right."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from project import ROOT

if TYPE_CHECKING:
    from rheostat.kafka.broker import Broker

EXAMPLES = ROOT / "examples"
SCRIPTS = ("kafka_json", "files", "realtime")
RUNS_S = (40, 240)
"""Seconds of the first run, and of those that resume from its checkpoint where the machine was too slow."""


def run(name: str, folder: Path, done: Callable[[], bool], *arguments: str) -> str:
    """Run an example until its results are complete; return what it printed last."""
    printed = ""
    for seconds in RUNS_S:
        command = [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments, "--folder", str(folder / "out")]
        ended = subprocess.run(
            [*command, "--seconds", str(seconds)],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr[-3000:]
        printed = ended.stdout
        if done():
            break
    return printed


def steps(folder: Path, job: str) -> int:
    """How many windows the scaler has journaled."""
    from rheostat.journal import open_journal

    journal = open_journal(str(folder / "out" / "scaler.db"))
    try:
        assert journal.jobs() == (job,)
        return sum(1 for entry in journal.read(job) if type(entry.record).__name__ == "Observation")
    finally:
        journal.close()


def produce(broker: Broker, topic: str, values: list[str]) -> None:
    from rheostat.kafka.client import producer

    client = producer(broker.bootstrap, {})
    for value in values:
        client.produce(topic, value.encode())
    assert client.flush(30) == 0


def connector() -> str:
    from rheostat.kafka.jars import connector_jars

    return ",".join(map(str, connector_jars()))


VIEWS = [("ada", "/docs/spark", 5), ("bob", "/docs/run", 50), ("ada", "/shop", 20), ("eve", "/docs/", 70)]
"""Who, which page, and how many seconds after 09:30."""


@pytest.mark.cluster
def test_page_views_from_kafka_are_counted(broker: Broker, tmp_path: Path) -> None:
    from kafka_world import new_topic

    topic = new_topic(broker, 2)
    # The last view closes the minutes before it.
    views = [*VIEWS, ("bob", "/shop", 600)]
    produce(broker, topic, [view(*each) for each in views])
    counted: Counter[tuple[str, str]] = Counter()

    def done() -> bool:
        counted.clear()
        for file in (tmp_path / "out" / "counts").glob("batch=*/*.json"):
            for row in map(json.loads, file.read_text().splitlines()):
                counted[row["minute"][11:16], row["section"]] += row["count"]
        return len(counted) == 3

    options = ("--bootstrap", broker.bootstrap, "--topic", topic, "--jars", connector(), "--max-executors", "2")
    printed = run("kafka_json", tmp_path, done, *options)
    minutes = sorted({minute for minute, _ in counted})
    assert len(minutes) == 2
    assert dict(counted) == {(minutes[0], "docs"): 2, (minutes[0], "shop"): 1, (minutes[1], "docs"): 1}
    assert "<Scaler of views>" in printed
    assert steps(tmp_path, "views") >= 1


def view(user: str, page: str, after_s: int) -> str:
    return json.dumps({"user": user, "page": page, "at": f"2026-11-17T09:{30 + after_s // 60}:{after_s % 60:02d}Z"})


def committed(folder: Path) -> list[str]:
    """The files of Spark's file sink that belong to finished batches."""
    logs = [path for path in (folder / "_spark_metadata").glob("*") if path.name.isdigit()]
    entries = [json.loads(line) for log in logs for line in log.read_text().splitlines()[1:]]
    return [entry["path"].removeprefix("file://") for entry in entries]


@pytest.mark.cluster
def test_orders_from_files_are_totalled(tmp_path: Path) -> None:
    import pyarrow.parquet  # type: ignore[import-untyped]

    (tmp_path / "incoming").mkdir()
    orders = [("ada", 10.0, 5), ("ada", 2.5, 50), ("bob", 1.0, 70), ("eve", 9.0, 600)]
    lines = [
        json.dumps({"customer": who, "amount": amount, "at": f"2026-11-17T09:{30 + s // 60}:{s % 60:02d}Z"})
        for who, amount, s in orders
    ]
    (tmp_path / "incoming" / "orders.json").write_text("\n".join(lines))
    totals: dict[str, tuple[float, int]] = {}

    def done() -> bool:
        totals.clear()
        for path in committed(tmp_path / "out" / "totals"):
            for row in pyarrow.parquet.read_table(path).to_pylist():
                totals[row["customer"]] = (row["amount"], row["orders"])
        return len(totals) == 2

    printed = run("files", tmp_path, done, "--source", str(tmp_path / "incoming"), "--max-executors", "2")
    assert totals == {"ada": (12.5, 2), "bob": (1.0, 1)}
    assert "<Scaler of orders>" in printed
    assert steps(tmp_path, "orders") >= 1


LINES = ["to be or not to be", "that is the question", "to sleep"]


@pytest.mark.cluster
def test_words_are_counted_in_real_time(broker: Broker, tmp_path: Path) -> None:
    from kafka_world import new_topic, records

    source, sink = new_topic(broker, 2), new_topic(broker, 2)
    produce(broker, source, LINES)
    counts: dict[str, int] = {}

    def done() -> bool:
        counts.clear()
        for record in records(broker, sink):
            # A count only grows; a batch that was cut off writes its counts again.
            counts[record.key] = max(counts.get(record.key, 0), int(record.value))
        return counts.get("to") == 3 and len(counts) == 9

    options = ("--bootstrap", broker.bootstrap, "--jars", connector(), "--source", source, "--sink", sink)
    printed = run("realtime", tmp_path, done, *options, "--max-executors", "2")
    assert counts == Counter(word for line in LINES for word in line.split())
    assert "<Scaler of words>" in printed


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_example_marks_the_lines_of_rheostat(name: str) -> None:
    text = (EXAMPLES / f"{name}.py").read_text()
    lines = text.splitlines()
    tree = ast.parse(text)
    calls = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call | ast.Attribute) and ast.unparse(node).startswith("rheostat.")
    ]
    assert len(lines) <= 110
    assert calls
    for number in calls:
        block = range(number - 1, -1, -1)
        first = next(index for index in block if not lines[index].strip() or "# rheostat:" in lines[index])
        assert "# rheostat:" in lines[first], f"{name}.py:{number} is not under a `# rheostat:` comment"
