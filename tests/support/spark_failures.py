"""Failures under `rheostat.autoscale`, on a real embedded cluster. Prints one JSON object per line.

    python spark_failures.py FOLDER doomed     # executors, the cluster and parts of the scaler fail, one after another;
                                               # at the end, during a change, the process waits to be killed
    python spark_failures.py FOLDER revived    # the same driver again; then a source without input for a while

Every line has the number of the last record in the journal, so that a test finds the records after an event.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from py4j.protocol import Py4JError
from spark_autoscaled import compare
from spark_resizes import process_of
from sqlalchemy import event
from sqlalchemy.pool import Pool

import rheostat
from rheostat.api.scaler import Scaler
from rheostat.engine.batches.offsets import RowCounter
from rheostat.engine.spark.executors.scheduler import SparkScheduler
from rheostat.engine.spark.microbatch import MicroBatchEngine
from rheostat.engine.testbed.loads import Constant
from rheostat.engine.testbed.schedule import Schedule
from rheostat.engine.testbed.source import ScheduleCounter, stream
from rheostat.errors import RheostatError
from rheostat.job.decision import Decision, Reason, direction
from rheostat.job.guards import UNGUARDED
from rheostat.job.observation import Change
from rheostat.job.record import Intent, IntentStep
from rheostat.journal import open_journal
from rheostat.lab.workload.pacing import paced
from rheostat.policy.ds2 import DS2
from rheostat.ports import Policy, Situation

LARGEST = 2
SLOT_PER_S = 150.0
PARTITIONS = 12
JOB = "failures"
SCHEDULE = Schedule(Constant(1.0), 40.0, 600)
PATIENCE_S = 60.0


GUARDS = replace(UNGUARDED, shrink_over_slo=False)
"""No cool-downs: the test requests one change right after another."""


class Scripted(Policy[None]):
    """Requests `want` slots, or raises `error`."""

    name: ClassVar[str] = "scripted"
    want: int | None = None
    error: BaseException | None = None

    def decide(self, situation: Situation[None]) -> Decision:
        if self.error is not None:
            raise self.error
        target = situation.fit({"job": self.want or situation.running.slots})
        if target == situation.running:
            return Decision.hold(Reason.STEADY, f"scripted: keeps {target}")
        return Decision(target, direction(situation.running, target), f"scripted: {target}")


class Disk:
    """A disk with a limited number of 4 kB pages."""

    pages = 1_000_000

    def limit(self, connection: Any, *_: object) -> None:
        connection.execute(f"PRAGMA max_page_count = {self.pages}")


class World:
    """A session, a query whose result is checked to the row, and the journal."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.started = folder, time.monotonic()
        conf = {
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "3",
            "spark.default.parallelism": str(PARTITIONS),
        }
        self.spark = rheostat.session(JOB, max_executors=LARGEST, conf=conf)
        self.spark.sparkContext.setLogLevel("OFF")
        self.scheduler = SparkScheduler(self.spark.sparkContext)
        self.journal = open_journal(folder / "journal.db")
        (folder / "written").mkdir(exist_ok=True)

    def start(self) -> Any:
        def keep(frame: Any, number: int) -> None:
            counts = {row["second"]: row["count"] for row in frame.collect()}
            # A repeated batch writes the same rows under the same number.
            draft = self.folder / "written" / f"{number}.draft"
            draft.write_text(json.dumps(counts))
            draft.rename(draft.with_suffix(".json"))

        events = paced(stream(self.spark, SCHEDULE, partitions=PARTITIONS), SLOT_PER_S, tasks=PARTITIONS)
        return (
            events.selectExpr("unix_seconds(timestamp) as second")
            .groupBy("second")
            .count()
            .writeStream.outputMode("update")
            .foreachBatch(keep)
            .queryName(JOB)
            .option("checkpointLocation", str(self.folder / "checkpoint"))
            .trigger(processingTime="1 second")
            .start()
        )

    def scale(self, query: Any, policy: Policy[None], **more: Any) -> Scaler:
        options = rheostat.Options(
            interval_s=1.0, window_s=4.0, counters={JOB: ScheduleCounter(SCHEDULE)}, guards=GUARDS
        )
        settings: dict[str, Any] = {"max_executors": LARGEST, "journal": self.journal, "options": options}
        return rheostat.autoscale(query, policy=policy, **{**settings, **more})

    def say(self, happened: str, **fields: object) -> None:
        last = max((entry.number for entry in self.journal.read(JOB)), default=0)
        seconds = round(time.monotonic() - self.started, 1)
        print(json.dumps({"event": happened, "after": last, "seconds": seconds, **fields}), flush=True)

    def result(self, query: Any) -> None:
        """Compare the written rows with a batch computation of the same seconds."""
        files = (self.folder / "written").glob("*.json")
        written = {int(f.stem): {int(k): n for k, n in json.loads(f.read_text()).items()} for f in files}
        failed = query.exception()
        wrong, checked = compare(self.spark, SCHEDULE, written)
        self.say("result", error=str(failed) if failed else None, wrong=wrong, seconds_checked=checked)

    def kill(self, executor: str) -> str:
        os.kill(process_of(executor, self.spark.sparkContext.applicationId), signal.SIGKILL)
        return executor


