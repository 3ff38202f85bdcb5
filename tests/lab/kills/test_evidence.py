"""What a kill has left of a repartition is read from the files of the checkpoint alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rheostat.lab.kills.evidence import Left, Stage, Undo, count_left, has_note, is_unfinished, read_left

WHOLE = {"batch": 3, "begun": 3, "old": 4, "new": 10}
UNFINISHED = {"batch": 3, "begun": 4, "old": 10, "new": 4}


def write(checkpoint: Path, note: dict[str, int] | None, *files: str) -> Path:
    texts = {f"{log}/{batch}": "" for log in ("offsets", "commits") for batch in range(4)}
    texts |= {"state/0/0/4.zip": "", "state/0/_metadata/metadata": "", "state/0/_metadata/v2/0": ""} | dict.fromkeys(
        files, ""
    )
    if note is not None:
        texts["rheostat/repartition"] = json.dumps(note)
    for name, text in texts.items():
        (checkpoint / name).parent.mkdir(parents=True, exist_ok=True)
        (checkpoint / name).write_text(text)
    return checkpoint


@pytest.mark.parametrize(
    ("note", "files", "stage", "undo"),
    [
        (None, ("offsets/4", "state/0/0/5.zip"), Stage.OVER, False),
        (WHOLE, (), Stage.NOTE, True),
        (WHOLE, (".offsets/4", "offsets/.4.crc", "state/0/0/.5.zip.crc", "state/0/0/4_ab.zip"), Stage.NOTE, True),
        (WHOLE, ("offsets/4",), Stage.OFFSETS, True),
        (WHOLE, ("offsets/4", "state/0/_metadata/v2/4"), Stage.STATE, True),
        (WHOLE, ("offsets/4", "state/0/7/5_0a-1b.zip"), Stage.STATE, True),
        (WHOLE, ("offsets/4", "state/0/7/5.changelog", "commits/4"), Stage.COMMITTED, False),
        (UNFINISHED, ("offsets/4",), Stage.NOTE, True),
        (UNFINISHED, ("offsets/4", "commits/4"), Stage.EMPTY_COMMIT, True),
        (UNFINISHED, ("offsets/4", "commits/4", "offsets/5"), Stage.OFFSETS, True),
        (UNFINISHED, ("offsets/4", "commits/4", "offsets/5", "commits/5"), Stage.COMMITTED, False),
    ],
)
def test_the_files_say_how_far_a_repartition_had_come(
    tmp_path: Path, note: dict[str, int] | None, files: tuple[str, ...], stage: Stage, undo: bool
) -> None:
    left = read_left(write(tmp_path, note, *files))
    assert (left.stage, left.needs_undo) == (stage, undo)
    assert has_note(tmp_path) == (note is not None)


def test_the_deletions_say_how_far_an_undoing_had_come(tmp_path: Path) -> None:
    files = ["commits/4", "state/0/0/6.zip", "state/0/1/6.zip", "state/0/_metadata/v2/5", "offsets/5"]
    before = read_left(write(tmp_path, UNFINISHED, "offsets/4", *files))
    assert before.added == frozenset(files)
    stages = []
    for file in (None, *files, "rheostat/repartition"):
        if file is not None:
            (tmp_path / file).unlink()
        stages.append(read_left(tmp_path).undo_since(before))
    assert stages == [Undo.BEGUN, Undo.COMMITS, Undo.STATE, Undo.STATE, Undo.OFFSETS, Undo.NOTE, Undo.OVER]
    assert count_left(tmp_path, before.added) == 0


def test_a_batch_with_offsets_and_no_commit_is_unfinished(tmp_path: Path) -> None:
    assert not is_unfinished(tmp_path)
    assert not is_unfinished(write(tmp_path, None))
    assert is_unfinished(write(tmp_path, None, "offsets/4"))


def test_a_missing_checkpoint_has_nothing_left(tmp_path: Path) -> None:
    assert read_left(tmp_path / "nowhere") == Left(None)
