"""Changes and restarts, counted in a journal."""

from __future__ import annotations

from pathlib import Path

import pytest

from rheostat.errors import PolicyError
from rheostat.job.decision import Decision, Reason
from rheostat.job.record import Ending, IntentEnd, IntentStep
from rheostat.journal import open_journal
from rheostat.lab.soak.changes import Changes, count_changes, journal_mb, raise_failure


def test_changes_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    journal = open_journal(str(path))
    lease = journal.acquire("job", "me", 60.0)
    steps = ("request 2 executors", "stop after a batch", 'repartition {"batch": 3}', "start with job=3")
    journal.append(lease, 1, [IntentStep("a", name, 1.0) for name in steps])
    journal.append(lease, 1, [IntentEnd("a", 2.0, Ending.DONE, None), IntentEnd("b", 3.0, Ending.PARTIAL, None)])
    journal.close()
    assert count_changes(path, "job") == Changes(done=1, restarts=1, repartitions=1)
    assert count_changes(path, "another") == Changes(0, 0, 0)
    assert journal_mb(path) > 0.001
    raise_failure(path, "job")


def test_a_failure_of_the_policy_is_raised(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    journal = open_journal(str(path))
    journal.append(journal.acquire("job", "me", 60.0), 4, [Decision.hold(Reason.NO_POLICY, "restless failed: no")])
    journal.close()
    with pytest.raises(PolicyError, match=r"restless failed: no \(step 4\)"):
        raise_failure(path, "job")


def test_without_a_journal_there_are_no_changes(tmp_path: Path) -> None:
    assert count_changes(tmp_path / "journal.db", "job") == Changes(0, 0, 0)
    assert not (tmp_path / "journal.db").exists()
