"""The measures of a soak have stable names, and goals that a bad soak misses."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from rheostat.lab.bench.soak import measures
from rheostat.lab.soak.changes import Changes
from rheostat.lab.soak.faults import Kind
from rheostat.lab.soak.memory import Trend
from rheostat.lab.soak.run import Soak

GOOD = Soak(
    minutes=60.0,
    faults=Counter({Kind.DRIVER: 2, Kind.STOP: 3}),
    came_back=5,
    slowest_s=31.4,
    keys_wrong=0,
    records=1_800_000,
    changes=Changes(done=90, restarts=4, repartitions=1),
    drivers=3,
    ended_alone=0,
    python=Trend(150.0, 151.0, 2.0, 31.0),
    jvm=None,
    heap=None,
    heap_text="heap 300 MB, classes and code 200 MB",
    journal_mb=1.5,
)
NAMES = ["minutes", "faults", "came_back", "keys_wrong", "changes", "restarts"]
MEMORY = ["python_mb_per_hour", "jvm_mb_per_hour", "live_mb_per_hour", "journal_mb"]


def test_names_are_stable_and_end_with_the_mode() -> None:
    assert [m.measure for m in measures(GOOD, "realtime")] == [f"{name}_realtime" for name in NAMES + MEMORY]


def test_the_faults_are_noted_by_kind() -> None:
    by_name = {m.measure: m for m in measures(GOOD, "microbatch")}
    assert by_name["faults_microbatch"].note == "driver killed 2, driver stopped 3"
    assert "150 MB in the first quarter, 151 in the last" in by_name["python_mb_per_hour_microbatch"].note


def test_a_job_that_stays_away_and_a_wrong_key_miss_their_goals() -> None:
    assert {m.measure for m in measures(GOOD, "x") if m.met is False} == set()
    missed = {m.measure for m in measures(replace(GOOD, came_back=4, keys_wrong=1), "x") if m.met is False}
    assert missed == {"came_back_x", "keys_wrong_x"}
