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


def run(folder: Path, part: str) -> Story:
    done = subprocess.run(command(folder, part), capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    lines = [told(line) for line in done.stdout.splitlines()]
    return Story({line["event"]: line for line in lines}, records(folder))


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> Story:
    return run(tmp_path_factory.mktemp("errors"), "errors")


def one(found: list[R], true: Callable[[R], bool]) -> R:
    (only,) = filter(true, found)
    return only


def lost(story: Story, happened: str) -> Observation:
    """Return the one window after a kill that names its victim."""
    victim = story[happened]["victim"]
    name = f"lost executor {victim}: "
    return one(story.after(happened, Observation), lambda seen: name in (seen.problem or ""))


def test_what_is_refused_late_has_touched_nothing(errors: Story) -> None:
    found = errors["refused"]
    assert "did you mean 'ds2'" in found["told"]["policy"]
    assert "cannot live in mysql" in found["told"]["journal"]
    assert "does not exist" in found["told"]["folder"]
    assert "both slo.headroom" in found["told"]["factor"]
    assert "max_latency_s is 0.5 s" in found["told"]["latency"]
    assert (found["listeners"], found["jobs"], found["fresh"]) == (0, [], False)


def test_what_is_doubtful_is_warned_of_at_the_line_that_asked_for_it(errors: Story) -> None:
    texts, kinds, files = zip(*errors["refused"]["warned"], strict=True)
    assert "window_s is 0.5 s" in texts[0]
    assert "for 15000 ms write 15" in texts[1]
    assert set(kinds) == {"RheostatWarning"}
    assert set(files) == {"spark_failures.py"}


def test_an_application_has_one_scaler_that_resizes(errors: Story) -> None:
    assert f"already, for {JOB}: stop it first" in errors["policy raised"]["twice"]


def test_a_policy_that_raises_holds_until_it_stops_raising(errors: Story) -> None:
    before = [entry.record for entry in errors.entries if entry.number <= errors["policy raised"]["after"]]
    held = [r for r in before if isinstance(r, Decision) and r.reason is Reason.NO_POLICY]
    assert {r.sentence for r in held} == {"told failed: ZeroDivisionError: a bug in the policy"}
    assert all(r.target is None for r in held)
    assert not any(isinstance(r, Intent) for r in before)
    assert errors["policy raised"]["status"] == "running"
    # It grew afterwards: see below.


@pytest.mark.parametrize(("happened", "slots"), [("killed while growing", LARGEST), ("killed while shrinking", 1)])
def test_an_executor_that_dies_during_a_change_does_not_keep_it_from_ending(
    errors: Story, happened: str, slots: int
) -> None:
    assert lost(errors, happened).wanted is not None
    (end,) = errors.after(happened, IntentEnd)
    assert end.ending is Ending.DONE
    assert end.running is not None
    assert end.running.slots == slots


def test_an_executor_that_dies_at_work_is_named_and_replaced(errors: Story) -> None:
    seen = lost(errors, "killed at work")
    assert seen.change is Change.UNDER_WAY
    last = errors.after("killed at work", Observation)[-1]
    assert (last.usable, last.change) == (True, Change.NONE)
    assert last.running is not None
    assert last.running.slots == LARGEST


def test_a_cluster_without_room_is_not_asked_for_ever(errors: Story) -> None:
    assert any(seen.change is Change.PARTIAL for seen in errors.after("too many wanted", Observation))
    ends = errors.after("too many wanted", IntentEnd)
    assert {end.ending for end in ends} == {Ending.PARTIAL}
    assert f"wanted job={LARGEST + 2}, got job={LARGEST}" in ends[0].why
    assert len(errors.after("too many wanted", Intent)) <= 2
    assert errors["partial"]["running"] == LARGEST
    assert errors["partial"]["status"] == "running"
    # What the cluster gave is what the policy is told it can have; what it then asks for is done: see above.
    assert [run.spec.tunable[0].bounds.max for run in errors.after("too many wanted", Run)] == [LARGEST]


def test_a_scaler_that_died_says_so_and_another_goes_on_with_its_journal(errors: Story) -> None:
    found = errors["scaler died"]
    assert found["status"] == "failed: SystemExit: the policy gave up"
    assert found["active"]
    assert found["now"] == "running"
    assert found["first"] == found["before"] + 1


def test_nothing_is_done_that_cannot_be_written_down_and_room_on_the_disk_heals_it(errors: Story) -> None:
    assert "the disk is full" in errors["disk full"]["status"]
    assert errors["disk full"]["wanted"] != 2
    (end,) = errors.after("disk full", IntentEnd)
    assert end.running is not None
    assert (end.ending, end.running.slots) == (Ending.DONE, 2)


def test_calls_into_spark_that_fail_are_blind_windows(errors: Story) -> None:
    seen = [entry.record for entry in errors.entries if isinstance(entry.record, Observation)]
    blind = [window for window in seen if window.running is None and "Py4JError" in str(window.problem)]
    assert len(blind) == 3
    assert errors["engine raised"]["status"] == "running"
    assert errors["end"]["status"] == "running"


def test_the_result_is_exact_after_all_of_it(errors: Story) -> None:
    assert errors["end"]["active"]
    assert errors["result"]["error"] is None
    assert errors["result"]["wrong"] == 0
    assert errors["result"]["seconds_checked"] > 30


@pytest.fixture(scope="module")
def revived(tmp_path_factory: pytest.TempPathFactory) -> Story:
    """A driver that is killed in the middle of a change, and started again."""
    folder = tmp_path_factory.mktemp("revived")
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(command(folder, "doomed"), stdout=subprocess.PIPE, stderr=log, text=True) as child,
    ):
        assert child.stdout is not None
        line = child.stdout.readline()
        os.kill(child.pid, signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
        # The JVM notices and goes too; until it has, this pipe is open.
        child.stdout.read()
    assert line, (folder / "log").read_text()[-3000:]
    story = run(folder, "revived")
    story.told["ready"] = told(line)
    return story


def test_a_driver_that_was_killed_leaves_no_files_of_its_cluster(revived: Story) -> None:
    home = Path(revived["ready"]["home"])
    assert home != Path(pyspark.__path__[0])
    assert not home.exists()


def test_a_restarted_driver_takes_up_its_journal_and_finishes_the_change(revived: Story) -> None:
    assert revived["attached again"]["step"] > revived["ready"]["step"]
    intents = [entry.record for entry in revived.entries if isinstance(entry.record, Intent)]
    ends = [entry.record for entry in revived.entries if isinstance(entry.record, IntentEnd)]
    # One intent, written by the driver that died, and ended by its successor.
    assert len(intents) == 1
    assert [(end.intent, end.ending) for end in ends] == [(intents[0].id, Ending.DONE)]
    assert ends[0].running is not None
    assert ends[0].running.slots == 2


def test_the_result_is_exact_through_the_restart(revived: Story) -> None:
    assert revived["result"]["error"] is None
    assert revived["result"]["wrong"] == 0
    assert revived["result"]["seconds_checked"] > 15


def test_a_silent_source_lets_the_job_shrink_and_grow_again(revived: Story) -> None:
    found = revived["silence"]
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
