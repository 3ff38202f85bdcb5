"""A driver in a storm: its clock, its engine, its connection to the journal, and the controller that it runs.

It is killed or suspended at any write of the journal and around any effect, except between a journaled sub-step and its
effect, which no lease can guard.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rheostat.control.controller import IMMEDIATE, Controller, Step
from rheostat.engine.simulated.engine import SimulatedEngine
from rheostat.errors import EngineError, EngineLate, JournalError, LeaseRefused
from rheostat.job.allocation import Allocation
from rheostat.job.fit import fit_suggestions
from rheostat.job.forecast import Foresight
from rheostat.job.graph import JobSpec
from rheostat.job.observation import Change, Observation, mark_problem
from rheostat.job.record import Intent, Record
from rheostat.lab.chaos.faults import WINDOW_FAULTS, Killed, Suspension, spoil_window
from rheostat.policy.registry import make_policy
from rheostat.ports import Entry, Lease, Note, Policy, Skip

if TYPE_CHECKING:
    from rheostat.lab.chaos.storm import Storm

INTERVAL_S = 60
LEASE_S = 150.0
"""A lease outlasts two steps: without a thread only the steps renew it."""
START_S = 1e6
"""The wall clock at the start."""
STANDBY_MINUTES = 3
"""Minutes between two attempts of a driver to take a lease that another one holds."""
POINTS = 12
"""Points of a turn within which a kill or a suspension comes."""
KILL, STOP, SUSPEND, JUMP = 0.005, 0.001, 0.004, 0.004
"""Chances per turn."""
WINDOW_FAULT, SPEC_FAULT, APPLY_FAULT, LOSS = 0.06, 0.01, 0.4, 0.4
"""Chances per call; answers are lost only in a minute of losses."""
DRY_RUN, DAMAGE, MEMORY_CHECK, GOES_ON = 0.1, 0.1, 0.02, 0.2
"""Chances per start, per kill, per step, and per minute of a change that hangs."""


class Driver:
    """One driver process: its clock, its engine, its connection to the journal, and its controller, if it runs one."""

    def __init__(self, storm: Storm, name: str) -> None:
        self.storm, self.name, self.offset_s = storm, name, 0.0
        self.controller: Controller[Any] | None = None
        self.suspension: Suspension | None = None
        self.wakes_s = self.starts_s = 0.0
        self.dead = self.dry_run = False
        self.token = 0
        self.kill_in = self.suspend_in = 0
        """Points until it is killed or suspended; 0 if it is not."""
        self.suspend_at_note = False
        """Whether it is suspended the next time that it has journaled a sub-step, and not before."""
        self.hung: Iterator[None] | None = None
        """A change that hangs, as an iterator over its sub-steps."""
        self.faulty = False
        """Whether anything went wrong in this turn."""
        self.clean = False
        """Whether the job showed a good window in this turn."""
        self.last: Observation | None = None
        self._renew()

    def _renew(self) -> None:
        engine = self.storm.fleet.engine(self.storm.replica)
        assert isinstance(engine, SimulatedEngine)
        self.engine = engine
        self.dead, self.hung, self.last = False, None, None
        self.kill_in = self.suspend_in = 0
        self.suspend_at_note = False

    # -- the clock ---------------------------------------------------------------------------------------------

    def now(self) -> float:
        """Return the wall clock of this driver."""
        return START_S + self.storm.passed_s + self.offset_s

    def monotonic(self) -> float:
        """Return the simulated time."""
        return self.storm.passed_s

    def sleep(self, seconds: float) -> None:
        """Do nothing: the fleet's time passes outside."""

    # -- what happens to it ------------------------------------------------------------------------------------

    def turn(self) -> None:
        """Take one turn: start where no controller runs, else step."""
        storm = self.storm
        if self.suspension is not None:
            if storm.passed_s >= self.wakes_s:
                self._resume(self.suspension)
            return
        if storm.chance(JUMP, "clock jumps"):
            storm.set_clocks([self])
        if self.controller is None and storm.passed_s < self.starts_s:
            return
        if storm.chance(KILL, "kills"):
            self.kill_in = storm.random.randint(1, POINTS)
        elif storm.chance(SUSPEND, "suspensions"):
            self.suspend_in = storm.random.randint(1, POINTS)
            self.suspend_at_note = storm.random.random() < 0.5
        if self.suspend_in or self.suspend_at_note:
            self._resume(Suspension(self._act))
        else:
            self._act()

    def _resume(self, suspension: Suspension) -> None:
        self.suspension = suspension
        suspension.resume()
        if suspension.done:
            self.suspension = None
        else:
            self.wakes_s = self.storm.passed_s + INTERVAL_S * self.storm.random.randint(1, 8)

    def end(self) -> None:
        """End a suspended call."""
        self.dead = True
        while self.suspension is not None:
            self._resume(self.suspension)

    def _act(self) -> None:
        storm, stepping = self.storm, False
        self.faulty = self.clean = False
        try:
            if self.controller is None:
                self._start()
            elif storm.chance(STOP, "stops"):
                controller, self.controller = self.controller, None
                controller.stop()
            else:
                stepping = True
                self._advance_hung_change()
                self._check(self.controller.step())
        except Killed:
            self._gone(storm.random.choice((0, 1, 3, 10)))
            if storm.chance(DAMAGE):
                storm.damage()
        except LeaseRefused:
            storm.faults["refusals"] += self.controller is not None
            self._gone(STANDBY_MINUTES if self.controller is None else 0)
        except Exception as error:  # noqa: BLE001 - a start may fail, and is tried again; a step must not
            if stepping or not isinstance(error, JournalError | EngineError):
                storm.watch.violated(f"{self.name} driver: {type(error).__name__}: {error}")
                self._gone(1)
        # A kill that was not reached in this turn ends it now.
        if self.kill_in and not self.dead:
            self._gone(1)
        self.suspend_in = 0

    def _gone(self, minutes: int) -> None:
        """The process has ended; another one starts later."""
        self.controller = None
        self.starts_s = self.storm.passed_s + minutes * INTERVAL_S
        self._renew()

    def _start(self) -> None:
        storm, plan = self.storm, self.storm.plan
        self.dry_run = storm.random.random() < DRY_RUN
        policy: Policy[Any] = make_policy(plan.policy)
        starting: Controller[Any] = Controller(
            self,
            policy,
            Connection(self),
            self,
            slo=plan.slo,
            guards=replace(plan.guards, dry_run=self.dry_run),
            seed=storm.seed,
            pace=replace(IMMEDIATE, lease_s=LEASE_S),
            # One quick candidate: a back-test is limited by processor time, and would not repeat.
            foresight=Foresight(candidates=("drift",), choose_every_s=14_400.0),
        )
        starting.start()
        assert starting._lease is not None
        self.controller, self.token = starting, starting._lease.token
        storm.faults["starts"] += 1
        storm.faults["dry runs"] += self.dry_run
        storm.watch.started(self.name)

    def _check(self, step: Step) -> None:
        storm, controller = self.storm, self.controller
        if controller is None:
            return
        storm.watch.stepped(self.name, step, clean=self.clean and not self.faulty)
        if not controller._unsure and storm.random.random() < MEMORY_CHECK:
            storm.watch.check_memory(storm.journal, controller)

    def point(self, what: str, suspends: bool = True) -> None:
        """A moment at which the process may be killed or suspended."""
        if self.dead:
            raise Killed(what)
        if self.kill_in:
            self.kill_in -= 1
            if self.kill_in == 0:
                self.dead = True
                raise Killed(what)
        running = self.suspension is not None and self.suspension.here
        if suspends and self.suspend_in and not self.suspend_at_note and running:
            self.suspend_in -= 1
            if self.suspend_in == 0:
                self.faulty = True
                assert self.suspension is not None
                self.suspension.pause()
                if self.dead:
                    raise Killed(what)

    # -- the engine --------------------------------------------------------------------------------------------

    def describe(self) -> JobSpec:
        """Return the job's description, or not."""
        if self.storm.chance(SPEC_FAULT, "describe: raises"):
            self.faulty = True
            raise self.storm.random.choice((EngineError("no answer"), EngineLate("describe did not return in time")))
        return self.engine.describe()

    def observe(self) -> Observation:
        """Return the window as this driver's clock sees it, or a wrong one."""
        storm = self.storm
        self.point("observe")
        seen = self.engine.observe()
        ahead_s = self.now() - seen.at_s
        window = replace(seen, at_s=self.now(), start_s=seen.start_s + ahead_s, end_s=seen.end_s + ahead_s)
        window = self._show_change(window)
        self.clean = mark_problem(window, storm.fleet.spec).problem is None
        last, self.last = self.last, window
        if not storm.chance(WINDOW_FAULT):
            return window
        self.faulty = True
        kind = storm.random.choice(WINDOW_FAULTS)
        storm.faults[f"windows: {kind}"] += 1
        wrong: Observation = spoil_window(kind, window, last, storm.random)
        return wrong

    def _show_change(self, window: Observation) -> Observation:
        storm = self.storm
        if storm.pending is not None and storm.pending[2]:
            problem = "the window overlaps a change"
            return replace(window, wanted=storm.pending[1], change=Change.UNDER_WAY, problem=problem)
        if storm.partial is not None and window.running == storm.partial[0]:
            return replace(window, wanted=storm.partial[1], change=Change.PARTIAL)
        if storm.failed and window.change is Change.NONE:
            return replace(window, change=Change.FAILED)
        return window

    def apply(self, intent: Intent, note: Note) -> None:
        """Change the job's allocation, in one of many ways."""
        storm = self.storm
        if self.hung is not None:
            raise EngineLate("apply: waiting for an earlier apply that has not returned")
        how = ""
        if storm.chance(APPLY_FAULT):
            how = storm.random.choice(("refused", "fails", "reports failure", "partial", "slow", "unseen", "hangs"))
            storm.faults[f"changes: {how}"] += 1
        if how == "refused":
            raise EngineError("no executors")
        change = self._change(intent, note, how)
        next(change)
        if how == "hangs":
            self.hung = change
            raise EngineLate("apply did not return within 120 s")
        for _ in change:
            pass
        if how == "fails":
            raise EngineError("the answer was lost")

    def _change(self, intent: Intent, note: Note, how: str) -> Iterator[None]:
        """Go through the sub-steps of a change; the last one has the effect."""
        storm = self.storm
        yield
        names = self.engine._steps(intent)
        for place, name in enumerate(names):
            self.point("before a note")
            if self.suspend_at_note:
                self.suspend_in, self.suspend_at_note = 2, False  # asking for the write, and its commit
            note(name)
            storm.watch.acted(self.name, intent, current=self.token == storm.token, dry_run=self.dry_run)
            if place == len(names) - 1:
                self._effect(intent, how)
            self.point("after an effect")
            yield

    def _effect(self, intent: Intent, how: str) -> None:
        storm = self.storm
        if how in ("slow", "unseen"):
            after_s = INTERVAL_S * storm.random.randint(1, 9)
            storm.reconfigure(storm.fleet.wanted[storm.replica])
            storm.pending = (storm.passed_s + after_s, intent.target, how == "slow")
        elif how == "partial":
            half = self._half(intent)
            storm.reconfigure(half)
            storm.partial = (half, intent.target) if half != intent.target else None
        elif how == "reports failure":
            storm.failed = True
        else:
            storm.reconfigure(intent.target)

    def _half(self, intent: Intent) -> Allocation:
        """Return an allocation between the running one and the target."""
        was = self.storm.fleet.wanted[self.storm.replica]
        tasks = {name: (count + was.tasks[name]) / 2 for name, count in intent.target.tasks.items()}
        return intent.target.with_tasks(fit_suggestions(self.storm.watch.limits, tasks))

    def _advance_hung_change(self) -> None:
        """Let a hanging change go on now and then, long after its caller has given up."""
        if self.hung is None or self.storm.random.random() > GOES_ON:
            return
        hung = self.hung
        try:
            next(hung)
        except (EngineError, JournalError):
            self.hung = None  # refused: its change has ended
        except StopIteration:
            self.hung = None
        if self.controller is not None and self.hung is None:
            self.storm.faults["hung changes that ended"] += 1


