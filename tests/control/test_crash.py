"""A controller killed with SIGKILL in the middle of a change: the next one finishes it, exactly once."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import file_engine
import pytest
from step_clock import StepClock

from rheostat.control.controller import IMMEDIATE, Controller
from rheostat.errors import LeaseRefused
from rheostat.job.allocation import Allocation
from rheostat.job.record import Ending, Intent, IntentEnd
from rheostat.journal.sql import SqlJournal

SCRIPT = Path(file_engine.__file__)


@pytest.mark.parametrize("moment", ["before stop", "noted stop", "stopped", "noted start", "started", "never"])
def test_a_killed_controllers_change_is_finished(tmp_path: Path, moment: str) -> None:
    database, state = tmp_path / "journal.db", tmp_path / "state.json"
    child = subprocess.run([sys.executable, str(SCRIPT), str(database), str(state), moment], check=False)
    assert child.returncode == (0 if moment == "never" else -signal.SIGKILL)

    # Nobody lets go of a dead one's lease: it holds until it expires.
    clock = StepClock(200.0)
    engine = file_engine.FileEngine(state, clock)
    journal = SqlJournal(str(database))
    with pytest.raises(LeaseRefused):
        Controller(engine, file_engine.Seven(), journal, clock, pace=IMMEDIATE).start()
    journal.close()

    journal = SqlJournal(str(database), wall=lambda: time.time() + 120.0)
    with Controller(engine, file_engine.Seven(), journal, clock, pace=IMMEDIATE) as heir:
        for _ in range(3):
            clock.sleep(60.0)
            heir.step()
    records = [entry.record for entry in journal.read("files")]
    assert engine.read() == {"tasks": 7, "stopped": False, "starts": 1}
    assert len([r for r in records if isinstance(r, Intent)]) == 1
    (end,) = [r for r in records if isinstance(r, IntentEnd)]
    assert (end.ending, end.running) == (Ending.DONE, Allocation({"map": 7}))
    journal.close()
