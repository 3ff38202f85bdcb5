"""What a Scaler says about itself: failures from the moment they happen, a table, a picture."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from rheostat.api.metrics import Collector, _counts_of, _last_window
from rheostat.api.scaler import Scaler
from rheostat.clock import WallClock
from rheostat.control.controller import Controller, Step
from rheostat.job.decision import Decision, Reason
from rheostat.job.graph import JobSpec
from rheostat.job.observation import Observation, SourceReading
from rheostat.job.record import Intent
from rheostat.journal.memory import MemoryJournal
from rheostat.policy.ds2 import DS2
from rheostat.ports import Note, Policy, Situation
from rheostat.testing.situations import window, word_count


class Query:
    """A query as Spark's Python class shows it."""

    def __init__(self) -> None:
        self.name, self.id, self.isActive = "clicks", "42", True
        self.error: Exception | None = None

    def exception(self) -> Exception | None:
        return self.error

    def fail(self) -> None:
        self.error, self.isActive = ValueError("boom in <task> 3\n  at line 7"), False


@dataclass
class Job:
    """A running job in this process: it shows a load above what it can do."""

    name: str = "clicks"
    query: Query = field(default_factory=Query)
    failure: Exception | None = None
    tasks: int = 4
    restarting: bool = False

    @property
    def queries(self) -> tuple[Any, ...]:
        return (self.query,)

    @property
    def ended(self) -> bool:
        return not self.query.isActive and not self.restarting

    def describe(self) -> JobSpec:
        return word_count()

    def observe(self) -> Observation:
        return window(word_count(), 1000.0, self.tasks, 300.0, at_s=time.time())

    def apply(self, intent: Intent, note: Note) -> None:
        note("resize")
        self.tasks = intent.target.tasks["split"]

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class Broken(Policy[None]):
    name: ClassVar[str] = "broken"

    def decide(self, situation: Situation[None]) -> Decision:
        raise KeyError("no such operator")


@contextmanager
def scaled(policy: Policy[Any], job: Job, interval_s: float = 0.02) -> Iterator[Scaler]:
    clock = WallClock()
    scaler = Scaler(Controller(job, policy, MemoryJournal(), clock), job, clock, interval_s)
    try:
        yield scaler
    finally:
        scaler.stop()


def wait(done: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 20.0
    while not done():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def test_a_failed_query_shows_in_the_status_from_the_moment_it_failed() -> None:
    job = Job()
    with scaled(DS2(), job, interval_s=3600.0) as scaler:
        wait(lambda: bool(scaler.steps))
        assert scaler.status == "running"
        job.query.fail()
        assert scaler.status == "failed: query clicks failed: boom in <task> 3", "no step has run since"
    assert scaler.status == "failed: query clicks failed: boom in <task> 3"


def test_a_policy_that_raises_is_logged_counted_and_in_the_status(caplog: pytest.LogCaptureFixture) -> None:
    job = Job()
    with caplog.at_level(logging.DEBUG, logger="rheostat"), scaled(Broken(), job) as scaler:
        wait(lambda: scaler.policy_failures >= 2)
        status = scaler.status
        registry = CollectorRegistry(auto_describe=False)
        registry.register(Collector(_last_window(scaler), scaler.job, _counts_of(scaler), WallClock()))
        page = generate_latest(registry).decode()
    assert status.startswith("running, but the policy failed ")
    assert status.endswith("broken failed: KeyError: 'no such operator'")
    assert 'rheostat_policy_failures_total{job="clicks"} ' in page
    assert 'rheostat_changes_total{job="clicks"} 0.0' in page
    warned = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warned[0] == "word-count: step 0: broken failed: KeyError: 'no such operator'"
    assert any(record.exc_info for record in caplog.records if record.levelno == logging.DEBUG), "the traceback"


def test_a_change_is_logged_in_one_line_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="rheostat"), scaled(DS2(), Job()) as scaler:
        wait(lambda: scaler.changes >= 1)
    (line,) = [record.getMessage() for record in caplog.records if record.levelno == logging.INFO][:1]
    assert line.startswith("word-count: split=4 count=4 -> split=")
    assert "under-provisioned" in line
    assert "\n" not in line


def test_a_library_is_silent_by_default() -> None:
    import subprocess
    import sys

    code = "import rheostat, logging; logging.getLogger('rheostat.control').warning('loud')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_a_scaler_shows_itself_as_a_table_and_as_a_picture() -> None:
    job = Job(name="<clicks>")
    with scaled(DS2(), job) as scaler:
        wait(lambda: len(scaler.steps) >= 3)
        text, page = repr(scaler), scaler._repr_html_()
    lines = text.splitlines()
    assert lines[0] == "<Scaler of <clicks>>"
    names = [line.split("  ")[1].strip() for line in lines[1:]]
    assert names[:3] == ["status", "policy", "size"]
    assert "last decision" in text
    assert "last change" in text
    assert "&lt;clicks&gt;" in page
    assert "<clicks>" not in page
    assert page.count("<svg") == 3


def test_what_waits_in_files_and_versions_is_shown() -> None:
    from rheostat.api.summary import rows

    table = SourceReading("job", 10.0, 600.0, 5.0, files_waiting=3, bytes_waiting=4096, versions_waiting=2)
    window = Observation(5.0, 0.0, 5.0, None, None, sources=(table,))
    shown = dict(rows("running", "ds2", [Step(0, window, Decision.hold(Reason.STEADY, "all is well"))]))
    assert shown["waiting"] == "3 files, 4,096 bytes, 2 versions"


def test_before_the_first_step_there_is_little_to_show() -> None:
    from rheostat.api.summary import html, text

    assert text("clicks", "running", "ds2", ()) == ("<Scaler of clicks>\n  status        running\n  policy        ds2")
    assert "<svg" not in html("clicks", "running", "ds2", ())


def test_stopping_returns_although_the_engine_hangs(caplog: pytest.LogCaptureFixture) -> None:
    release = threading.Event()

    class Hanging(Job):
        def close(self) -> None:
            release.wait(60.0)

    clock, job = WallClock(), Hanging()
    scaler = Scaler(Controller(job, DS2(), MemoryJournal(), clock), job, clock, 0.02)
    wait(lambda: bool(scaler.steps))
    with caplog.at_level(logging.WARNING, logger="rheostat"):
        scaler.stop(timeout_s=0.2)
    assert scaler.status.startswith("stopping: ")
    assert "has not ended within 0.2 s" in caplog.text
    release.set()
    scaler.stop()
    assert scaler.status == "stopped"


def test_a_query_that_is_started_again_has_not_failed_for_good() -> None:
    job = Job(restarting=True)
    with scaled(DS2(), job, interval_s=3600.0) as scaler:
        wait(lambda: bool(scaler.steps))
        job.query.fail()
        assert scaler.status == "running, but query clicks failed: boom in <task> 3"
        job.restarting, job.failure = False, RuntimeError("given up after 3 failures")
        assert scaler.status == "failed: given up after 3 failures"
