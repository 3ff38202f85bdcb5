"""A simulated job under a controller, and a policy that asks for what a test tells it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from rheostat.control.controller import IMMEDIATE, Controller, Pace
from rheostat.engine.simulated import Fleet, FleetClock
from rheostat.engine.testbed.loads import Constant
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Expectation, Reason, Trial
from rheostat.job.record import Record
from rheostat.journal.memory import MemoryJournal
from rheostat.lab.jobs import job
from rheostat.ports import Engine, Policy, Situation

JOB = "wordcount"


@dataclass(frozen=True)
class Scripted(Policy[int]):
    """Asks for the given splitter tasks, one after another; its knowledge counts records."""

    name: ClassVar[str] = "scripted"
    suggestions: tuple[int | None, ...] = ()
    expects: Expectation = Expectation()
    trials: tuple[Trial, ...] = ()

    def initial(self) -> int:
        return 0

    def learn(self, knowledge: int, record: Record) -> int:
        return knowledge + 1

    def decide(self, situation: Situation[int]) -> Decision:
        turn = int(situation.memo.get("turn", 0))
        suggestion = self.suggestions[turn] if turn < len(self.suggestions) else None
        target = None if suggestion is None else situation.running.with_tasks({"splitter": suggestion})
        trials = self.trials if turn == 0 else ()
        memo = {"turn": turn + 1}
        return Decision(target, Reason.MIXED, f"turn {turn}", expects=self.expects, memo=memo, trials=trials)


class World:
    """A simulated job under a controller."""

    def __init__(
        self,
        policy: Policy[Any],
        *,
        spoil: Callable[[Engine], Engine] | None = None,
        journal: Any = None,
        pace: Pace = IMMEDIATE,
        load: float = 3.0,
        **rest: Any,
    ) -> None:
        self.fleet = Fleet(job(JOB), [Constant(load)], [1], start=[Allocation({"splitter": 5, "count": 3})])
        self.clock = FleetClock(self.fleet)
        self.engine = spoil(self.fleet.engine(0)) if spoil else self.fleet.engine(0)
        self.journal = journal if journal is not None else MemoryJournal()
        self.controller = Controller(self.engine, policy, self.journal, self.clock, pace=pace, **rest)
        self.controller.start()

    def step(self, seconds: int = 120) -> Any:
        self.fleet.advance(seconds)
        return self.controller.step()

    def records(self, *kinds: type) -> list[Record]:
        return [e.record for e in self.journal.read(JOB) if not kinds or isinstance(e.record, kinds)]
