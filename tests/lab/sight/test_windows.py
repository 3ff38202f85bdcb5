"""Windows from journaled records."""

from __future__ import annotations

from pathlib import Path

from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Reason
from rheostat.job.observation import Observation, SourceReading
from rheostat.job.record import Intent, IntentStep, Record
from rheostat.journal import open_journal
from rheostat.lab.sight.windows import Window, read_windows

ONE, FOUR = Allocation({"job": 1}), Allocation({"job": 4})


def seen(at_s: float, *sources: SourceReading, problem: str | None = None) -> Observation:
    return Observation(at_s, at_s - 30, at_s, ONE, ONE, sources=sources, problem=problem)


def journal(folder: Path, steps: list[list[Record]]) -> Path:
    file = folder / "journal.db"
    book = open_journal(file)
    lease = book.acquire("views", "here", 60.0)
    for number, records in enumerate(steps):
        book.append(lease, number, records)
    book.close()
    return file


def test_a_window_is_what_was_seen_and_what_was_decided(tmp_path: Path) -> None:
    intent = Intent("1@20", 1, 20.0, FOUR, ONE)
    file = journal(
        tmp_path,
        [
            [seen(10.0, problem="no batch has finished"), Decision.hold(Reason.UNUSABLE, "")],
            [
                seen(20.0, SourceReading("job", 5000.0, 700.0, 3.0, 19.5)),
                Decision(FOUR, Reason.UNDER_PROVISIONED, ""),
                intent,
            ],
            [IntentStep(intent.id, "request 4 executors", 20.25), IntentStep(intent.id, "wait", 20.5)],
            [seen(30.0, SourceReading("job", 5000.0)), Decision.hold(Reason.STEADY, "")],
        ],
    )
    assert read_windows(file) == [
        Window(10.0, problem="no batch has finished", running=1),
        Window(20.0, 5000.0, 700.0, 3.0, 19.5, target=4, decided_s=20.25, running=1),
        Window(30.0, 5000.0, running=1),
    ]


def test_a_journal_without_records_has_no_windows(tmp_path: Path) -> None:
    assert read_windows(journal(tmp_path, [])) == []
