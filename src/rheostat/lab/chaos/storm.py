"""One storm: a simulated job, two drivers that run the real controller on one journal, and faults all the time.

Drivers are killed, suspended and overtaken, and their clocks jump. Their windows are wrong; their changes fail, come
late, come in part, or hang. The database is lost for a while, or loses answers. `watch.py` checks what must hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from rheostat.control.limits import limits
from rheostat.engine.simulated import Fleet
from rheostat.job.allocation import Allocation
from rheostat.job.graph import JobSpec
from rheostat.job.guards import Guards
from rheostat.job.slo import SLO, Bounds, with_default_headroom
from rheostat.journal.memory import MemoryJournal
from rheostat.journal.sql import SqlJournal
from rheostat.lab.chaos.driver import INTERVAL_S, START_S, Driver
from rheostat.lab.chaos.watch import Watch
from rheostat.policy.registry import make_policy
from rheostat.ports import Entry, Journal

OFFSETS_S = (0.0, 0.0, 25.0, -25.0, 3600.0, -3600.0)
"""What a driver's clock is off by after a jump."""
JUMP, JOB_FAILURE, OUTAGE, LOSSES = 0.004, 0.001, 0.002, 0.006
"""Chances per minute."""


@dataclass(frozen=True)
class Plan:
    """What the seed decides about a storm, besides its faults."""

    policy: str
    slo: SLO
    guards: Guards
    sqlite: bool

    @staticmethod
    def draw(random: Random, spec: JobSpec) -> Plan:
        """Draw a policy with its objectives and guards."""
        policy = random.choice(("ds2", "ds2", "conttune", "dhalion"))
        most = sum(t.bounds.max or 90 for t in spec.tunable)
        slo = SLO(
            max_latency_s=random.choice((None, 30.0)),
            max_recovery_s=random.choice((None, None, 300.0)),
            job=Bounds(len(spec.tunable), random.choice((most, max(len(spec.tunable) + 1, most // 2)))),
        )
        slo = with_default_headroom(slo, make_policy(policy).factor()[1])
        guards = Guards(max_step_up=random.choice((None, 2.0)), max_step_down=random.choice((None, 0.5)))
        return Plan(policy, slo, guards, sqlite=random.random() < 0.5)


class Storm:
    """One replica of a fleet in a storm; `minute` is called after every minute of the fleet."""

    def __init__(self, seed: int, fleet: Fleet, replica: int, folder: Path) -> None:
        self.seed, self.fleet, self.replica = seed, fleet, replica
        self.random = Random(f"{seed} storm")
        self.plan = Plan.draw(Random(f"{seed} plan"), fleet.spec)
        self.calling: Driver | None = None
        """Whose clock the journal reads."""
        self.journal: Journal = MemoryJournal(wall=self._wall)
        if self.plan.sqlite:
            self.journal = SqlJournal(folder / f"storm-{seed}.db", wall=self._wall)
        self.faults: Counter[str] = Counter()
        self.watch = Watch(seed, fleet.spec, limits(fleet.spec, self.plan.slo), self.plan.guards)
        self.token = 0
        """Of the newest lease."""
        self.down_until_s = self.losing_until_s = -1.0
        self.pending: tuple[float, Allocation, bool] | None = None
        """A change that takes effect later, and whether windows show it as under way."""
        self.partial: tuple[Allocation, Allocation] | None = None
        """What runs of a change that came in part, and what was wanted."""
        self.failed = False
        """Whether windows say that the last change failed."""
        self.drivers = [Driver(self, name) for name in ("first", "second")]

    @property
    def passed_s(self) -> float:
        """Simulated seconds since the start."""
        return float(self.fleet.now)

    def chance(self, share: float, what: str = "") -> bool:
        """Draw whether something happens, and count it."""
        happens = self.random.random() < share
        if happens and what:
            self.faults[what] += 1
        return happens

    def minute(self) -> None:
        """Let happen what happens in this minute, and give every driver its turn."""
        self.watch.now_s = self.passed_s
        if self.pending is not None and self.passed_s >= self.pending[0]:
            self.reconfigure(self.pending[1])
        if self.chance(JOB_FAILURE, "job failures"):
            self.fleet.fail(self.replica, self.passed_s)
        if self.chance(OUTAGE, "database outages"):
            self.down_until_s = self.passed_s + INTERVAL_S * self.random.randint(1, 6)
        if self.chance(JUMP, "clock jumps of both drivers"):
            self.set_clocks(self.drivers)
        if self.chance(LOSSES):
            self.losing_until_s = self.passed_s + INTERVAL_S * self.random.randint(1, 3)
        first = self.random.randrange(2)
        for driver in (self.drivers[first], self.drivers[1 - first]):
            driver.turn()

    def set_clocks(self, drivers: Sequence[Driver]) -> None:
        """Set the clocks of some drivers, all by the same."""
        offset_s = self.random.choice(OFFSETS_S)
        for driver in drivers:
            driver.offset_s = offset_s

    def finish(self) -> None:
        """End suspended calls, check the whole journal, and close it."""
        for driver in self.drivers:
            driver.end()
        self.watch.check_journal(self.journal)
        self.journal.close()

    def reconfigure(self, target: Allocation) -> None:
        """Give the job another allocation; a newer request replaces an older one."""
        self.pending = self.partial = None
        self.failed = False
        self.fleet.reconfigure(self.replica, target)

    def damage(self) -> None:
        """Make one of the newest records unreadable, while no controller runs."""
        if not isinstance(self.journal, SqlJournal) or any(d.controller or d.suspension for d in self.drivers):
            return
        numbers = [entry.number for entry in self._newest(40)]
        if numbers:
            damage_record(self.journal, self.random.choice(numbers))
            self.faults["damaged records"] += 1
            self.watch.recount(self.journal)

    def _newest(self, count: int) -> list[Entry]:
        last = self.journal.latest(self.fleet.spec.name, "decision")
        after = 0 if last is None else last.number - count
        return list(self.journal.read(self.fleet.spec.name, after, skip=lambda _: None))

    def _wall(self) -> float:
        return self.calling.now() if self.calling else START_S + self.passed_s


def damage_record(journal: SqlJournal, number: int) -> None:
    """Cut a record in the middle, as a damaged file would."""
    from sqlalchemy import text

    with journal._transaction() as connection:
        connection.execute(text("UPDATE record SET body = substr(body, 1, 9) WHERE number = :n"), {"n": number})
