"""A window right after a change tells what came and what waits. It is shown, and nothing is concluded from it."""

import math
from dataclasses import replace

import pytest

from rheostat.control.cycle import Awaiting, Mind, State, think
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Expectation, Interval, Reason
from rheostat.job.graph import Graph, JobSpec, Tunable
from rheostat.job.guards import UNGUARDED
from rheostat.job.observation import BatchTime, Latency, Observation, OperatorReading, SourceReading
from rheostat.job.record import Run
from rheostat.job.slo import SLO, Bounds
from rheostat.journal.memory import MemoryJournal
from rheostat.policy.phoebe.knowledge import Knowledge
from rheostat.policy.registry import POLICIES, make_policy
from rheostat.report.history import read_history

SPEC = JobSpec("clicks", Graph(("job",), (), ("job",)), (Tunable("job", Bounds(1, 20)),))
SIX = Allocation({"job": 6})
UNSETTLED = Observation(
    at_s=100.0,
    start_s=70.0,
    end_s=100.0,
    running=SIX,
    wanted=SIX,
    # Far behind and late: whoever looked at these numbers alone would grow.
    sources=(SourceReading("job", 900.0, backlog=50_000.0, lag_s=55.0),),
    overdue_s=40.0,
    latency=Latency(30.0, 40.0, 50.0, 60.0, 70.0, 80.0),
    problem="clicks: no batch has finished in this window",
)
SETTLED = replace(
    UNSETTLED,
    at_s=110.0,
    start_s=100.0,
    end_s=110.0,
    operators=(OperatorReading("job", 6, 500.0, 1.0, 80.0, 1.0),),
    overloaded=("job",),
    problem=None,
)
APPLIED = Decision(SIX, Reason.UNDER_PROVISIONED, "grow", expects=Expectation(900.0, Interval(900.0, 900.0, 900.0)))
STATE = State(step=3, applied=SIX, changed_at_s=60.0, awaiting=Awaiting(2, APPLIED, 60.0, None))


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_no_policy_decides_learns_or_is_judged(name: str) -> None:
    mind = Mind(make_policy(name), SPEC, SLO(max_latency_s=10.0), UNGUARDED, 0)
    known = mind.policy.initial()
    thought = think(mind, STATE, known, UNSETTLED)
    assert thought.decision.target is None
    # A trial asks a testbed, whatever this window shows.
    assert thought.decision.reason in (Reason.UNUSABLE, Reason.TRIAL)
    assert (thought.outcome, thought.intent) == (None, None)
    assert thought.state.awaiting == STATE.awaiting
    learned = thought.knowledge
    if isinstance(known, Knowledge):
        # What came and what waits is known by the sources' offsets; what the job is able to do is not.
        learned = replace(learned, load=known.load, outages=known.outages)
    assert learned == known
    # The same numbers in a whole window are looked at, so the test above could fail.
    assert think(mind, STATE, known, SETTLED).outcome is not None


def test_the_report_has_no_gap_where_it_is_known_what_came() -> None:
    journal = MemoryJournal()
    lease = journal.acquire("clicks", "test", 60.0)
    run = Run("clicks", 60.0, "1", 0, SPEC, SLO(max_latency_s=10.0), UNGUARDED, "static")
    journal.append(lease, 0, [run, UNSETTLED, SETTLED])
    history = read_history(journal, "clicks")
    assert history.column("load_per_s").tolist() == [900.0, 900.0]
    assert history.column("backlog").tolist() == [50_000.0, 50_000.0]
    assert history.column("event_p99_s").tolist() == [80.0, 80.0]
    assert history.column("unusable").tolist() == [1.0, 0.0]
    assert math.isnan(history.column("throughput_per_s")[0])
    assert math.isnan(history.operator_column("job", "true_rate_per_s")[0])
    over = history.seconds_over()
    assert over is not None
    assert over[1] == 0.0  # of every second it is known whether the objective was kept


def test_a_batch_time_that_cannot_be_is_absurd() -> None:
    line = BatchTime(0.5, 2e-3, 0.05, 20, 10.0, 900.0)
    mind = Mind(make_policy("ds2"), SPEC, SLO(), UNGUARDED, 0)
    whole = replace(SETTLED, batch_time=line)
    assert think(mind, STATE, None, whole).window.problem is None
    broken = replace(SETTLED, batch_time=replace(line, slot_s_per_record=math.nan))
    assert think(mind, STATE, None, broken).window.problem == "slot_s_per_record of the job is nan"
