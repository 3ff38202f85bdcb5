"""The page of a comparison in real-time mode, over a run in the simulator that stands for one on Spark."""

from rheostat.engine.testbed.loads import Permutation
from rheostat.engine.testbed.schedule import Schedule
from rheostat.lab.experiment.realtime_compare import (
    REALTIME_JOBS,
    SLO,
    RealTimeComparison,
    equal_shares,
    predicted,
    score,
)
from rheostat.lab.experiment.realtime_page import realtime_page
from rheostat.lab.experiment.realtime_trial import RealTimeRun, RealTimeTrial, paces_of
from rheostat.lab.experiment.simulated import Scenario, compare
from rheostat.policy.ds2 import DS2

SECONDS = 100


def test_predicted_and_measured_stand_side_by_side_and_every_stage_has_its_panel() -> None:
    plant, load = REALTIME_JOBS["wordcount"](), Permutation(repeats=1, hold_s=10.0)
    [unit] = plant.unit_per_s.values()
    start = equal_shares(plant)
    scenario = Scenario(plant, load, float(SECONDS), 5.0, SLO, start=start)
    steps = compare(scenario, {"ds2": lambda _scenario, _seed: DS2()}, [0]).run("ds2", 0).steps
    trial = RealTimeTrial(
        "wordcount", Schedule(load, unit, SECONDS), "ds2", paces_of(plant), start=start.tasks, slo=SLO
    )
    run = RealTimeRun(trial, tuple(steps), 0.0, float(SECONDS), None, None, (1.5,), 1000, 7, 3)
    rows = (predicted(plant, "ds2", load, SECONDS, SLO, 5.0, start), score(run))
    page = realtime_page(RealTimeComparison("wordcount", (run,), rows))
    assert "wordcount in real-time mode: ds2" in page
    assert "predicted" in page
    for panel in ("Tasks of split", "Tasks of count", "Backlog, records", "Latency as the job reports it"):
        assert panel in page
    assert ">7<" in page  # keys wrong