def until(what: str, true: Callable[[], Any], scaler: Scaler | None = None, seconds: float = PATIENCE_S) -> Any:
    deadline = time.monotonic() + seconds
    while not (result := true()):
        if time.monotonic() > deadline:
            last = [] if scaler is None else [(s.observation.problem, s.decision.sentence) for s in scaler.steps[-3:]]
            raise TimeoutError(f"no {what} within {seconds:g} s; {scaler and scaler.status}: {last}")
        time.sleep(0.02)
    return result


def is_settled(scaler: Scaler, slots: int) -> Callable[[], bool]:
    """Return a check that these slots run, no change is open, and the window is usable."""

    def true() -> bool:
        window = scaler.steps[-1].observation if scaler.steps else None
        running = window.running if window is not None else None
        steady = window is not None and window.usable and window.change is Change.NONE
        return running is not None and running.slots == slots and steady

    return true


def intents(world: World) -> int:
    return sum(1 for _ in world.journal.read(JOB, kinds=["intent"]))


def steps_more(scaler: Scaler, count: int) -> Callable[[], bool]:
    goal = len(scaler.steps) + count
    return lambda: len(scaler.steps) >= goal


# -- the scaler, the executors and the cluster ------------------------------------------------------------------------


def doomed(world: World) -> None:
    query, policy = world.start(), Scripted()
    until("the first batch", lambda: query.lastProgress)
    refusals(world, query)
    policy.error = ZeroDivisionError("a bug in the policy")
    scaler = world.scale(query, policy, max_executors=LARGEST + 2)
    until("decisions without a policy", lambda: no_policy(scaler) >= 2, scaler)
    twice = refused(lambda: world.scale(query, Scripted()))
    world.say("policy raised", status=scaler.status, twice=twice)
    grow_under_fire(world, scaler, policy)
    lose_one(world, scaler)
    no_room(world, scaler, policy)
    shrink_under_fire(world, scaler, policy)
    scaler = thread_dies(world, query, scaler, policy)
    engine_raises(world, scaler)
    full_disk(world, scaler, policy)
    jvm: Any = world.spark._jvm
    world.say("ready", home=jvm.System.getenv("SPARK_HOME"), step=scaler.steps[-1].number, active=query.isActive)
    time.sleep(600)


def refused(call: Callable[[], object]) -> str:
    try:
        call()
    except RheostatError as error:
        return str(error)
    return ""


def no_policy(scaler: Scaler) -> int:
    return sum(decision.reason is Reason.NO_POLICY for decision in scaler.decisions)


def refusals(world: World, query: Any) -> None:
    """Pass options that can be refused only late, and check that nothing was left behind."""
    listeners = world.spark._jsparkSession.streams().listListeners
    before, messages = len(listeners()), {}
    fresh = str(world.folder / "fresh.db")
    bad: dict[str, dict[str, Any]] = {
        "policy": {"policy": "ds3", "journal": fresh},
        "journal": {"policy": "ds2", "journal": "mysql://here/there"},
        "folder": {"policy": "ds2", "journal": str(world.folder / "nowhere" / "journal.db")},
        "factor": {"policy": DS2(scaling_factor=0.1), "slo": rheostat.SLO(headroom=0.2)},
        "latency": {"policy": "ds2", "slo": rheostat.SLO(max_latency_s=0.5)},
    }
    for name, options in bad.items():
        messages[name] = refused(lambda options=options: world.scale(query, **options))  # type: ignore[misc]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        late = {"journal": "mysql://here/there", "options": rheostat.Options(window_s=0.5)}
        refused(lambda: world.scale(query, DS2(), slo=rheostat.SLO(max_latency_s=15_000), **late))
    world.say(
        "refused",
        messages=messages,
        warned=[(str(w.message), w.category.__name__, Path(w.filename).name) for w in caught],
        listeners=len(listeners()) - before,
        jobs=world.journal.jobs(),
        fresh=Path(fresh).exists(),
    )


