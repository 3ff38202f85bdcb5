"""The diary of a driver."""

from pathlib import Path

from rheostat.lab.freeze.driver import Diary


def test_a_diary_is_read_while_its_driver_writes_it(tmp_path: Path) -> None:
    diary = Diary(tmp_path / "first.jsonl")
    assert diary.entries("batch") == []
    diary.note("batch", "run", 3)
    with diary.file.open("a") as lines:
        lines.write('{"event": "ba')  # killed here
    assert [(entry["text"], entry["batch"]) for entry in diary.entries("batch")] == [("run", 3)]
