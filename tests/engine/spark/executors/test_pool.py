"""Requests and removals of executors: with a scheduler in memory, then on a real embedded cluster."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import pytest
from project import SUPPORT

from rheostat.engine.spark.executors.pool import Executors, idle_then_newest, resize_state
from rheostat.engine.spark.executors.scheduler import Executor
from rheostat.errors import EngineError, InvalidValue
from rheostat.job.observation import Change

pytestmark = pytest.mark.cluster

SCRIPT = SUPPORT / "spark_resizes.py"


class StepClock:
    """A clock that moves only with `sleep`."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def now(self) -> float:
        return self.now_s

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += max(0.0, seconds)


class MemoryScheduler:
    """A scheduler whose executors the test adds and removes."""

    def __init__(self, *ids: str) -> None:
        self.ids = list(ids)
        self.tasks: dict[str, int] = {}
        self.jobs = False
        self.calls: list[str] = []
        self.acknowledges = True
        self.skips: set[str] = set()
        self.reason = "it burned"
        self.draining: set[str] = set()
        self.decommissions = True

    def registered(self) -> tuple[str, ...]:
        return tuple(self.ids)

    def describe(self, executor_id: str) -> Executor | None:
        return Executor(executor_id, "here", 2, float(executor_id))

    def removal_reason(self, executor_id: str) -> str:
        return self.reason

    def running_tasks(self) -> Mapping[str, int]:
        return self.tasks

    def no_job_runs(self) -> bool:
        return not self.jobs

    def request_total(self, executors: int) -> bool:
        self.calls.append(f"total {executors}")
        return self.acknowledges

    def remove(self, ids: Sequence[str]) -> tuple[str, ...]:
        self.calls.append(f"remove {' '.join(ids)}")
        return tuple(i for i in ids if i not in self.skips)

    def decommissioned(self, ids: Sequence[str]) -> tuple[str, ...]:
        return tuple(i for i in ids if i in self.draining)

    def withdraw(self, ids: Sequence[str]) -> None:
        self.calls.append(f"withdraw {' '.join(ids)}")

    def cores_setting(self) -> int | None:
        return None

    def leave(self, *ids: str) -> None:
        self.ids = [i for i in self.ids if i not in ids]


def executors_of(scheduler: MemoryScheduler, boundary_s: float = 2.0) -> Executors:
    return Executors(scheduler, StepClock(), boundary_s)


def names(executors: Executors) -> list[str]:
    return [e.id for e in executors.running()]


def test_the_smaller_total_is_requested_before_executors_are_removed() -> None:
    scheduler = MemoryScheduler("0", "1", "2", "3")
    notes: list[str] = []
    done = executors_of(scheduler).request(2, lambda step: notes.append(f"{step} after {len(scheduler.calls)} calls"))
    assert scheduler.calls == ["total 2", "remove 3 2"]
    assert notes == ["request 2 executors after 0 calls", "remove executors 3, 2 after 1 calls"]
    assert done.removed == ("3", "2")
    assert done.at_boundary


def test_a_repeated_request_has_no_effect() -> None:
    scheduler = MemoryScheduler("0", "1")
    executors = executors_of(scheduler)
    executors.request(2)
    before = list(scheduler.calls)
    notes: list[str] = []
    executors.request(2, notes.append)
    assert scheduler.calls == before
    assert notes == []


class Traced(MemoryScheduler):
    """Writes its effects into a trace, as the notes and the waits do."""

    def __init__(self, trace: list[str], *ids: str) -> None:
        super().__init__(*ids)
        self.trace, self.left = trace, 3

    def request_total(self, executors: int) -> bool:
        self.trace.append("effect")
        return super().request_total(executors)

    def remove(self, ids: Sequence[str]) -> tuple[str, ...]:
        self.trace.append("effect")
        return super().remove(ids)

    def no_job_runs(self) -> bool:
        self.left -= 1
        return self.left <= 0


@pytest.mark.parametrize("way", ["grow", "shrink", "again", "registered late", "shrink alone", "no boundary"])
def test_every_effect_directly_follows_a_note(way: str) -> None:
    """Between them there is no wait, in which the lease or the change may have ended."""
    trace: list[str] = []
    scheduler = Traced(trace, "0", "1", "2")

    class Waiting(StepClock):
        def sleep(self, seconds: float) -> None:
            trace.append("wait")
            super().sleep(seconds)

    clock = Waiting()
    executors = Executors(scheduler, clock, 0.005 if way == "no boundary" else 2.0)

    def note(_: str) -> None:
        trace.append("note")

    if way in ("again", "registered late"):
        executors.request(2 if way == "registered late" else 5)
        trace.clear()
        scheduler.left = 3
        scheduler.ids = ["0", "1", "2", "3"]
    if way == "shrink alone":
        executors.shrink(1, note=note)
    else:
        executors.request({"grow": 5, "again": 5, "registered late": 2}.get(way, 1), note)
    assert "effect" in trace
    assert all(trace[place - 1] == "note" for place, what in enumerate(trace) if what == "effect"), trace


