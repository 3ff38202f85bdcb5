"""The executor lever: adds and removes executors of a running Spark application without losing a row.

Removal is the delicate half. An executor that leaves takes along its shuffle files and the tasks that run on it; Spark
computes both again, and state comes back from the checkpoint, so results stay exact (see `settings.NEEDED` for what
that depends on). It is work done twice all the same, so executors leave between two jobs wherever there is such a
moment. Even batches that run back to back have it: while Spark plans a batch or commits its offsets no job runs.
"""

from __future__ import annotations

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

BOUNDARY_S = 5.0
"""How long a removal waits for a moment without jobs. One comes with every batch (measured: 30 of 30 within 1.8 s for
batches of 1.1 s), and waiting costs less than a batch whose stages are tried again."""
POLL_S = 0.004
"""Between two looks for that moment: the gaps between batches last 50 ms and more."""
BRING_S = 0.05
"""Between two looks of somebody who waits for executors."""
LOSSES_KEPT = 100

Choose = Callable[[Sequence["Executor"], Mapping[str, int]], Sequence["Executor"]]
"""Orders executors, those to remove first; is given how many tasks run on each."""


@dataclass(frozen=True, slots=True)
class Loss:
    """An executor that went away although nobody here asked for it."""

    executor: Executor
    noticed_s: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Resize:
    """What one call of `want` did."""

    wanted: int
    removed: tuple[str, ...] = ()
    at_boundary: bool = True
    """False when executors had to be removed under a running job."""
    waited_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Survey:
    """What one look at the executors shows."""

    change: Change
    running: tuple[Executor, ...]
    losses: tuple[Loss, ...]
    """The last executors that went away without being asked to, oldest first."""


def idle_then_newest(executors: Sequence[Executor], tasks: Mapping[str, int]) -> Sequence[Executor]:
    """Put executors with the fewest running tasks first, among those the newest, which hold the least state."""
    return sorted(executors, key=lambda e: (tasks.get(e.id, 0), -e.since_s, -len(e.id), e.id))


def progress(wanted: int | None, running: int, leaving: int, differs_s: float, patience_s: float) -> Change:
    """Say how far a wanted number has come, when it has differed from the running one for so long."""
    if wanted is None or (running == wanted and not leaving):
        return Change.NONE
    return Change.UNDER_WAY if differs_s <= patience_s else Change.PARTIAL


