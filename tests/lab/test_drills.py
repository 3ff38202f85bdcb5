"""Drills on the simulator: what they show is what the loop would have learned, and a later controller knows it."""

from __future__ import annotations

from statistics import mean

import pytest

from rheostat.control.controller import IMMEDIATE, Controller
from rheostat.engine.simulated import Fleet, FleetClock
from rheostat.engine.testbed.loads import Constant
from rheostat.errors import InvalidValue
from rheostat.job.slo import SLO
from rheostat.journal.memory import MemoryJournal
from rheostat.lab.drills import Drill, drill_simulated, learn_drills, read_drills
from rheostat.lab.jobs.phoebe import top_speed, ysb
from rheostat.lab.profiles import write_profile
from rheostat.policy.ds2 import DS2
from rheostat.policy.phoebe.anticipate import Anticipate

DRILL = Drill(12, 60e3)


def test_a_drill_shows_the_downtime_from_the_failure_on() -> None:
    """The plant resumes 65 +- 8 s after a failure, and its engine reports only the stop of 45 s."""
    seconds = [
        r.downtime_s for seed in range(8) for r in learn_drills(drill_simulated(top_speed(), DRILL, seed)).restarts
    ]
    assert len(seconds) == 24
    assert mean(seconds) == pytest.approx(65.0, abs=5.0)
    one, again = (list(drill_simulated(top_speed(), DRILL, 3)) for _ in range(2))
    assert one == again
    assert [m.trial.name for m in one] == ["drill restart 1", "drill restart 2", "drill restart 3"]
    assert all(m.slot_seconds == 12 * m.seconds > 0 for m in one)


def test_a_drill_narrows_what_the_job_must_provide_for() -> None:
    known = learn_drills(drill_simulated(ysb(), DRILL, 0))
    assert not known.guessed
    assert 60.0 < known.quantile(0.9) < 100.0


def test_a_controller_starts_with_the_drills_of_its_journal() -> None:
    """The policy and the recovery floor both know them before the first window."""
    plant, journal = ysb(), MemoryJournal()
    fleet = Fleet(plant, [Constant(60e3)], [0])
    write_profile(journal, plant.name, tuple(drill_simulated(plant, DRILL, 0)))
    assert len(read_drills(journal, plant.name)) == 3
    controller = Controller(
        fleet.engine(0), Anticipate(), journal, FleetClock(fleet), slo=SLO(max_recovery_s=180.0), pace=IMMEDIATE
    )
    controller.start()
    assert len(controller.knowledge.outages.downtimes.restarts) == 3
    assert controller.state.recoveries is not None
    assert controller.state.recoveries.downtimes.restarts == controller.knowledge.outages.downtimes.restarts
    controller.stop()
    after = Controller(
        fleet.engine(0), DS2(), journal, FleetClock(fleet), slo=SLO(max_recovery_s=180.0), pace=IMMEDIATE
    )
    after.start()
    assert after.state.recoveries is not None
    assert len(after.state.recoveries.downtimes.restarts) == 3


def test_a_drill_that_cannot_run_says_why() -> None:
    (measurement,) = drill_simulated(top_speed(), Drill(99, 60e3), 0)
    assert measurement.problem == "job cannot have 99 tasks"
    assert not learn_drills([measurement]).restarts
    with pytest.raises(InvalidValue, match="failures of a drill"):
        Drill(4, 60e3, failures=0)
