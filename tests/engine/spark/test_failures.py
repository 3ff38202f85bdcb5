"""Whatever fails, the query goes on, its result is exact, and the journal tells what happened. On real clusters."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyspark
import pytest
import spark_failures
from spark_failures import JOB, LARGEST

from rheostat.job.decision import Decision, Reason
from rheostat.job.observation import Change, Observation
from rheostat.job.record import Ending, Intent, IntentEnd, Run
from rheostat.journal import open_journal
from rheostat.ports import Entry

pytestmark = pytest.mark.cluster

R = TypeVar("R")


@dataclass
class Story:
    """What a child process told, and what its journal holds."""

    told: dict[str, dict[str, Any]]
    entries: list[Entry]

    def __getitem__(self, happened: str) -> dict[str, Any]:
        return self.told[happened]

    def after(self, happened: str, kind: type[R]) -> list[R]:
        """Return the records of a kind from an event on, up to the next one."""
        numbers = [told["after"] for told in self.told.values()]
        first = self.told[happened]["after"]
        last = min((n for n in numbers if n > first), default=sys.maxsize)
        return [e.record for e in self.entries if first < e.number <= last and isinstance(e.record, kind)]


def told(line: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(line)
    return found


def command(folder: Path, part: str) -> list[str]:
    return [sys.executable, spark_failures.__file__, str(folder), part]


def records(folder: Path) -> list[Entry]:
    journal = open_journal(folder / "journal.db")
    entries = list(journal.read(JOB))
    journal.close()
    return entries


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    """A driver under which everything fails, and which is killed in the middle of a change and started again."""
    folder = tmp_path_factory.mktemp("failures")
    lines = []
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(command(folder, "doomed"), stdout=subprocess.PIPE, stderr=log, text=True) as child,
    ):
        assert child.stdout is not None
        # To the end: the JVM goes when its driver has gone, and until then it holds this pipe open.
        for line in child.stdout:
            lines.append(told(line))
            if lines[-1]["event"] == "ready":
                os.kill(child.pid, signal.SIGKILL)
    assert child.returncode == -signal.SIGKILL, (folder / "log").read_text()[-3000:]
    done = subprocess.run(command(folder, "revived"), capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    lines += [told(line) for line in done.stdout.splitlines()]
    return Story({line["event"]: line for line in lines}, records(folder))


def one(found: list[R], true: Callable[[R], bool]) -> R:
    (only,) = filter(true, found)
    return only


def lost(story: Story, happened: str) -> Observation:
    """Return the one window after a kill that names its victim."""
    victim = story[happened]["victim"]
    name = f"lost executor {victim}: "
    return one(story.after(happened, Observation), lambda seen: name in (seen.problem or ""))


def test_what_is_refused_late_has_touched_nothing(story: Story) -> None:
    found = story["refused"]
    assert "did you mean 'ds2'" in found["told"]["policy"]
    assert "cannot live in mysql" in found["told"]["journal"]
    assert "does not exist" in found["told"]["folder"]
    assert "both slo.headroom" in found["told"]["factor"]
    assert "max_latency_s is 0.5 s" in found["told"]["latency"]
    assert (found["listeners"], found["jobs"], found["fresh"]) == (0, [], False)


def test_what_is_doubtful_is_warned_of_at_the_line_that_asked_for_it(story: Story) -> None:
    texts, kinds, files = zip(*story["refused"]["warned"], strict=True)
    assert "window_s is 0.5 s" in texts[0]
    assert "for 15000 ms write 15" in texts[1]
    assert set(kinds) == {"RheostatWarning"}
    assert set(files) == {"spark_failures.py"}


def test_an_application_has_one_scaler_that_resizes(story: Story) -> None:
    assert f"already, for {JOB}: stop it first" in story["policy raised"]["twice"]


def test_a_policy_that_raises_holds_until_it_stops_raising(story: Story) -> None:
    before = [entry.record for entry in story.entries if entry.number <= story["policy raised"]["after"]]
    held = [r for r in before if isinstance(r, Decision) and r.reason is Reason.NO_POLICY]
    assert {r.sentence for r in held} == {"told failed: ZeroDivisionError: a bug in the policy"}
    assert all(r.target is None for r in held)
    assert not any(isinstance(r, Intent) for r in before)
    assert story["policy raised"]["status"].startswith("running, but the policy failed ")
    # It grew afterwards: see below.


@pytest.mark.parametrize(("happened", "slots"), [("killed while growing", LARGEST), ("killed while shrinking", 1)])
def test_an_executor_that_dies_during_a_change_does_not_keep_it_from_ending(
    story: Story, happened: str, slots: int
) -> None:
    assert lost(story, happened).wanted is not None
    (end,) = story.after(happened, IntentEnd)
    assert end.ending is Ending.DONE
    assert end.running is not None
    assert end.running.slots == slots


def test_an_executor_that_dies_at_work_is_named_and_replaced(story: Story) -> None:
    seen = lost(story, "killed at work")
    assert seen.change is Change.UNDER_WAY
    last = story.after("killed at work", Observation)[-1]
    assert (last.usable, last.change) == (True, Change.NONE)
    assert last.running is not None
    assert last.running.slots == LARGEST


def test_a_cluster_without_room_is_not_asked_for_ever(story: Story) -> None:
    assert any(seen.change is Change.PARTIAL for seen in story.after("too many wanted", Observation))
    ends = story.after("too many wanted", IntentEnd)
    assert {end.ending for end in ends} == {Ending.PARTIAL}
    assert f"wanted job={LARGEST + 2}, got job={LARGEST}" in ends[0].why
    assert len(story.after("too many wanted", Intent)) <= 2
    assert story["partial"]["running"] == LARGEST
    assert story["partial"]["status"] == "running"
    # What the cluster gave is what the policy is told it can have; what it then asks for is done: see above.
    assert [run.spec.tunable[0].bounds.max for run in story.after("too many wanted", Run)] == [LARGEST]


def test_a_scaler_that_died_says_so_and_another_goes_on_with_its_journal(story: Story) -> None:
    found = story["scaler died"]
    assert found["status"] == "failed: SystemExit: the policy gave up"
    assert found["active"]
    assert found["now"] == "running"
    assert found["first"] == found["before"] + 1


def test_nothing_is_done_that_cannot_be_written_down_and_room_on_the_disk_heals_it(story: Story) -> None:
    assert "the disk is full" in story["disk full"]["status"]
    assert story["disk full"]["wanted"] != LARGEST
    assert [intent.target.slots for intent in story.after("disk full", Intent)] == [LARGEST]


def test_calls_into_spark_that_fail_are_blind_windows(story: Story) -> None:
    seen = [entry.record for entry in story.entries if isinstance(entry.record, Observation)]
    blind = [window for window in seen if window.running is None and "Py4JError" in str(window.problem)]
    assert len(blind) == 3
    assert story["engine raised"]["status"] == "running"


def test_a_driver_that_was_killed_leaves_no_files_of_its_cluster(story: Story) -> None:
    home = Path(story["ready"]["home"])
    assert home != Path(pyspark.__path__[0])
    assert not home.exists()


def test_a_restarted_driver_takes_up_its_journal_and_finishes_the_change(story: Story) -> None:
    assert story["attached again"]["step"] > story["ready"]["step"]
    # An intent that was written by the driver that died, and ended by its successor.
    (intent,) = story.after("disk full", Intent)
    assert story.after("attached again", Intent) == []
    (end,) = (
        entry.record
        for entry in story.entries
        if isinstance(entry.record, IntentEnd) and entry.number > story["ready"]["after"]
    )
    assert (end.intent, end.ending) == (intent.id, Ending.DONE)
    assert end.running is not None
    assert end.running.slots == LARGEST


def test_the_result_is_exact_after_all_of_it(story: Story) -> None:
    assert story["result"]["error"] is None
    assert story["result"]["wrong"] == 0
    assert story["result"]["seconds_checked"] > 30


def test_a_silent_source_lets_the_job_shrink_and_grow_again(story: Story) -> None:
    found = story["silence"]
    assert found["status"] == "running"
    assert found["error"] is None
    sizes = found["sizes"]
    assert max(sizes[: sizes.index(1, 1)]) == LARGEST
    assert sizes[-1] == LARGEST
    assert found["shrinks"]
    # Nothing arrives, nothing waits, however long ago the last batch was.
    assert (found["load"], found["backlog"], found["lag_s"]) == (0.0, 0.0, 0.0)
    assert found["held"] == Reason.STEADY
    assert found["exact"]
