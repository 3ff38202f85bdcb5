"""Counts are compared key by key; files of the input arrive whole."""

from __future__ import annotations

import json
from pathlib import Path

from rheostat.lab.kills.job import Format, Place, wrong_keys


def test_a_key_is_wrong_with_another_count_missing_twice_there_or_never_sent() -> None:
    sent = [("right", 1), ("other", 2), ("missing", 3), ("twice", 4), ("torn", 5)]
    counted = [("right", 1), ("other", 3), ("twice", 4), ("twice", 4), ("torn", 5), ("torn", 2), ("new", 1)]
    assert wrong_keys(counted, sent) == {"other", "missing", "twice", "torn", "new"}
    assert wrong_keys(sent, sent) == set()


def test_files_have_names_of_their_own_and_say_how_long_their_batch_pauses(tmp_path: Path) -> None:
    place = Place(tmp_path, Format(1, True, False))
    place.send(2)
    place.send(pause_ms=50)
    assert [file.read_text() for file in sorted(place.input.iterdir())] == ["0 0", "1 0", "2 50"]


def test_a_copied_query_has_an_id_of_its_own(tmp_path: Path) -> None:
    place = Place(tmp_path / "one", Format(1, True, True))
    place.send()
    place.checkpoint.mkdir()
    (place.checkpoint / "metadata").write_text('{"id": "first"}')
    (place.checkpoint / ".metadata.crc").write_text("")
    copy = place.copy_to(tmp_path / "two")
    assert [file.name for file in copy.input.iterdir()] == ["0000.txt"]
    assert [file.name for file in copy.checkpoint.iterdir()] == ["metadata"]
    assert json.loads((copy.checkpoint / "metadata").read_text())["id"] != "first"


def test_both_shapes_change_the_number_of_partitions() -> None:
    grows, shrinks = Format(2, False, True), Format(2, False, False)
    assert (grows.new_partitions, shrinks.new_partitions) == (10, 4)
    assert str(shrinks) == "format 2, snapshots, unfinished batch"
