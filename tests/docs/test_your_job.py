"""The page "Your job in three lines" runs on a broker and a cluster, with the lines that its diff adds."""

import json
import os
import re
import shlex
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from kafka_world import running_broker
from project import ROOT

from rheostat.kafka.client import producer
from rheostat.kafka.jars import connector_jars

pytestmark = pytest.mark.cluster

PAGE = (ROOT / "docs" / "your-job.md").read_text()
CLICKS_PER_S = 100
LOOK = "the parent looks now"

AWAIT = """
import json, sys, time, urllib.request

def await_steps(steps, usable):
    deadline_s = time.monotonic() + 240
    while time.monotonic() < deadline_s and query.isActive:
        if len(scaler.steps) >= steps and sum(step.observation.usable for step in scaler.steps) >= usable:
            break
        time.sleep(0.2)
    return scaler.steps
"""
DRY = "\ndry = await_steps(3, 2)\n"
SCRAPE = "\nmetrics = urllib.request.urlopen(exporter.url, timeout=30).read().decode()\n"
LIVE = f"""
live = await_steps(1, 0)
print({LOOK!r}, flush=True)
sys.stdin.readline()  # no more clicks come
query.processAllAvailable()
"""
STORY = """
failed = query.exception()
story = {
    "failed": failed and str(failed)[:500],
    "active": query.isActive,
    "status": scaler.status,
    "dry_changes": sum(step.intent is not None for step in dry),
    "problems": [step.problem for step in (*dry, *live) if step.problem],
    "policy_failures": scaler.policy_failures,
    "loads": [step.observation.load_per_s for step in dry if step.observation.usable],
    "sentences": [step.decision.sentence for step in (*dry, *live)],
    "metrics": metrics,
}
query.stop()
spark.stop()
print(json.dumps(story))
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def patched(code: str, diff: str) -> str:
    """Apply a diff whose hunks, parted by @@, have no line numbers."""
    for hunk in diff.split("@@\n"):
        lines = hunk.splitlines(keepends=True)
        old = "".join(line[1:] for line in lines if line[0] in " -")
        new = "".join(line[1:] for line in lines if line[0] in " +")
        assert code.count(old) == 1, old
        code = code.replace(old, new)
    return code


@contextmanager
def clicks(bootstrap: str) -> Iterator[tuple[threading.Event, Counter[tuple[int, str]]]]:
    """Send clicks until the event is set; count those that were sent, by window and page."""
    sent: Counter[tuple[int, str]] = Counter()
    ended = threading.Event()

    def send() -> None:
        to = producer(bootstrap, {})
        number = 0
        while not ended.wait(0.1):
            for _ in range(CLICKS_PER_S // 10):
                now_s, page = int(datetime.now(UTC).timestamp()), f"/page/{number % 7}"
                click = {
                    "at": datetime.fromtimestamp(now_s, UTC).isoformat(),
                    "user": f"user {number}",
                    "url": f"https://shop.example{page}?q={number}",
                }
                to.produce("clicks", json.dumps(click).encode())
                sent[now_s - now_s % 10, page] += 1
                number += 1
            to.poll(0)
        assert to.flush(30) == 0

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield ended, sent
    finally:
        ended.set()
        thread.join()


def written(folder: Path) -> dict[tuple[int, str], int]:
    """Return window and page -> the last count that foreachBatch wrote; counts only grow."""
    rows = pd.concat([pd.read_parquet(part) for part in folder.glob("batch=*")])
    starts = [int(pd.Timestamp(each["start"]).tz_localize("UTC").timestamp()) for each in rows["window"]]
    counts: dict[tuple[int, str], int] = {}
    for start_s, page, count in zip(starts, rows["page"], rows["count"], strict=True):
        counts[start_s, page] = max(counts.get((start_s, page), 0), int(count))
    return counts


def test_three_lines_are_added() -> None:
    (diff,) = blocks("diff")
    assert sum(line.startswith("+") for line in diff.splitlines()) == 3


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What happened to the job of the page."""
    folder = tmp_path_factory.mktemp("your-job")
    job, logs, look, metrics, live, off = blocks("python")
    attached = patched(job, blocks("diff")[0]).replace("query.awaitTermination()\n", "")
    parts = [logs, AWAIT, attached, DRY, look, metrics, SCRAPE, live, LIVE, off, STORY]
    (folder / "clicks.py").write_text("\n".join(parts))
    with running_broker() as broker:
        broker.create("clicks", 2)
        environment = {
            **os.environ,
            "KAFKA": broker.bootstrap,
            "METRICS_PORT": "0",
            "PYSPARK_SUBMIT_ARGS": f"--jars {','.join(map(str, connector_jars()))} pyspark-shell",
        }
        with (
            clicks(broker.bootstrap) as (ended, sent),
            (folder / "errors").open("w+") as errors,
            subprocess.Popen(
                [sys.executable, "clicks.py"],
                cwd=folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            ) as running,
        ):
            assert running.stdout is not None
            assert running.stdin is not None
            printed = []
            for line in running.stdout:
                printed.append(line)
                if line.strip() == LOOK:
                    shell = run_shell(folder)
                    ended.set()
                    running.stdin.write("\n")
                    running.stdin.flush()
    errors_text = (folder / "errors").read_text()
    assert running.returncode == 0, errors_text[-4000:]
    counts = written(folder / "out" / "counts")
    return {
        **json.loads(printed[-1]),
        "printed": "".join(printed[:-1]),
        "errors": errors_text,
        "shell": shell,
        "page": (folder / "clicks.html").read_text(),
        "sent": dict(sent),
        "written": counts,
    }


def run_shell(folder: Path) -> str:
    """Run the page's commands beside the running job."""
    printed = ""
    for line in "".join(blocks("bash")).splitlines():
        command = [sys.executable, "-m", *shlex.split(line, comments=True)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        printed += done.stdout
    return printed


def test_the_job_goes_on_and_nothing_fails(story: dict[str, Any]) -> None:
    assert story["failed"] is None
    assert story["active"]
    assert story["status"] == "stopped"
    assert story["problems"] == []
    assert story["policy_failures"] == 0


def test_foreach_batch_has_written_every_click_once(story: dict[str, Any]) -> None:
    assert story["written"] == story["sent"]


def test_the_scaler_sees_the_load_and_decides(story: dict[str, Any]) -> None:
    assert len(story["loads"]) >= 2
    assert 0 < story["loads"][-1] < 10 * CLICKS_PER_S
    assert all(story["sentences"])


def test_a_dry_run_changes_nothing(story: dict[str, Any]) -> None:
    assert story["dry_changes"] == 0


def test_the_page_prints_what_it_says(story: dict[str, Any]) -> None:
    printed = story["printed"]
    assert "<Scaler of clicks>" in printed
    shown = blocks("text")[0]
    for name in ("status", "policy", "size", "load", "backlog", "last decision", "changes"):
        assert f"  {name} " in shown
        assert f"  {name} " in printed
    assert 'rheostat_source_records_per_second{job="clicks"' in story["metrics"]
    assert "clicks" in story["page"]
