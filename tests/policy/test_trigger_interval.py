"""The trigger-interval rule, as a table: batch time against interval."""

from dataclasses import replace

import pytest

from rheostat.errors import InvalidValue
from rheostat.job.decision import Reason
from rheostat.job.graph import Graph, JobSpec, Tunable
from rheostat.job.observation import Latency
from rheostat.job.slo import Bounds
from rheostat.policy.trigger_interval import TriggerInterval
from rheostat.testing.situations import situation, window

SPEC = JobSpec("job", Graph(("job",), (), ("job",)), (Tunable("job", Bounds(2, 20), 2),))


@pytest.mark.parametrize(
    ("batch_s", "overdue_s", "tasks"),
    [
        (5.0, 0.0, None),
        (8.9, 0.0, None),
        (9.0, 0.0, 10),
        (14.0, 0.0, 10),
        (31.0, 0.0, 14),
        (500.0, 0.0, 20),
        (5.0, 26.0, 14),
        (3.1, 0.0, None),
        (3.0, 0.0, 6),
    ],
)
def test_grows_and_shrinks_by_executors(batch_s: float, overdue_s: float, tasks: int | None) -> None:
    observation = replace(
        window(SPEC, 1000.0, 8, 200.0), latency=Latency(batch_s, batch_s, batch_s, 1, 1, 1), overdue_s=overdue_s
    )
    decision = TriggerInterval(interval_s=10.0).decide(situation(SPEC, observation, None))
    assert (decision.target.tasks["job"] if decision.target else None) == tasks
    assert f"{max(batch_s, overdue_s):.3g} s of the 10 s" in decision.sentence


def test_holds_without_batch_times() -> None:
    decision = TriggerInterval().decide(situation(SPEC, window(SPEC, 1000.0, 8, 200.0), None))
    assert decision.reason is Reason.UNUSABLE


def test_refuses_ratios_in_the_wrong_order() -> None:
    with pytest.raises(InvalidValue, match=r"scale_down_ratio 0\.95"):
        TriggerInterval(scale_down_ratio=0.95)