def test_an_executor_is_removed_once_however_slowly_it_leaves() -> None:
    scheduler = MemoryScheduler("0", "1", "2")
    executors = executors_of(scheduler)
    executors.request(2)
    executors.request(2)
    assert scheduler.calls == ["total 2", "remove 2"]
    assert names(executors) == ["0", "1"]
    assert executors.leaving() == ("2",)
    assert executors.state(10.0, 0.0) is Change.UNDER_WAY
    scheduler.leave("2")
    assert executors.state(10.0, 0.0) is Change.NONE
    assert executors.survey(10.0, 0.0).losses == ()


def test_a_repeated_request_removes_executors_that_register_late() -> None:
    scheduler = MemoryScheduler("0")
    executors = executors_of(scheduler)
    executors.request(3)
    executors.request(1)
    scheduler.ids += ["1", "2"]
    assert executors.state(10.0, 0.0) is Change.UNDER_WAY
    executors.request(1)
    assert scheduler.calls[-2:] == ["total 1", "remove 2 1"]


def test_a_repeated_request_removes_an_executor_that_spark_skipped() -> None:
    scheduler = MemoryScheduler("0", "1")
    scheduler.skips = {"1"}
    executors = executors_of(scheduler)
    assert executors.request(1).removed == ()
    scheduler.skips = set()
    assert executors.request(1).removed == ("1",)


def test_a_withdrawn_executor_does_not_count() -> None:
    scheduler = MemoryScheduler("0")
    executors = executors_of(scheduler)
    executors.request(1)
    executors.withdraw(["1", "2"])
    assert executors.state(10.0, 0.0) is Change.NONE
    scheduler.ids.append("1")
    assert names(executors) == ["0"]
    assert executors.state(10.0, 0.0) is Change.UNDER_WAY
    scheduler.leave("1")
    assert executors.state(10.0, 0.0) is Change.NONE
    assert executors.survey(10.0, 0.0).losses == ()


def test_a_removal_waits_for_a_moment_without_jobs() -> None:
    scheduler, looks = MemoryScheduler("0", "1"), iter([False, False, True])
    done = executors_of(scheduler).request(1, at_boundary=lambda: next(looks))
    assert done.at_boundary
    assert 0.0 < done.waited_s < 0.1


def test_a_removal_waits_at_most_boundary_s() -> None:
    scheduler = MemoryScheduler("0", "1")
    scheduler.jobs = True
    done = executors_of(scheduler, boundary_s=2.0).request(1)
    assert not done.at_boundary
    assert done.waited_s == pytest.approx(2.0)
    assert done.removed == ("1",)


def test_nothing_is_removed_when_executors_died_while_waiting() -> None:
    scheduler = MemoryScheduler("0", "1")
    scheduler.jobs = True

    def dies() -> bool:
        scheduler.leave("1")
        return False

    done = executors_of(scheduler).request(1, at_boundary=dies)
    assert done.removed == ()
    assert scheduler.ids == ["0"]


def test_idle_executors_are_removed_first_then_the_newest() -> None:
    executors = [Executor(str(k), "here", 1, float(k)) for k in range(4)]
    order = idle_then_newest(executors, {"3": 2, "2": 0, "1": 1})
    assert [e.id for e in order] == ["2", "0", "1", "3"]


@pytest.mark.parametrize("reason", ["Executor killed by driver.", "Executor decommission: spot notice"])
def test_an_executor_that_somebody_took_away_is_no_loss(reason: str) -> None:
    """Dynamic allocation under a dry run, a user's own call, a spot notice."""
    scheduler = MemoryScheduler("0", "1")
    executors = executors_of(scheduler)
    assert names(executors) == ["0", "1"]
    scheduler.reason = reason
    scheduler.leave("1")
    survey = executors.survey(10.0, 500.0)
    assert survey.losses == ()
    assert [executor.id for executor in survey.running] == ["0"]


def test_an_executor_that_is_decommissioned_from_outside_counts_as_leaving() -> None:
    scheduler = MemoryScheduler("0", "1")
    executors = executors_of(scheduler)
    executors.request(2)
    scheduler.draining = {"1"}
    assert names(executors) == ["0"]
    assert executors.leaving() == ("1",)
    assert executors.state(60.0, 500.0) is Change.UNDER_WAY
    scheduler.leave("1")
    scheduler.ids.append("2")
    assert executors.survey(60.0, 510.0).losses == ()
    assert executors.state(60.0, 510.0) is Change.NONE


