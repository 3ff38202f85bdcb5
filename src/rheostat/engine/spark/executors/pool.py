"""Adds and removes executors of a running Spark application without losing a row.

Removal is the delicate half. The shuffle files and the running tasks of a removed executor are lost. Spark computes
both again and restores state from the checkpoint, so results stay exact (`settings.NEEDED` lists the conditions). To
avoid the repeated work, executors are removed between two jobs if possible. Even back-to-back batches leave such a
moment: no job runs while Spark plans a batch or commits its offsets.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rheostat.clock import WallClock
from rheostat.engine.spark.executors.scheduler import Executor, Scheduler, SparkScheduler
from rheostat.errors import EngineError, InvalidValue
from rheostat.job.observation import Change
from rheostat.ports import Clock, Note

if TYPE_CHECKING:
    from pyspark import SparkContext

log = logging.getLogger(__name__)

BOUNDARY_S = 5.0
"""Seconds that a removal waits for a moment without jobs. Every batch has one (measured: 30 of 30 within 1.8 s for
batches of 1.1 s), and waiting costs less than repeating the stages of a batch."""
POLL_S = 0.004
"""Seconds between two checks for that moment: the gap between two batches is at least 50 ms."""
WAIT_POLL_S = 0.05
"""Seconds between two checks of `request_and_wait`."""
REASON_S = 0.2
"""Seconds to wait for the reason of a loss: the status store has it some milliseconds after the scheduler."""
ON_PURPOSE = ("Executor killed by driver", "Executor decommission")
"""Beginnings of Spark's reasons for executors that were not lost: dynamic allocation or a spot notice took them."""
LOSS_HISTORY = 100
"""Losses to remember: as many dead executors as Spark's status store retains."""

Choose = Callable[[Sequence["Executor"], Mapping[str, int]], Sequence["Executor"]]
"""(executors, running tasks by executor) -> the executors, those to remove first."""


class Unacknowledged(EngineError):  # noqa: N818
    """The cluster manager did not acknowledge a request. On YARN so until the application master has registered."""


@dataclass(frozen=True, slots=True)
class Loss:
    """An executor that died without a request to remove it."""

    executor: Executor
    noticed_s: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Resize:
    """The result of one `request`."""

    wanted: int
    removed: tuple[str, ...] = ()
    at_boundary: bool = True
    """False if executors were removed while a job ran."""
    waited_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Survey:
    """The executors at one moment."""

    change: Change
    running: tuple[Executor, ...]
    losses: tuple[Loss, ...]
    """The last executors that died, oldest first."""


def idle_then_newest(executors: Sequence[Executor], tasks: Mapping[str, int]) -> Sequence[Executor]:
    """Order executors by running tasks, fewest first, and among equals by age, newest first: they hold least state."""
    return sorted(executors, key=lambda e: (tasks.get(e.id, 0), -e.since_s, -len(e.id), e.id))


def resize_state(wanted: int | None, running: int, leaving: int, differs_s: float, patience_s: float) -> Change:
    """Return the state of a request whose number has differed from the running one for `differs_s` seconds."""
    if wanted is None or (running == wanted and not leaving):
        return Change.NONE
    return Change.UNDER_WAY if differs_s <= patience_s else Change.PARTIAL


