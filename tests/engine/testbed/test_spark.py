"""Trials on Spark: phases become whole records, and an invalid trial is refused before Spark starts."""

import pytest
from spark_trials import measure_all

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
    with pytest.raises(InvalidValue, match="must last a multiple of 5 s, not 7 s"):
        schedule_of((Phase(7.0, {JOB: 100.0}),))


def test_an_invalid_trial_is_refused_and_starts_nothing() -> None:
    testbed = SparkTestbed("trials", pipeline_starter("ysb"), 2)
    named = trial(1, 10.0)
    wrong = (
        Trial("x", Allocation({"map": 1}), named.phases),
        trial(3, 10.0),
        Trial("x", Allocation({JOB: 1}), (Phase(5.0, {"other": 1.0}, observed=True),)),
        Trial("x", Allocation({JOB: 1}), named.phases[::-1]),
    )
    words = ("has 'job' only", "1 to 2", "only source", "come last")
    for invalid, word in zip(wrong, words, strict=True):
        measurement = testbed.measure(invalid)
        assert measurement.observation is None
        assert word in (measurement.problem or "")
    testbed.close()


def test_trials_of_several_sizes_share_one_cluster() -> None:
    measurements = in_own_process(measure_all, [trial(1, 100.0), trial(2, 200.0)])
    for slots, measurement in zip((1, 2), measurements, strict=True):
        assert measurement.problem is None
        window = measurement.observation
        assert window is not None
        assert window.running == Allocation({JOB: slots})
        # A window consists of whole batches, so its rates cover a few seconds more or less; on a busy machine a cold
        # executor catches up in it.
        assert window.load_per_s == pytest.approx(100.0 * slots, rel=0.3)
        assert window.throughput_per_s is not None
        assert window.throughput_per_s > 30.0 * slots
        assert measurement.seconds >= 30.0
        assert measurement.slot_seconds == slots * measurement.seconds