def test_a_dead_executor_is_a_loss_and_restarts_the_patience() -> None:
    scheduler = MemoryScheduler("0", "1", "2")
    executors = executors_of(scheduler)
    executors.request(3)
    assert executors.state(10.0, 0.0) is Change.NONE
    scheduler.leave("1")
    assert executors.state(10.0, 500.0) is Change.UNDER_WAY
    assert [(loss.executor.id, loss.reason) for loss in executors.survey(10.0, 500.0).losses] == [("1", "it burned")]
    assert executors.state(10.0, 511.0) is Change.PARTIAL
    scheduler.ids.append("3")
    assert executors.state(10.0, 512.0) is Change.NONE


@pytest.mark.parametrize(
    ("wanted", "running", "leaving", "differs_s", "change"),
    [
        (None, 3, 0, 99.0, Change.NONE),
        (3, 3, 0, 99.0, Change.NONE),
        (3, 2, 0, 5.0, Change.UNDER_WAY),
        (3, 2, 0, 5.1, Change.PARTIAL),
        (3, 4, 0, 0.0, Change.UNDER_WAY),
        (3, 3, 1, 0.0, Change.UNDER_WAY),
        (3, 3, 1, 6.0, Change.PARTIAL),
    ],
)
def test_the_state_of_a_request(
    wanted: int | None, running: int, leaving: int, differs_s: float, change: Change
) -> None:
    assert resize_state(wanted, running, leaving, differs_s, patience_s=5.0) is change


def test_an_unacknowledged_request_is_an_error_and_does_not_count() -> None:
    scheduler = MemoryScheduler("0")
    scheduler.acknowledges = False
    executors = executors_of(scheduler)
    with pytest.raises(EngineError, match="did not acknowledge a total of 4 executors"):
        executors.request(4)
    assert executors.wanted is None


@pytest.mark.parametrize("number", [0, -1, True, 2.0])
def test_fewer_than_one_executor_is_refused(number: Any) -> None:
    scheduler = MemoryScheduler("0")
    with pytest.raises(InvalidValue, match="at least 1"):
        executors_of(scheduler).request(number)
    assert scheduler.calls == []


def test_without_the_setting_the_size_is_that_of_a_running_executor() -> None:
    """Only a dry run looks at such an application: dynamic allocation may leave it without any executor."""
    scheduler = MemoryScheduler("0")
    executors = executors_of(scheduler)
    assert executors.cores_per_executor == 2
    scheduler.leave("0")
    assert executors.cores_per_executor == 2
    assert executors_of(MemoryScheduler()).cores_per_executor == 1


Lines = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Lines:
    """One cluster for the following tests: the events by part."""
    # The order needs the fewest new executors: each takes seconds to start.
    parts = ("crash", "partial", "overload:5,2,3", "back-to-back:3,1,3")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path_factory.mktemp("resizes")), *parts],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    lines: Lines = {}
    for line in done.stdout.splitlines():
        event = json.loads(line)
        assert event["event"] != "error", event["error"]
        lines.setdefault(event["part"], []).append(event)
    return lines


def test_a_session_starts_with_its_smallest_number_of_executors(cluster: Lines) -> None:
    assert cluster["session"][0]["running"] == 2
    assert cluster["session"][0]["hosts"] == ["127.0.0.1"]


@pytest.mark.parametrize(("part", "sizes"), [("back-to-back", (3, 1, 3)), ("overload", (5, 2, 3))])
def test_resizing_a_stateful_query_neither_loses_nor_repeats_a_row(
    cluster: Lines, part: str, sizes: tuple[int, ...]
) -> None:
    *resizes, result = cluster[part]
    assert [(r["before"], r["running"], r["state"]) for r in resizes] == [(a, b, "none") for a, b in pairwise(sizes)]
    assert result["error"] is None
    assert result["windows"] >= 2
    assert (result["rows_lost"], result["rows_repeated"], result["wrong"], result["losses"]) == (0, 0, 0, 0)
    assert all(r["again"] == {"notes": [], "removed": 0} for r in resizes)


def test_back_to_back_batches_have_a_boundary(cluster: Lines) -> None:
    assert all(r["at_boundary"] for r in cluster["back-to-back"] if r["event"] == "resize")


def test_under_overload_executors_are_removed_inside_a_batch(cluster: Lines) -> None:
    (shrunk,) = (r for r in cluster["overload"] if r["event"] == "resize" and r["removed"])
    assert not shrunk["at_boundary"]


def test_a_killed_executor_is_a_loss_and_is_replaced(cluster: Lines) -> None:
    (result,) = cluster["crash"]
    assert [lost for lost, _ in result["losses"]] == [result["victim"]]
    assert (result["state"], result["after"], result["running"]) == ("under way", "none", 2)
    assert "137" in result["losses"][0][1] or "disassociated" in result["losses"][0][1]
    assert result["error"] is None
    assert (result["rows_lost"], result["rows_repeated"], result["wrong"]) == (0, 0, 0)


def test_a_request_beyond_the_cluster_ends_as_partial(cluster: Lines) -> None:
    (result,) = cluster["partial"]
    assert (result["first"], result["state"]) == ("under way", "partial")
    assert (result["wanted"], result["running"], result["cores"]) == (8, 5, 1)
