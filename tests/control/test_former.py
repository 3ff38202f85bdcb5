"""A window right after a change: the load is that of now, the rates are those of the former size."""

from dataclasses import dataclass, replace
from typing import ClassVar

from rheostat.control.cycle import NOT_YET, Mind, State, think
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Reason
from rheostat.job.guards import UNGUARDED
from rheostat.job.observation import Observation
from rheostat.job.record import Record
from rheostat.job.slo import SLO
from rheostat.ports import Policy, Situation
from rheostat.testing.situations import window, word_count

WORDS = word_count()
FORMER, NOW = {"split": 2, "count": 2}, {"split": 4, "count": 8}
SEEN = replace(
    window(WORDS, 800.0, FORMER, {"lines": 1e6, "split": 100.0, "count": 250.0}),
    running=Allocation(NOW),
    wanted=Allocation(NOW),
    former=Allocation(FORMER),
)


@dataclass(frozen=True)
class Curious(Policy[int]):
    """Counts what it may learn from, and asks for more of everything."""

    name: ClassVar[str] = "curious"

    def initial(self) -> int:
        return 0

    def learn(self, knowledge: int, record: Record) -> int:
        return knowledge + (isinstance(record, Observation) and record.usable)

    def decide(self, situation: Situation[int]) -> Decision:
        tasks = {name: situation.window.operator(name).tasks + 10 for name in situation.running.tasks}
        return situation.change_to(situation.running.with_tasks(tasks))


@dataclass(frozen=True)
class Hasty(Curious):
    """The same, where rates per task are enough."""

    reads_former_rates: ClassVar[bool] = True


def test_only_a_policy_that_needs_no_more_than_rates_decides_from_it_and_none_learns() -> None:
    for policy, target in ((Curious(), None), (Hasty(), {"split": 12, "count": 12})):
        thought = think(Mind(policy, WORDS, SLO(), UNGUARDED, 0), State(), 0, SEEN)
        assert (None if thought.decision.target is None else dict(thought.decision.target.tasks)) == target
        assert thought.knowledge == 0
        if target is None:
            assert (thought.decision.reason, thought.decision.sentence) == (Reason.UNUSABLE, NOT_YET)


def test_it_shows_no_rate_of_the_former_size_as_one_of_now() -> None:
    assert (SEEN.load_per_s, SEEN.throughput_per_s, SEEN.present_operators) == (800.0, None, ())
    now = replace(SEEN, former=None)
    assert (now.throughput_per_s, now.present_operators) == (SEEN.operator("lines").records_in_per_s, SEEN.operators)