def grow_under_fire(world: World, scaler: Scaler, policy: Scripted) -> None:
    """Kill the only executor while others start."""
    policy.want, policy.error = LARGEST, None
    until("an intent to grow", lambda: world.journal.latest(JOB, "intent"), scaler)
    (victim,) = world.scheduler.registered()
    world.kill(victim)
    world.say("killed while growing", victim=victim)
    until("all executors", is_settled(scaler, LARGEST), scaler)


def lose_one(world: World, scaler: Scaler) -> None:
    """Kill an executor that runs a task."""
    busy = until("a running task", lambda: [name for name, n in world.scheduler.running_tasks().items() if n], scaler)
    world.say("killed at work", victim=world.kill(busy[0]))
    until("the loss to be seen", lambda: "lost" in (scaler.steps[-1].observation.problem or ""), scaler)
    until("a replacement", is_settled(scaler, LARGEST), scaler)


def shrink_under_fire(world: World, scaler: Scaler, policy: Scripted) -> None:
    """Kill the executor that should stay, as soon as the others are removed."""
    before = world.journal.latest(JOB, "intent_step")

    def removing() -> IntentStep | None:
        entry = world.journal.latest(JOB, "intent_step")
        new = entry is not None and (before is None or entry.number > before.number)
        step = entry.record if entry is not None and new else None
        return step if isinstance(step, IntentStep) and step.name.startswith("remove") else None

    everyone = set(world.scheduler.registered())
    policy.want = 1
    step = until("a removal", removing, scaler)
    (victim,) = everyone - set(step.name.removeprefix("remove executors ").split(", "))
    engine_of(scaler).patience_s = PATIENCE_S
    world.kill(victim)
    world.say("killed while shrinking", victim=victim)
    until("one executor", is_settled(scaler, 1), scaler)


def engine_of(scaler: Scaler) -> MicroBatchEngine:
    assert isinstance(scaler._engine, MicroBatchEngine)
    return scaler._engine


def no_room(world: World, scaler: Scaler, policy: Scripted) -> None:
    """Request more executors than the cluster has."""
    engine_of(scaler).patience_s = 3.0  # a minute is long for a test
    policy.want = LARGEST + 2
    world.say("too many wanted")
    until("a partial change", lambda: any(s.observation.change is Change.PARTIAL for s in scaler.steps), scaler)
    until("more steps", steps_more(scaler, 6), scaler)
    running = scaler.steps[-1].observation.running
    world.say("partial", running=running and running.slots, status=scaler.status)


def thread_dies(world: World, query: Any, scaler: Scaler, policy: Scripted) -> Scaler:
    """Raise an error in the policy that the loop does not catch, and attach a new scaler."""
    policy.error = SystemExit("the policy gave up")
    until("the end of the scaler", lambda: not scaler._thread.is_alive(), scaler)
    step, status, active = scaler.steps[-1].number, scaler.status, query.isActive
    policy.error = None
    again = world.scale(query, policy)
    until("a step of the new scaler", lambda: again.steps, again)
    world.say("scaler died", status=status, active=active, now=again.status, before=step, first=again.steps[0].number)
    until("a clean window", is_settled(again, 1), again)
    return again


def full_disk(world: World, scaler: Scaler, policy: Scripted) -> None:
    """Request more while the journal cannot be written, then make room on the disk."""
    disk = Disk()
    event.listen(Pool, "checkout", disk.limit)
    disk.pages = 1
    until("a step that is not journaled", lambda: scaler.decisions[-1].reason is Reason.UNJOURNALED, scaler)
    before = intents(world)
    policy.want = LARGEST
    until("more such steps", steps_more(scaler, 3), scaler)
    status, wanted = scaler.status, engine_of(scaler).executors.wanted
    disk.pages = 1_000_000
    world.say("disk full", status=status, wanted=wanted)
    until("the change that was wanted", lambda: intents(world) > before, scaler)