class Executors:
    """The executors of one application: what runs, what is wanted, and the way from one to the other.

    Level-triggered: `want(n)` again changes nothing when n run, and otherwise goes on where it stands, also removing
    executors that arrived after a smaller number was asked for. One per SparkContext, used from one thread at a time.
    """

    def __init__(self, scheduler: Scheduler, clock: Clock | None = None, boundary_s: float = BOUNDARY_S) -> None:
        if not boundary_s >= 0:
            raise InvalidValue(f"boundary_s is {boundary_s}: the wait for a moment without jobs is 0 s or more")
        self._scheduler = scheduler
        self._clock = WallClock() if clock is None else clock
        self._boundary_s = boundary_s
        self._cores = scheduler.cores_setting()  # fixed for the life of the application
        self._known: dict[str, Executor] = {}
        self._leaving: set[str] = set()
        self._losses: list[Loss] = []
        self._wanted: int | None = None
        self._differs_since_s: float | None = None

    @classmethod
    def of(cls, context: SparkContext, boundary_s: float = BOUNDARY_S) -> Executors:
        """Take hold of a SparkContext's executors; where there is only the driver, it is shown as one."""
        from rheostat.engine.spark.executors.local import LocalScheduler, in_one_process

        scheduler = LocalScheduler(context) if in_one_process(context) else SparkScheduler(context)
        return cls(scheduler, boundary_s=boundary_s)

    @property
    def wanted(self) -> int | None:
        """The number that was asked for last; None before the first time."""
        return self._wanted

    @property
    def cores_per_executor(self) -> int:
        """Slots that come and go with one executor."""
        if self._cores is None:
            running = self.running()
            if not running:
                raise EngineError("no executor runs and spark.executor.cores is not set: their size is not known")
            return min(e.cores for e in running)
        return self._cores

    def running(self) -> tuple[Executor, ...]:
        """Return the executors that take tasks, oldest first; the driver and those about to leave are not among them.

        One or two round trips to the JVM, whatever the number: what never changes about an executor is asked once.
        """
        return self._running(self._look())

    def leaving(self) -> tuple[str, ...]:
        """Return the executors that were told to go and are still there."""
        return tuple(i for i in self._look() if i in self._leaving)

    def want(self, executors: int, note: Note | None = None, at_boundary: Callable[[], bool] | None = None) -> Resize:
        """Make this the wanted number: ask for the total, and remove what runs beyond it.

        `note(step)` is called before each step that changes something. `at_boundary` says that this is a good moment
        to remove executors (default: no job runs); after `boundary_s` without one they are removed all the same.
        """
        self._check(executors)
        if executors == self._wanted and len(self.running()) == executors:
            return Resize(executors)
        if executors != self._wanted:
            if note is not None:
                note(f"ask for {executors} executors")
            self._differs_since_s = None
        # Asked again even when it is the same number: a restarted cluster manager has forgotten it, and would
        # replace the executors that are about to be removed.
        self._request(executors)
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
            self._request(executors)
        running = self.running()
        if len(running) <= executors:
            return Resize(executors)
        # Chosen before the boundary is waited for: it lasts milliseconds.
        chosen = choose(running, self._scheduler.running_tasks())[: len(running) - executors]
        started_s = self._clock.now()
        found = self._wait_for(at_boundary or self._scheduler.no_job_runs, started_s + self._boundary_s)
        waited_s = self._clock.now() - started_s
        if not found:
            # Others may have come, gone or fallen idle meanwhile.
            running = self.running()
            chosen = choose(running, self._scheduler.running_tasks())[: max(len(running) - executors, 0)]
        if not chosen:
            return Resize(executors, at_boundary=found, waited_s=waited_s)
        ids = [e.id for e in chosen]
        if note is not None:
            note(f"remove executors {', '.join(ids)}")
        removed = self._scheduler.remove(ids)
        self._leaving.update(removed)
        return Resize(executors, removed, found, waited_s)

    def withdraw(self, ids: Sequence[str]) -> None:
        """Take back executors that are still starting; one that registers all the same is about to leave."""
        self._leaving.update(ids)
        self._scheduler.withdraw(ids)

    def bring(self, executors: int, clock: Clock, patience_s: float) -> Change:
        """Ask until so many are there and no more, or patience has run out; return how far that came."""
        self.want(executors)
        while (state := self.state(patience_s, clock.now())) is Change.UNDER_WAY:
            clock.sleep_until(clock.now() + BRING_S)
            self.want(executors)
        return state

    def state(self, patience_s: float, now_s: float) -> Change:
        """Say whether what runs is what is wanted, is on its way there, or has stopped short of it.

        Patience counts from the first look that saw a difference, so an executor that dies starts a new count.
        """
        return self.survey(patience_s, now_s).change

    def survey(self, patience_s: float, now_s: float) -> Survey:
        """Look once, and say all that there is to say: every look is round trips to a JVM that may be busy."""
        registered = self._look()
        running = self._running(registered)
        leaving = sum(executor_id in self._leaving for executor_id in registered)
        return Survey(self._change(len(running), leaving, patience_s, now_s), running, self._explained())

    def _running(self, registered: Collection[str]) -> tuple[Executor, ...]:
        known = (self._known[i] for i in registered if i in self._known and i not in self._leaving)
        return tuple(sorted(known, key=lambda e: (e.since_s, len(e.id), e.id)))

    def _explained(self) -> tuple[Loss, ...]:
        self._losses = [
            loss if loss.reason else replace(loss, reason=self._scheduler.reason_gone(loss.executor.id))
            for loss in self._losses
        ]
        return tuple(self._losses)

    def _change(self, running: int, leaving: int, patience_s: float, now_s: float) -> Change:
        if progress(self._wanted, running, leaving, 0.0, patience_s) is Change.NONE:
            self._differs_since_s = None
            return Change.NONE
        if self._differs_since_s is None:
            self._differs_since_s = now_s
        return progress(self._wanted, running, leaving, now_s - self._differs_since_s, patience_s)

    def _check(self, executors: int) -> None:
        if isinstance(executors, bool) or not isinstance(executors, int) or executors < 1:
            raise InvalidValue(f"{executors!r} executors: at least 1 must stay, or the query stands still")

    def _request(self, executors: int) -> None:
        if not self._scheduler.request_total(executors):
            raise EngineError(
                f"the cluster manager did not acknowledge a total of {executors} executors: "
                "it may be down, or this master cannot scale (see rheostat.engine.spark.session.settings.check_master)"
            )
        self._wanted = executors

    def _wait_for(self, moment: Callable[[], bool], deadline_s: float) -> bool:
        while not moment():
            now_s = self._clock.now()
            if now_s >= deadline_s:
                return False
            self._clock.sleep_until(min(now_s + POLL_S, deadline_s))
        return True

    def _look(self) -> tuple[str, ...]:
        """Learn who has come and who has gone; return who is there."""
        registered = self._scheduler.registered()
        for executor_id in registered:
            if executor_id not in self._known and (executor := self._scheduler.describe(executor_id)) is not None:
                self._known[executor_id] = executor
        for executor_id in self._known.keys() - set(registered):
            executor = self._known.pop(executor_id)
            if executor_id in self._leaving:
                self._leaving.discard(executor_id)
            else:
                # The reason comes milliseconds later than the fact: see `_explained`.
                self._losses = [*self._losses, Loss(executor, self._clock.now())][-LOSSES_KEPT:]
        return registered


def lost_executors(losses: Sequence[Loss]) -> str:
    """Name executors that died, and why, as far as Spark says."""
    reasons: dict[str, list[str]] = {}
    for loss in losses:
        reasons.setdefault(loss.reason or "Spark gives no reason", []).append(loss.executor.id)
    texts = []
    for reason, ids in reasons.items():
        # Spark's own exit code after an OutOfMemoryError, and what is left after a kill by the system.
        memory = ": give executors more memory" if "OutOfMemory" in reason or "code 52" in reason else ""
        texts.append(f"lost executor{'s' if len(ids) > 1 else ''} {', '.join(ids)}: {reason}{memory}")
    return "; ".join(texts)
