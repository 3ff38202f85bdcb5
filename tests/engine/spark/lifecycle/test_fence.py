"""A restart asks before each of its effects, after any wait, whether it may still act; the claim decides who runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from folder_spark import Faults, Format, Job
from kth_failure import World

from rheostat.engine.spark.lifecycle.owner import FOLDER, FRESH_S, Overtaken
from rheostat.errors import EngineError, JournalError, LeaseRefused
from rheostat.job.allocation import Allocation

CLAIM = "rheostat: list rheostat/drivers"
EFFECTS = ("query: stop", "rheostat: replace rheostat/repartition", "call the tool", "start the query")


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path, Format())


def running(job: Job, **behaviour: Any) -> World:
    world = World(job, Faults(), **behaviour)
    world.begin()
    world.process()
    world.application.faults.calls.clear()
    return world


@pytest.mark.parametrize("behaviour", [{}, {"tool_fails_at": 1}, {"keyed": True, "unfinished_at_stop": True}])
def test_every_effect_follows_a_question_without_a_wait(job: Job, behaviour: dict[str, Any]) -> None:
    world = running(job, **behaviour)
    world.restart(5)
    calls = world.application.faults.calls
    places = [place for place, what in enumerate(calls) if what in EFFECTS]
    assert len(places) >= 4
    for place in places:
        since: list[str] = []
        for what in reversed(calls[:place]):
            if what.startswith(("query: status", "query: lastProgress", "query: stop", "call the tool", "build")):
                break
            since.append(what)
        asked = any(what.startswith("note") for what in since)
        # What touches the checkpoint asks for the claim on it, too.
        assert asked, (calls[place], calls)
        assert calls[place] == "query: stop" or CLAIM in since, (calls[place], calls)


def overtake(job: Job) -> None:
    """Claim the checkpoint as another driver does after a silence."""
    (number,) = job.files.entries(*FOLDER)
    text = job.files.text(*FOLDER, number) or ""
    token = text.split('"token": "')[1].split('"')[0]
    job.files.create(text.replace(token, "another"), *FOLDER, str(int(number) + 1))


class Restart:
    """Notes of a change; some of them are refused."""

    def __init__(self, refuse: str, error: Exception) -> None:
        self.names: list[str] = []
        self.refuse, self.error = refuse, error

    def __call__(self, name: str) -> None:
        self.names.append(name)
        if name.startswith(self.refuse):
            raise self.error


@pytest.mark.parametrize("refuse", ["start", "repartition"])
@pytest.mark.parametrize("error", [JournalError("the disk is full"), LeaseRefused("taken over"), EngineError("late")])
def test_a_journal_that_fails_inside_a_restart_does_not_leave_the_query_stopped(
    job: Job, refuse: str, error: Exception
) -> None:
    """Nobody else may start the query while the claim is ours: not even a controller with the lease."""
    world = running(job)
    before = world.pipeline.allocation
    world.pipeline.restart(lambda: Allocation({"job": 5}), Restart(refuse, error))
    world.pipeline.wait()
    assert world.pipeline.failure is error
    assert world.runs()
    assert world.pipeline.allocation == before
    world.process()
    assert job.results() == job.expected()


def test_a_journal_that_fails_between_two_attempts_to_stop_does_not_leave_the_query_stopped(job: Job) -> None:
    """The state of a micro-batch query moves only after a whole batch, so it is started and stopped again."""
    world = running(job, unfinished_at_stop=True)
    world.pipeline.restart(lambda: Allocation({"job": 5}), Restart("start again", JournalError("the disk is full")))
    world.pipeline.wait()
    assert "the disk is full" in str(world.pipeline.failure)
    assert world.runs()


@pytest.mark.parametrize("step", ["start with", "repartition"])
def test_an_overtaken_driver_does_not_start_its_query_again(job: Job, step: str) -> None:
    world = running(job)

    def note(name: str) -> None:
        if name.startswith(step):
            overtake(job)

    world.pipeline.restart(lambda: Allocation({"job": 5}), note)
    world.pipeline.wait()
    assert isinstance(world.pipeline.failure, Overtaken)
    assert not world.runs()
    assert not job.files.entries("rheostat").get("repartition"), "the tool was not called"


def test_one_restart_runs_at_a_time(job: Job) -> None:
    world, refused = running(job), list[str]()

    def note(_: str) -> None:
        for begin in (world.pipeline.restart, world.pipeline.recover):
            with pytest.raises(EngineError, match="the pipeline is restarting") as error:
                begin(*((lambda: None, note) if begin == world.pipeline.restart else (lambda: None,)))
            refused.append(str(error.value))

    world.pipeline.restart(lambda: Allocation({"job": 2}), note)
    world.pipeline.wait()
    assert refused
    assert world.pipeline.failure is None
    world.pipeline.finish()
    with pytest.raises(EngineError, match="closing"):
        world.pipeline.restart(lambda: None, note)


def test_a_claim_that_was_watched_before_the_start_is_not_waited_for_again(job: Job) -> None:
    """The journal names the last checkpoint: its silent owner is watched while the lease is waited for."""
    frozen = running(job)
    late = World(job)
    late.pipeline.watch_owner(job.application().location(frozen.application.query))
    assert late.pipeline.location is None  # it is only looked at
    frozen.pipeline._owner._ending.set()  # type: ignore[union-attr]  # its counter stands still from here on
    frozen.pipeline._owner._thread.join()  # type: ignore[union-attr]
    late.pipeline.watch_owner("")
    for _ in range(int(FRESH_S) + 1):
        late.clock.sleep(1.0)
        late.pipeline.watch_owner("")
    begun_s = late.clock.monotonic()
    late.begin()
    assert late.clock.monotonic() - begun_s < FRESH_S / 2
    assert late.pipeline.location is not None
    with pytest.raises(Overtaken):
        frozen.pipeline.confirm_claim()
    late.close()


def test_a_checkpoint_that_was_watched_in_vain_is_forgotten(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """The function starts its query elsewhere now."""
    world = World(job)
    watched = world.pipeline.watch_owner(job.files.location)
    monkeypatch.setattr(world.application, "same", lambda one, other: False)
    world.begin()
    assert world.pipeline.location == job.files.location
    assert not watched.claimed
    world.close()
