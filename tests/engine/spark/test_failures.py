"""After every kind of failure the query continues, its result is exact, and the journal shows it. On real clusters."""

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
    """The events of a child process, and its journal."""

    events: dict[str, dict[str, Any]]
    entries: list[Entry]

    def __getitem__(self, event: str) -> dict[str, Any]:
        return self.events[event]

    def after(self, event: str, kind: type[R]) -> list[R]:
        """Return the records of a kind between an event and the next one."""
        numbers = [one["after"] for one in self.events.values()]
        first = self.events[event]["after"]
        last = min((n for n in numbers if n > first), default=sys.maxsize)
        return [e.record for e in self.entries if first < e.number <= last and isinstance(e.record, kind)]


def parse(line: str) -> dict[str, Any]:
    event: dict[str, Any] = json.loads(line)
    return event


def command(folder: Path, part: str) -> list[str]:
    return [sys.executable, spark_failures.__file__, str(folder), part]


def records(folder: Path) -> list[Entry]:
    journal = open_journal(folder / "journal.db")
    entries = list(journal.read(JOB))
    journal.close()
    return entries


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    """A driver with many failures, which is killed during a change and started again."""
    folder = tmp_path_factory.mktemp("failures")
    lines = []
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(command(folder, "doomed"), stdout=subprocess.PIPE, stderr=log, text=True) as child,
    ):
        assert child.stdout is not None
        # Read to the end: the JVM keeps this pipe open until it ends, after its driver.
        for line in child.stdout:
            lines.append(parse(line))
            if lines[-1]["event"] == "ready":
                os.kill(child.pid, signal.SIGKILL)
    assert child.returncode == -signal.SIGKILL, (folder / "log").read_text()[-3000:]
    done = subprocess.run(command(folder, "revived"), capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    lines += [parse(line) for line in done.stdout.splitlines()]
    return Story({line["event"]: line for line in lines}, records(folder))


def one(records: list[R], matches: Callable[[R], bool]) -> R:
    (only,) = filter(matches, records)
    return only


def lost(story: Story, event: str) -> Observation:
    """Return the one window after a kill that names its victim."""
    victim = story[event]["victim"]
    name = f"lost executor {victim}: "
    return one(story.after(event, Observation), lambda window: name in (window.problem or ""))


def test_a_late_refusal_leaves_nothing_behind(story: Story) -> None:
    refused = story["refused"]
    assert "did you mean 'ds2'" in refused["messages"]["policy"]
    assert "mysql://... cannot hold a journal" in refused["messages"]["journal"]
    assert "does not exist" in refused["messages"]["folder"]
    assert "both slo.headroom" in refused["messages"]["factor"]
    assert "max_latency_s is 0.5 s" in refused["messages"]["latency"]
    assert (refused["listeners"], refused["jobs"], refused["fresh"]) == (0, [], False)


def test_a_doubtful_option_warns_at_the_users_line(story: Story) -> None:
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
    assert {r.sentence for r in held} == {"scripted failed: ZeroDivisionError: a bug in the policy"}
    assert all(r.target is None for r in held)
    assert not any(isinstance(r, Intent) for r in before)
    assert story["policy raised"]["status"].startswith("running, but the policy failed ")
    # It grew afterwards: see below.


@pytest.mark.parametrize(("event", "slots"), [("killed while growing", LARGEST), ("killed while shrinking", 1)])
def test_a_change_ends_although_an_executor_dies_during_it(story: Story, event: str, slots: int) -> None:
    assert lost(story, event).wanted is not None
    (end,) = story.after(event, IntentEnd)
    assert end.ending is Ending.DONE
    assert end.running is not None
    assert end.running.slots == slots


def test_an_executor_that_dies_under_load_is_named_and_replaced(story: Story) -> None:
    window = lost(story, "killed at work")
    assert window.change is Change.UNDER_WAY
    last = story.after("killed at work", Observation)[-1]
    assert (last.usable, last.change) == (True, Change.NONE)
    assert last.running is not None
    assert last.running.slots == LARGEST


def test_requests_beyond_the_cluster_stop(story: Story) -> None:
    assert any(window.change is Change.PARTIAL for window in story.after("too many wanted", Observation))
    ends = story.after("too many wanted", IntentEnd)
    assert {end.ending for end in ends} == {Ending.PARTIAL}
    assert f"wanted job={LARGEST + 2}, got job={LARGEST}" in ends[0].why
    assert len(story.after("too many wanted", Intent)) <= 2
    assert story["partial"]["running"] == LARGEST
    assert story["partial"]["status"] == "running"
    # The policy's bounds end at the partial grant, and its next request is fulfilled: see above.
    assert [run.spec.tunable[0].bounds.max for run in story.after("too many wanted", Run)] == [LARGEST]


def test_a_dead_scaler_shows_its_error_and_another_continues_with_its_journal(story: Story) -> None:
    died = story["scaler died"]
    assert died["status"] == "failed: SystemExit: the policy gave up"
    assert died["active"]
    assert died["now"] == "running"
    assert died["first"] == died["before"] + 1


def test_without_a_journal_nothing_changes_until_the_disk_has_room_again(story: Story) -> None:
    assert "the disk is full" in story["disk full"]["status"]
    assert story["disk full"]["wanted"] != LARGEST
    assert [intent.target.slots for intent in story.after("disk full", Intent)] == [LARGEST]


def test_failed_calls_into_spark_are_blind_windows(story: Story) -> None:
    windows = [entry.record for entry in story.entries if isinstance(entry.record, Observation)]
    blind = [window for window in windows if window.running is None and "Py4JError" in str(window.problem)]
    assert len(blind) == 3
    assert story["engine raised"]["status"] == "running"


def test_a_killed_driver_leaves_no_files_of_its_cluster(story: Story) -> None:
    home = Path(story["ready"]["home"])
    assert home != Path(pyspark.__path__[0])
    assert not home.exists()


def test_a_restarted_driver_finishes_the_change_in_its_journal(story: Story) -> None:
    assert story["attached again"]["step"] > story["ready"]["step"]
    # The killed driver wrote the intent, and its successor ended it.
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


def test_the_result_is_exact_after_all_failures(story: Story) -> None:
    assert story["result"]["error"] is None
    assert story["result"]["wrong"] == 0
    assert story["result"]["seconds_checked"] > 30


def test_the_job_shrinks_while_the_source_is_silent_and_grows_again(story: Story) -> None:
    silence = story["silence"]
    assert silence["status"] == "running"
    assert silence["error"] is None
    sizes = silence["sizes"]
    assert max(sizes[: sizes.index(1, 1)]) == LARGEST
    assert sizes[-1] == LARGEST
    assert silence["shrinks"]
    # No arrivals and no backlog, even if the last batch is long past.
    assert (silence["load"], silence["backlog"], silence["lag_s"]) == (0.0, 0.0, 0.0)
    assert silence["held"] == Reason.STEADY
    assert silence["exact"]
