"""The executor lever: its logic over a scheduler made of lists, then a real embedded cluster in a process apart."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import pytest
from project import SUPPORT

from rheostat.engine.spark.executors.pool import Executors, idle_then_newest, progress
from rheostat.engine.spark.executors.scheduler import Executor
from rheostat.errors import EngineError, InvalidValue
from rheostat.job.observation import Change

pytestmark = pytest.mark.cluster

SCRIPT = SUPPORT / "spark_resizes.py"


class StepClock:
    """Time that only sleeping moves."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def now(self) -> float:
        return self.now_s

    def sleep_until(self, moment_s: float) -> None:
        self.now_s = max(self.now_s, moment_s)


class Lists:
    """A scheduler whose executors come and go when the test says so."""

    def __init__(self, *ids: str) -> None:
        self.ids = list(ids)
        self.tasks: dict[str, int] = {}
        self.jobs = False
        self.calls: list[str] = []
        self.acknowledges = True
        self.skips: set[str] = set()

    def registered(self) -> tuple[str, ...]:
        return tuple(self.ids)

    def describe(self, executor_id: str) -> Executor | None:
        return Executor(executor_id, "here", 2, float(executor_id))

    def reason_gone(self, executor_id: str) -> str:
        return "it burned"

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

    def withdraw(self, ids: Sequence[str]) -> None:
        self.calls.append(f"withdraw {' '.join(ids)}")

    def cores_setting(self) -> int | None:
        return None

    def leave(self, *ids: str) -> None:
        self.ids = [i for i in self.ids if i not in ids]


def lever(scheduler: Lists, boundary_s: float = 2.0) -> Executors:
    return Executors(scheduler, StepClock(), boundary_s)


def names(executors: Executors) -> list[str]:
    return [e.id for e in executors.running()]


def test_the_smaller_total_is_asked_for_before_executors_are_removed() -> None:
    scheduler = Lists("0", "1", "2", "3")
    notes: list[str] = []
    done = lever(scheduler).want(2, lambda step: notes.append(f"{step} after {len(scheduler.calls)} calls"))
    assert scheduler.calls == ["total 2", "remove 3 2"]
    assert notes == ["ask for 2 executors after 0 calls", "remove executors 3, 2 after 1 calls"]
    assert done.removed == ("3", "2")
    assert done.at_boundary


def test_wanting_the_same_again_changes_nothing() -> None:
    scheduler = Lists("0", "1")
    executors = lever(scheduler)
    executors.want(2)
    before = list(scheduler.calls)
    notes: list[str] = []
    executors.want(2, notes.append)
    assert scheduler.calls == before
    assert notes == []


def test_an_executor_is_removed_once_however_slowly_it_leaves() -> None:
    scheduler = Lists("0", "1", "2")
    executors = lever(scheduler)
    executors.want(2)
    executors.want(2)
    assert scheduler.calls == ["total 2", "remove 2"]
    assert names(executors) == ["0", "1"]
    assert executors.leaving() == ("2",)
    assert executors.state(10.0, 0.0) is Change.UNDER_WAY
    scheduler.leave("2")
    assert executors.state(10.0, 0.0) is Change.NONE
    assert executors.survey(10.0, 0.0).losses == ()


def test_executors_that_arrive_late_are_removed_by_asking_again() -> None:
    scheduler = Lists("0")
    executors = lever(scheduler)
    executors.want(3)
    executors.want(1)
    scheduler.ids += ["1", "2"]
    assert executors.state(10.0, 0.0) is Change.UNDER_WAY
    executors.want(1)
    assert scheduler.calls[-2:] == ["total 1", "remove 2 1"]


def test_an_executor_that_spark_did_not_remove_is_tried_again() -> None:
    scheduler = Lists("0", "1")
    scheduler.skips = {"1"}
    executors = lever(scheduler)
    assert executors.want(1).removed == ()
    scheduler.skips = set()
    assert executors.want(1).removed == ("1",)


def test_an_executor_that_was_taken_back_while_starting_does_not_count() -> None:
    scheduler = Lists("0")
    executors = lever(scheduler)
    executors.want(1)
    executors.withdraw(["1", "2"])
    assert executors.state(10.0, 0.0) is Change.NONE
    scheduler.ids.append("1")
    assert names(executors) == ["0"]
    assert executors.state(10.0, 0.0) is Change.UNDER_WAY
    scheduler.leave("1")
    assert executors.state(10.0, 0.0) is Change.NONE
    assert executors.survey(10.0, 0.0).losses == ()


