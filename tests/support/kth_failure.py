"""Every call of a pipeline fails once: it raises, its answer is lost, or the process is killed in it.

    python kth_failure.py SCENARIO HOW FORMAT CHANGELOG [STRIDE OFFSET]

A scenario runs again and again, each time with another call failing, until it has no more calls: call OFFSET + 1, then
every STRIDE-th. Each run is a process of its own on a folder of its own. Afterwards a query runs, or the next start
repairs what was left; all records are then counted exactly, also after the state was loaded again. Prints one JSON
object.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from folder_spark import CallError, Faults, Format, Job

from rheostat.engine.spark.lifecycle import owner
from rheostat.engine.spark.lifecycle.checkpoint import StateStore
from rheostat.engine.spark.lifecycle.restart import Pipeline, build_at_start
from rheostat.engine.spark.lifecycle.shape import JOB, MicroBatch
from rheostat.errors import RheostatError
from rheostat.job.allocation import Allocation

MOST_CALLS = 400


class Keyed(MicroBatch):
    """State with one partition per slot, as in real-time mode; a batch that has not finished is dropped."""

    exactly_once = False

    def shuffle_partitions(self, allocation: Allocation) -> int:
        return allocation.slots

    def state_partitions(self, allocation: Allocation, state: StateStore) -> int:
        return allocation.slots

    def with_state_partitions(self, allocation: Allocation, partitions: int) -> Allocation:
        return Allocation({JOB: partitions})


class World:
    """One driver on a job's folder."""

    def __init__(self, job: Job, faults: Faults | None = None, keyed: bool = False, **behaviour: Any) -> None:
        self.application = job.application(faults, **behaviour)
        self.clock, self.job = job.clock(), job
        shape = Keyed() if keyed else job.shape
        self.pipeline = Pipeline(self.application, build_at_start(lambda _: job.start()), self.clock, shape)

    def begin(self, slots: int = 2) -> None:
        self.pipeline.begin(Allocation({JOB: slots}))
        self.pipeline.wait()

    def restart(self, slots: int) -> None:
        faults = self.application.faults

        def note(name: str) -> None:
            faults.call(f"note {name[:20]!r}", lambda: None)

        self.pipeline.restart(lambda: Allocation({JOB: slots}), note, stopped=lambda: note("executors"))
        self.pipeline.wait()

    def process(self) -> None:
        """Count all that has arrived."""
        assert self.application.query is not None
        self.job.feed(40)
        self.application.query.process_all()

    def runs(self) -> bool:
        query = self.application.query
        return query is not None and query.isActive

    def close(self) -> None:
        """End the driver in order."""
        if self.application.query is not None:
            self.application.query.stop()
        self.pipeline.finish()


def started(job: Job, faults: Faults, **behaviour: Any) -> World:
    """Return a driver whose query runs; from now on calls may fail."""
    at, faults.at = faults.at, 0
    world = World(job, faults, **behaviour)
    world.begin()
    world.process()
    faults.calls.clear()
    faults.at = at
    return world


def stopped(job: Job, batches: int = 4) -> None:
    """Run the job for some batches, and stop it in order."""
    world = World(job)
    world.begin()
    for _ in range(batches):
        world.process()
    world.close()


def half_moved(job: Job, **behaviour: Any) -> None:
    """Kill the driver of the job in the middle of a repartition."""
    stopped(job)
    child = os.fork()
    if child == 0:
        deadly = Faults(how="kill")
        world = started(job, deadly, **behaviour)
        call = deadly.call

        def die_while_writing_state(what: str, function: Callable[[], Any]) -> Any:
            done = call(what, function)
            if what.startswith("spark: replace state"):
                os.kill(os.getpid(), signal.SIGKILL)
            return done

        deadly.call = die_while_writing_state  # type: ignore[method-assign]
        world.restart(5)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def begin(job: Job, faults: Faults) -> World:
    world = World(job, faults)
    world.begin()
    return world


def stop(job: Job, faults: Faults) -> World:
    world = started(job, faults)
    world.close()
    return world


def restart(job: Job, faults: Faults) -> World:
    world = started(job, faults)
    world.restart(2)  # as many partitions as before: nothing moves
    return world


def move(job: Job, faults: Faults) -> World:
    world = started(job, faults)
    world.restart(5)
    return world


def move_without_exactly_once(job: Job, faults: Faults) -> World:
    """Move while the last batch has not finished: Spark drops it."""
    world = started(job, faults, keyed=True, unfinished_at_stop=True)
    world.restart(5)
    return world


def refused_move(job: Job, faults: Faults) -> World:
    """Move state that Spark fails to rewrite: it is rolled back."""
    world = started(job, faults, tool_fails_at=1)
    world.restart(5)
    return world


def refused_move_without_exactly_once(job: Job, faults: Faults) -> World:
    world = started(job, faults, keyed=True, unfinished_at_stop=True, tool_fails_at=3)
    world.restart(5)
    return world


def repair(job: Job, faults: Faults) -> World:
    world = World(job, faults)
    world.begin()
    return world


def repair_without_exactly_once(job: Job, faults: Faults) -> World:
    world = World(job, faults, keyed=True, unfinished_at_stop=True)
    world.begin()
    return world