class Connection:
    """A driver's connection to the journal: it breaks, and loses answers."""

    def __init__(self, driver: Driver) -> None:
        self.driver, self.storm, self.inner = driver, driver.storm, driver.storm.journal

    def _enter(self, what: str) -> None:
        self.driver.point(what)
        self.storm.calling = self.driver
        if self.storm.passed_s < self.storm.down_until_s:
            self.driver.faulty = True
            raise JournalError("the database cannot be reached")

    def acquire(self, job: str, holder: str, ttl_s: float) -> Lease:
        """Take the lease under the driver's name: an address in memory would not repeat."""
        self._enter("acquire")
        lease = self.inner.acquire(job, self.driver.name, ttl_s)
        self.storm.token = lease.token
        self.storm.watch.now_s = self.storm.passed_s
        return lease

    def append(self, lease: Lease, step: int, records: Sequence[Record]) -> int:
        """Write, and lose the answer now and then, before or after the write."""
        self._enter("append")
        storm = self.storm
        loss = ""
        if storm.passed_s < storm.losing_until_s and storm.chance(LOSS):
            loss = storm.random.choice(("before", "after"))
            storm.faults[f"answers lost {loss} the write"] += 1
            self.driver.faulty = True
        if loss == "before":
            raise JournalError("the connection broke before the write")
        number = self.inner.append(lease, step, records)
        storm.watch.journaled(records, self.driver.offset_s)
        if loss:
            raise JournalError("the connection broke after the write")
        # With clocks that disagree, another driver may take the lease over while this one still counts on it.
        self.driver.point("committed", suspends=len({driver.offset_s for driver in storm.drivers}) == 1)
        return number

    def release(self, lease: Lease) -> None:
        """Release the lease."""
        self._enter("release")
        self.inner.release(lease)

    def read(self, job: str, after: int = 0, kinds: Sequence[str] = (), skip: Skip | None = None) -> Iterator[Entry]:
        """Read records."""
        self._enter("read")
        return self.inner.read(job, after, kinds, skip)

    def latest(self, job: str, kind: str, before: int | None = None) -> Entry | None:
        """Read the newest record of a kind."""
        self._enter("latest")
        return self.inner.latest(job, kind, before)

    def tail(self, job: str, records: int, before: int | None = None) -> int:
        """Return where the last records begin."""
        self._enter("tail")
        return self.inner.tail(job, records, before)

    def prune(self, lease: Lease, before_s: float) -> int:
        """Delete old records."""
        self._enter("prune")
        return self.inner.prune(lease, before_s)

    def jobs(self) -> tuple[str, ...]:
        """Return the names of all jobs."""
        return self.inner.jobs()

    def close(self) -> None:
        """Do nothing: the storm closes the journal."""