class Executors:
    """The executors of one application: registered, requested, and being removed.

    A request is a total number. Repeating `request(n)` has no effect while n executors run; otherwise it continues the
    change, and also removes executors that registered after a smaller request. There is one per SparkContext, used from
    one thread at a time.
    """

    def __init__(self, scheduler: Scheduler, clock: Clock | None = None, boundary_s: float = BOUNDARY_S) -> None:
        if not boundary_s >= 0:
            raise InvalidValue(f"boundary_s is {boundary_s}: the wait for a moment without jobs must be 0 s or more")
        self._scheduler = scheduler
        self._clock = WallClock() if clock is None else clock
        self._boundary_s = boundary_s
        self._cores = scheduler.cores_setting()  # constant for the application
        self._least_cores = 1
        self._executors: dict[str, Executor] = {}
        self._leaving: set[str] = set()
        self._losses: list[Loss] = []
        self._wanted: int | None = None
        self._differs_since_s: float | None = None

    @classmethod
    def of(cls, context: SparkContext, boundary_s: float = BOUNDARY_S) -> Executors:
        """Return the executors of a SparkContext; in local mode the driver is the only one."""
        from rheostat.engine.spark.executors.local import LocalScheduler, in_one_process

        scheduler = LocalScheduler(context) if in_one_process(context) else SparkScheduler(context)
        return cls(scheduler, boundary_s=boundary_s)

    @property
    def wanted(self) -> int | None:
        """The last requested number; None before the first request."""
        return self._wanted

    @property
    def cores_per_executor(self) -> int:
        """Slots of one executor; where `spark.executor.cores` is not set, of the smallest one that runs or last ran."""
        if self._cores is not None:
            return self._cores
        self._least_cores = min((e.cores for e in self.running()), default=self._least_cores)
        return self._least_cores

    def running(self) -> tuple[Executor, ...]:
        """Return the executors that take tasks, oldest first, without the driver and those being removed.

        It takes one or two round trips to the JVM, whatever the number: constants of an executor are read once.
        """
        return self._running(self._refresh())

    def leaving(self) -> tuple[str, ...]:
        """Return the executors that are being removed and are still registered."""
        return tuple(i for i in self._refresh() if i in self._leaving)

    def request(
        self, executors: int, note: Note | None = None, at_boundary: Callable[[], bool] | None = None
    ) -> Resize:
        """Request a total number of executors from the cluster manager, and remove those above it.

        `note(step)` is called before each call that changes something, after any wait. `at_boundary` returns whether
        this is a good moment to remove executors (default: no job runs); after `boundary_s` they are removed anyway.
        """
        self._check(executors)
        if executors == self._wanted and len(self.running()) == executors:
            return Resize(executors)
        if executors != self._wanted:
            self._differs_since_s = None
        # The same number is requested again, too: a restarted cluster manager has lost it, and would replace the
        # executors that are removed next.
        self._request_total(executors, note)
        return self.shrink(executors, note=note, at_boundary=at_boundary)

    def shrink(
        self,
        executors: int,
        choose: Choose = idle_then_newest,
        note: Note | None = None,
        at_boundary: Callable[[], bool] | None = None,
    ) -> Resize:
        """Remove executors until at most this many run; the total is lowered first, or they would be replaced."""
        self._check(executors)
        if self._wanted is None or self._wanted > executors:
            self._request_total(executors, note)
        running = self.running()
        if len(running) <= executors:
            return Resize(executors)
        # The selection comes before the wait: a boundary lasts milliseconds.
        selected = choose(running, self._scheduler.running_tasks())[: len(running) - executors]
        started_s = self._clock.monotonic()
        reached = self._wait_for(at_boundary or self._scheduler.no_job_runs, started_s + self._boundary_s)
        waited_s = self._clock.monotonic() - started_s
        if not reached:
            # The executors and their tasks may have changed during the wait.
            running = self.running()
            selected = choose(running, self._scheduler.running_tasks())[: max(len(running) - executors, 0)]
        if not selected:
            return Resize(executors, at_boundary=reached, waited_s=waited_s)
        ids = [e.id for e in selected]
        if note is not None:
            note(f"remove executors {', '.join(ids)}")
        removed = self._scheduler.remove(ids)
        self._leaving.update(removed)
        return Resize(executors, removed, reached, waited_s)

    def withdraw(self, ids: Sequence[str]) -> None:
        """Cancel executors that are still starting; one that registers nevertheless counts as being removed."""
        self._leaving.update(ids)
        self._scheduler.withdraw(ids)

    def request_and_wait(self, executors: int, clock: Clock, patience_s: float) -> Change:
        """Request a total until exactly this many run, or for `patience_s`; return the state of the request."""
        self.request(executors)
        while (state := self.state(patience_s, clock.now())) is Change.UNDER_WAY:
            clock.sleep(WAIT_POLL_S)
            self.request(executors)
        return state

    def state(self, patience_s: float, now_s: float) -> Change:
        """Return whether the request is fulfilled, under way, or partial after `patience_s`.

        The time counts from the first difference between running and requested, so the death of an executor starts it
        again.
        """
        return self.survey(patience_s, now_s).change

    def survey(self, patience_s: float, now_s: float) -> Survey:
        """Return state, running executors and losses at once: round trips to a busy JVM are slow."""
        registered = self._refresh()
        running = self._running(registered)
        leaving = sum(executor_id in self._leaving for executor_id in registered)
        return Survey(self._change(len(running), leaving, patience_s, now_s), running, self._losses_with_reasons())

    def _running(self, registered: Collection[str]) -> tuple[Executor, ...]:
        running = (self._executors[i] for i in registered if i in self._executors and i not in self._leaving)
        return tuple(sorted(running, key=lambda e: (e.since_s, len(e.id), e.id)))

    def _losses_with_reasons(self) -> tuple[Loss, ...]:
        deadline_s = self._clock.monotonic() + REASON_S
        self._losses = [loss if loss.reason else self._with_reason(loss, deadline_s) for loss in self._losses]
        for loss in self._losses:
            if loss.reason.startswith(ON_PURPOSE):
                log.info("executor %s has left: %s", loss.executor.id, loss.reason)
        self._losses = [loss for loss in self._losses if not loss.reason.startswith(ON_PURPOSE)]
        return tuple(self._losses)

    def _with_reason(self, loss: Loss, deadline_s: float) -> Loss:
        while not (reason := self._scheduler.removal_reason(loss.executor.id)):
            if self._clock.monotonic() >= deadline_s or self._clock.now() > loss.noticed_s + REASON_S:
                break
            self._clock.sleep(POLL_S)
        return replace(loss, reason=reason)

    def _change(self, running: int, leaving: int, patience_s: float, now_s: float) -> Change:
        if resize_state(self._wanted, running, leaving, 0.0, patience_s) is Change.NONE:
            self._differs_since_s = None
            return Change.NONE
        if self._differs_since_s is None:
            self._differs_since_s = now_s
        return resize_state(self._wanted, running, leaving, now_s - self._differs_since_s, patience_s)

    def _check(self, executors: int) -> None:
        if isinstance(executors, bool) or not isinstance(executors, int) or executors < 1:
            raise InvalidValue(f"{executors!r} executors requested: the query needs at least 1")

    def _request_total(self, executors: int, note: Note | None) -> None:
        if note is not None:
            note(f"request {executors} executors" if executors != self._wanted else "")
        if not self._scheduler.request_total(executors):
            raise Unacknowledged(
                f"the cluster manager did not acknowledge a total of {executors} executors: "
                "it may be down, or this master cannot resize an application"
            )
        self._wanted = executors

    def _wait_for(self, moment: Callable[[], bool], deadline_s: float) -> bool:
        while not moment():
            left_s = deadline_s - self._clock.monotonic()
            if left_s <= 0:
                return False
            self._clock.sleep(min(POLL_S, left_s))
        return True

    def _refresh(self) -> tuple[str, ...]:
        """Refresh the registered executors and return their ids."""
        registered = self._scheduler.registered()
        if self._scheduler.decommissions:
            self._notice_decommissioned([name for name in registered if name not in self._leaving])
        for executor_id in registered:
            if executor_id not in self._executors and (executor := self._scheduler.describe(executor_id)) is not None:
                self._executors[executor_id] = executor
        for executor_id in self._executors.keys() - set(registered):
            executor = self._executors.pop(executor_id)
            if executor_id in self._leaving:
                self._leaving.discard(executor_id)
            else:
                # Spark knows the reason milliseconds later: see `_losses_with_reasons`.
                self._losses = [*self._losses, Loss(executor, self._clock.now())][-LOSS_HISTORY:]
        return registered

    def _notice_decommissioned(self, ids: Sequence[str]) -> None:
        """Count executors as leaving that are decommissioned by others: they take no more tasks."""
        if leaving := self._scheduler.decommissioned(ids):
            log.info("executors %s are decommissioned, and not by Rheostat", ", ".join(leaving))
            self._leaving.update(leaving)


def describe_losses(losses: Sequence[Loss]) -> str:
    """Return a message with the dead executors and Spark's reasons."""
    reasons: dict[str, list[str]] = {}
    for loss in losses:
        reasons.setdefault(loss.reason or "Spark gives no reason", []).append(loss.executor.id)
    texts = []
    for reason, ids in reasons.items():
        # 52 is Spark's exit code after an OutOfMemoryError.
        memory = ": give executors more memory" if "OutOfMemory" in reason or "code 52" in reason else ""
        texts.append(f"lost executor{'s' if len(ids) > 1 else ''} {', '.join(ids)}: {reason}{memory}")
    return "; ".join(texts)