SCENARIOS = {
    function.__name__.replace("_", "-"): function
    for function in (
        begin,
        stop,
        restart,
        move,
        move_without_exactly_once,
        refused_move,
        refused_move_without_exactly_once,
        repair,
        repair_without_exactly_once,
    )
}


def prepare(scenario: str, job: Job) -> None:
    """Write the folder on which a scenario begins, in a process of its own."""
    child = os.fork()
    if child == 0:
        if scenario == "repair":
            half_moved(job)
        elif scenario == "repair-without-exactly-once":
            half_moved(job, keyed=True, unfinished_at_stop=True)
        else:
            stopped(job)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def run(scenario: str, how: str, written: Format, at: int, folder: Path) -> dict[str, Any]:
    """Run a scenario with one failing call, in a process of its own; return what was called and what is wrong."""
    job = Job(folder, written)
    report = folder.with_suffix(".json")
    child = os.fork()
    if child == 0:
        try:
            report.write_text(json.dumps(play(scenario, job, Faults(at, how))))
        except BaseException:  # noqa: BLE001 - reported by the parent
            report.write_text(json.dumps({"wrong": traceback.format_exc()}))
        os._exit(0)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    found: dict[str, Any] = json.loads(report.read_text()) if report.exists() else {"runs": False}
    found["killed"] = ended == -signal.SIGKILL
    if found.get("wrong"):
        return found
    # The next driver: after a kill, or because the query was stopped.
    child = os.fork()
    if child == 0:
        try:
            report.write_text(json.dumps({**found, "wrong": succeed(scenario, job)}))
        except BaseException:  # noqa: BLE001 - reported by the parent
            report.write_text(json.dumps({**found, "wrong": traceback.format_exc()}))
        os._exit(0)
    os.waitpid(child, 0)
    result: dict[str, Any] = json.loads(report.read_text())
    return result


def play(scenario: str, job: Job, faults: Faults) -> dict[str, Any]:
    world, error = None, ""
    try:
        world = SCENARIOS[scenario](job, faults)
    except (CallError, RheostatError) as refused:
        error = str(refused)  # as `rheostat.start` raises it
    calls, failure = list(faults.calls), world.pipeline.failure if world is not None else None
    faults.at = 0
    wrong = ""
    runs = world is not None and world.runs()
    if world is not None and runs:
        # A driver that goes on counts what has arrived, and lets go of its checkpoint in the end.
        world.process()
        if job.results() != job.expected():
            wrong = f"in the same driver {job.results()} is not {job.expected()}"
        if world.pipeline.allocation is None or world.pipeline.activity:
            wrong = wrong or f"activity {world.pipeline.activity!r}, allocation {world.pipeline.allocation}"
        world.close()
    return {"calls": calls, "error": error, "failure": str(failure or ""), "runs": runs, "wrong": wrong}


def succeed(scenario: str, job: Job) -> str:
    """Let the next driver start, count, move the state and count again; return what is wrong."""
    keyed = "without-exactly-once" in scenario
    world = World(job, keyed=keyed)
    world.begin()
    if world.pipeline.failure is not None or not world.runs():
        return f"the next driver does not run: {world.pipeline.failure}"
    for slots in (None, 3 if keyed else 7, None):
        if slots is not None:
            world.restart(slots)
            if world.pipeline.failure is not None:
                return f"the next driver cannot move: {world.pipeline.failure}"
        world.process()
        world.process()
        if job.results() != job.expected():
            return f"in the next driver, after moving to {slots}: {job.results()} is not {job.expected()}"
    world.close()
    again = World(job, keyed=keyed)
    again.begin()
    again.process()
    if job.results() != job.expected():
        return f"after loading again {job.results()} is not {job.expected()}"
    claims = job.files.entries("rheostat", "drivers")
    return "" if len(claims) == 1 else f"claims are left: {sorted(claims)}"


def main(scenario: str, how: str, version: str, changelog: str, stride: str = "1", offset: str = "0") -> None:
    logging.disable(logging.CRITICAL)
    owner.Sight(1, "{}").driver  # noqa: B018 - imports pydantic once, and not in every process
    owner.SETTLE_S = owner.RENEW_S = 3600.0  # on the step clock, and never on the thread
    written = Format(int(version), changelog == "true")
    tried, runs, wrong = 0, 0, []
    with tempfile.TemporaryDirectory(
        prefix="rheostat-kth-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None
    ) as folder:
        (template := Path(folder) / "before").mkdir()
        prepare(scenario, Job(template, written))
        for at in range(1 + int(offset), MOST_CALLS, int(stride)):
            shutil.copytree(template, Path(folder) / str(at))
            found = run(scenario, how, written, at, Path(folder) / str(at))
            calls = found.get("calls", [])
            reached = found["killed"] or len(calls) >= at
            if not reached:
                wrong += [found["wrong"]] if found["wrong"] else []
                break
            tried, runs = tried + 1, runs + bool(found["runs"])
            if found["wrong"]:
                what = calls[at - 1] if len(calls) >= at else "killed"
                wrong.append(f"call {at} ({what}): {found['wrong']}; {found.get('failure', '')}")
    print(json.dumps({"tried": tried, "went_on": runs, "wrong": wrong}))


if __name__ == "__main__":
    main(*sys.argv[1:])
