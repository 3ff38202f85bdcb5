"""A query on an embedded cluster under `rheostat.autoscale`; prints one JSON line about what happened.

python spark_autoscaled.py FOLDER
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from step_trace import traced_steps

import rheostat
from rheostat.api.scaler import Scaler
from rheostat.control.replay import replay
from rheostat.engine.testbed.loads import Steps
from rheostat.engine.testbed.schedule import Schedule
from rheostat.engine.testbed.source import ScheduleCounter, batch, stream
from rheostat.job.slo import SLO
from rheostat.journal import open_journal
from rheostat.lab.workload.pacing import paced
from rheostat.policy.ds2 import DS2

SLOT_PER_S = 200.0
PARTITIONS = 12
SECONDS = 240
"""Seconds for which growth is awaited at most: on a busy machine an executor takes a minute to start."""
LEAST_STEPS = 8


def pace(frame: Any) -> Any:
    return paced(frame, SLOT_PER_S, tasks=PARTITIONS)


def main(folder: Path) -> None:
    schedule = Schedule(Steps((1.0, 4.0), 20), 100.0, 600)
    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.sql.shuffle.partitions": "3"}
    spark = rheostat.session("autoscaled", max_executors=3, conf=quiet)
    spark.sparkContext.setLogLevel("OFF")
    written: dict[int, dict[int, int]] = {}

    def keep(frame: Any, number: int) -> None:
        # A batch that is tried again writes the same rows under the same number.
        written[number] = {row["second"]: row["n"] for row in frame.collect()}

    events = stream(spark, schedule, partitions=PARTITIONS).transform(rheostat.operator("pace", pace, sample=1))
    by_second = events.selectExpr("unix_seconds(timestamp) as second").groupBy("second").count()
    query = (
        by_second.selectExpr("second", "count as n")
        .writeStream.outputMode("update")
        .foreachBatch(keep)
        .queryName("autoscaled")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(processingTime="1 second")
        .start()
    )
    counters = {"autoscaled": ScheduleCounter(schedule)}
    options = rheostat.Options(interval_s=3.0, window_s=10.0, counters=counters)
    slo = SLO(headroom=0.2)
    with rheostat.autoscale(query, max_executors=3, slo=slo, dry_run=True, options=options) as shadow:
        time.sleep(15.0)
        shadow_steps = shadow.steps
    journal = open_journal(str(folder / "journal.db"))
    with (
        traced_steps() as trace,
        rheostat.autoscale(query, max_executors=3, slo=slo, journal=journal, options=options) as scaler,
    ):
        await_growth(scaler)
        steps, status = scaler.steps, scaler.status
    query.stop()
    failed = query.exception()
    wrong, checked = compare(spark, schedule, written)
    again = replay(journal, "autoscaled", lambda _run: DS2())
    sizes = [s.observation.running.slots for s in steps if s.observation.running is not None]
    rates = sorted(r for s in steps if (r := s.observation.operator("pace").true_rate_per_s))
    told = {
        "failed": None if failed is None else str(failed)[:300],
        "status": status,
        "first_executors": sizes[0],
        "most_executors": max(sizes),
        "reasons": Counter(str(s.decision.reason) for s in steps),
        "rows_wrong": wrong,
        "seconds_checked": checked,
        "pace_true_rate": rates[len(rates) // 2] if rates else None,
        "shadow_changed": any(s.intent is not None for s in shadow_steps),
        "shadow_decisions": len(shadow_steps),
        "replay_steps": again.steps,
        "replay_differences": len(again.differences),
        "walks": [stations for step, stations in trace.steps if step.intent is not None],
    }
    spark.stop()
    print(json.dumps(told))


def await_growth(scaler: Scaler) -> None:
    """Wait until executors have come, two windows were seen with them, and one with a probe; for a limited time."""
    deadline_s, grown = time.monotonic() + SECONDS - 15.0, 0
    paced_seen = False
    while time.monotonic() < deadline_s and (grown < 2 or not paced_seen):
        time.sleep(1.0)
        paced_seen = any(s.observation.operator("pace").true_rate_per_s for s in scaler.steps)
        sizes = [s.observation.running.slots for s in scaler.steps if s.observation.running is not None]
        grown = sum(size > sizes[0] for size in sizes) if len(sizes) > LEAST_STEPS else 0


def compare(spark: Any, schedule: Schedule, written: dict[int, dict[int, int]]) -> tuple[int, int]:
    """Count the seconds whose final count differs from the batch computation of the same seconds."""
    final: dict[int, int] = {}
    for number in sorted(written):
        final.update(written[number])
    first = min(final)
    # The last second of the last batch may be followed by more of its records: leave it out.
    last = max(final)
    expected = batch(spark, schedule, first_s=0, last_s=last - first)
    rows = expected.selectExpr("unix_seconds(timestamp) as second").groupBy("second").count().collect()
    wrong = sum(final.get(row["second"]) != row["count"] for row in rows)
    return wrong, len(rows)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
