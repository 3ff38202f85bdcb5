"""Trials on Spark: phases become whole records, and what cannot be run is said before anything is started."""

import pytest
from spark_trials import measured

from rheostat.engine.testbed.spark import SparkTestbed
from rheostat.errors import InvalidValue
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Phase, Trial
from rheostat.lab.experiment.processes import in_own_process
from rheostat.lab.workload.injection import pipeline_starter, schedule_of

pytestmark = pytest.mark.cluster

JOB = "job"


def trial(slots: int, rate_per_s: float, *seconds: float) -> Trial:
    warm_s, observed_s = seconds or (15.0, 15.0)
    phases = (Phase(warm_s, {JOB: rate_per_s}), Phase(observed_s, {JOB: rate_per_s}, observed=True))
    return Trial("trial", Allocation({JOB: slots}), phases)


def test_phases_become_whole_records() -> None:
    schedule = schedule_of((Phase(10.0, {JOB: 100.0}), Phase(5.0, {JOB: 40.0}, observed=True)))
    assert [schedule.due(second) for second in (0, 5, 10, 15)] == [0, 500, 1000, 1200]
    with pytest.raises(InvalidValue, match="a phase of 7 s"):
        schedule_of((Phase(7.0, {JOB: 100.0}),))


def test_what_cannot_be_run_is_said_and_nothing_is_started() -> None:
    testbed = SparkTestbed("trials", pipeline_starter("ysb"), 2)
    named = trial(1, 10.0)
    wrong = (
        Trial("x", Allocation({"map": 1}), named.phases),
        trial(3, 10.0),
        Trial("x", Allocation({JOB: 1}), (Phase(5.0, {"other": 1.0}, observed=True),)),
        Trial("x", Allocation({JOB: 1}), named.phases[::-1]),
    )
    words = ("has 'job' only", "1 to 2", "only source", "come last")
    for asked, word in zip(wrong, words, strict=True):
        told = testbed.measure(asked)
        assert told.observation is None
        assert word in (told.problem or "")
    testbed.close()


def test_sizes_and_rates_are_tried_one_after_the_other_on_one_cluster() -> None:
    for asked, told in zip((1, 2), in_own_process(measured, [trial(1, 100.0), trial(2, 200.0)]), strict=True):
        assert told.problem is None
        window = told.observation
        assert window is not None
        assert window.running == Allocation({JOB: asked})
        # A window is as many whole batches as there were, so its rates are those of a few seconds more or less; on a
        # busy machine a cold executor catches up in it.
        assert window.load_per_s == pytest.approx(100.0 * asked, rel=0.3)
        assert window.throughput_per_s is not None
        assert window.throughput_per_s > 30.0 * asked
        assert told.seconds >= 30.0
        assert told.slot_seconds == asked * told.seconds