def test_a_removal_waits_for_a_moment_without_jobs() -> None:
    scheduler, looks = Lists("0", "1"), iter([False, False, True])
    done = lever(scheduler).want(1, at_boundary=lambda: next(looks))
    assert done.at_boundary
    assert 0.0 < done.waited_s < 0.1


def test_a_removal_does_not_wait_for_ever() -> None:
    scheduler = Lists("0", "1")
    scheduler.jobs = True
    done = lever(scheduler, boundary_s=2.0).want(1)
    assert not done.at_boundary
    assert done.waited_s == pytest.approx(2.0)
    assert done.removed == ("1",)


def test_nothing_is_removed_when_executors_died_while_waiting() -> None:
    scheduler = Lists("0", "1")
    scheduler.jobs = True

    def dies() -> bool:
        scheduler.leave("1")
        return False

    done = lever(scheduler).want(1, at_boundary=dies)
    assert done.removed == ()
    assert scheduler.ids == ["0"]


def test_idle_executors_go_first_then_the_newest() -> None:
    executors = [Executor(str(k), "here", 1, float(k)) for k in range(4)]
    order = idle_then_newest(executors, {"3": 2, "2": 0, "1": 1})
    assert [e.id for e in order] == ["2", "0", "1", "3"]


def test_a_dead_executor_is_noticed_and_starts_a_new_patience() -> None:
    scheduler = Lists("0", "1", "2")
    executors = lever(scheduler)
    executors.want(3)
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
def test_how_far_a_change_has_come(
    wanted: int | None, running: int, leaving: int, differs_s: float, change: Change
) -> None:
    assert progress(wanted, running, leaving, differs_s, patience_s=5.0) is change


def test_a_total_that_is_not_acknowledged_is_an_error_and_is_not_wanted() -> None:
    scheduler = Lists("0")
    scheduler.acknowledges = False
    executors = lever(scheduler)
    with pytest.raises(EngineError, match="did not acknowledge a total of 4 executors"):
        executors.want(4)
    assert executors.wanted is None


@pytest.mark.parametrize("number", [0, -1, True, 2.0])
def test_at_least_one_executor_stays(number: Any) -> None:
    scheduler = Lists("0")
    with pytest.raises(InvalidValue, match="at least 1"):
        lever(scheduler).want(number)
    assert scheduler.calls == []


def test_the_size_of_an_executor_is_read_off_where_it_is_not_set() -> None:
    assert lever(Lists("0")).cores_per_executor == 2
    with pytest.raises(EngineError, match=r"spark\.executor\.cores is not set"):
        _ = lever(Lists()).cores_per_executor


Lines = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Lines:
    """One cluster for all that follows: what happened, by part."""
    # In the order that needs the fewest new executors: each takes seconds to start.
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
        told = json.loads(line)
        assert told["event"] != "error", told["error"]
        lines.setdefault(told["part"], []).append(told)
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


def test_batches_that_run_back_to_back_have_a_boundary(cluster: Lines) -> None:
    assert all(r["at_boundary"] for r in cluster["back-to-back"] if r["event"] == "resize")


def test_under_overload_executors_are_removed_in_the_middle_of_a_batch(cluster: Lines) -> None:
    (shrunk,) = (r for r in cluster["overload"] if r["event"] == "resize" and r["removed"])
    assert not shrunk["at_boundary"]


def test_a_killed_executor_is_noticed_and_replaced(cluster: Lines) -> None:
    (result,) = cluster["crash"]
    assert [lost for lost, _ in result["losses"]] == [result["victim"]]
    assert (result["state"], result["after"], result["running"]) == ("under way", "none", 2)
    assert "137" in result["losses"][0][1] or "disassociated" in result["losses"][0][1]
    assert result["error"] is None
    assert (result["rows_lost"], result["rows_repeated"], result["wrong"]) == (0, 0, 0)


def test_more_executors_than_there_is_room_for_end_as_partial(cluster: Lines) -> None:
    (result,) = cluster["partial"]
    assert (result["first"], result["state"]) == ("under way", "partial")
    assert (result["wanted"], result["running"], result["cores"]) == (8, 5, 1)