def engine_raises(world: World, scaler: Scaler) -> None:
    """Make three calls into Spark fail."""
    true, calls = scaler._engine.observe, []

    def observe() -> Any:
        calls.append(1)
        if len(calls) <= 3:
            raise Py4JError("Answer from Java side is empty")
        return true()

    scaler._engine.observe = observe  # type: ignore[method-assign]
    until("blind windows", lambda: len(calls) >= 3, scaler)
    world.say("engine raised", status=scaler.status)
    until("a clean window", is_settled(scaler, 1), scaler)


# -- the driver -------------------------------------------------------------------------------------------------------


def revived(world: World) -> None:
    query, policy = world.start(), Scripted()
    policy.want = LARGEST
    started = time.monotonic()
    scaler = world.scale(query, policy)
    first = scaler.status
    until("the lease", lambda: scaler.steps, scaler)
    waited_s, again = time.monotonic() - started, scaler.steps[0]
    intent = again.intent.id if isinstance(again.intent, Intent) else None
    world.say("attached again", status=first, waited_s=round(waited_s, 1), step=again.number, intent=intent)
    until("the growth that was cut off", is_settled(scaler, LARGEST), scaler)
    scaler.stop()
    query.stop()
    world.result(query)
    silence(world)


# -- the source -------------------------------------------------------------------------------------------------------


class Lines:
    """A server that sends the numbers 0, 1, 2, ... as lines, `per_s` of them per second."""

    def __init__(self) -> None:
        self.per_s, self.sent, self.ended = 0.0, 0, False
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        client, _ = self._server.accept()
        due = 0.0
        while not self.ended:
            time.sleep(0.1)
            due += self.per_s * 0.1
            lines = range(self.sent, self.sent + int(due))
            due -= len(lines)
            client.sendall("".join(f"{number}\n" for number in lines).encode())
            self.sent = lines.stop
        client.close()
        self._server.close()


def silence(world: World) -> None:
    """Send, stop sending, send again."""
    lines, got = Lines(), dict[int, list[int]]()

    def keep(frame: Any, number: int) -> None:
        got[number] = [row["value"] for row in frame.collect()]

    received = world.spark.readStream.format("socket").option("host", "127.0.0.1").option("port", lines.port).load()
    query = (
        paced(received.selectExpr("cast(value as bigint) as value"), SLOT_PER_S, tasks=PARTITIONS)
        .writeStream.foreachBatch(keep)
        .queryName("lines")
        .option("checkpointLocation", str(world.folder / "lines"))
        .trigger(processingTime="1 second")
        .start()
    )
    scaler = rheostat.autoscale(
        query,
        slo=rheostat.SLO(headroom=0.2, max_lag_s=10.0),
        max_executors=LARGEST,
        policy="ds2:ignore_single_decrease=false",
        journal=str(world.folder / "lines.db"),
        options=rheostat.Options(interval_s=1.0, window_s=5.0, counters={"lines": RowCounter()}, guards=GUARDS),
    )
    lines.per_s = 1.4 * SLOT_PER_S
    until("growth", is_settled(scaler, LARGEST), scaler)
    lines.per_s = 0.0
    until("rest", is_settled(scaler, 1), scaler)
    until("more steps", steps_more(scaler, 7), scaler)
    resting = scaler.steps[-1]
    lines.per_s = 1.4 * SLOT_PER_S
    until("growth again", is_settled(scaler, LARGEST), scaler)
    # Before the job shrinks once more: on a busy machine the last lines take long.
    sizes = [step.observation.running.slots for step in scaler.steps if step.observation.running is not None]
    lines.per_s = 0.0
    until("the last lines", lambda: sum(map(len, got.values())) >= lines.sent, scaler)
    shrinks = [s.decision.sentence for s in scaler.steps if s.decision.reason is Reason.OVER_PROVISIONED]
    status = scaler.status
    scaler.stop()
    query.stop()
    lines.ended = True
    received_lines = sorted(number for numbers in got.values() for number in numbers)
    world.say(
        "silence",
        status=status,
        error=str(query.exception()) if query.exception() else None,
        sizes=[size for k, size in enumerate(sizes) if k == 0 or size != sizes[k - 1]],
        shrinks=shrinks,
        load=resting.observation.load_per_s,
        backlog=resting.observation.backlog,
        lag_s=resting.observation.lag_s,
        held=resting.decision.reason,
        exact=received_lines == list(range(lines.sent)),
    )


PARTS = {"doomed": doomed, "revived": revived}


def main(folder: Path, part: str) -> None:
    world = World(folder)
    PARTS[part](world)
    world.spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
