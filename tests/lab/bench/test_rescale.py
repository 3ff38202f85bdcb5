"""What kills over a repartition come to."""

from __future__ import annotations

from collections import Counter

import pytest

from rheostat.lab.bench import rescale
from rheostat.lab.kills.run import Kills

GOOD = Kills(20, 20, 31, 0, Counter({"move: committed": 4, "roll-back: some state deleted": 9}), ())


def test_a_quick_run_has_two_kills_of_either_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def run(kills: int, formats: tuple[object, ...], progress: object) -> Kills:
        asked.append((kills, len(formats)))
        return GOOD

    monkeypatch.setattr(rescale, "run_kills", run)
    for quick in (True, False):
        measures = rescale.kills(quick, lambda _: None)
        names = ["kills_move", "kills_undo", "keys_wrong", "stages_hit", "undone"]
        assert [measure.measure for measure in measures] == names
    assert asked == [(2, 2), (20, 8)]


def test_the_stages_are_counted_and_listed() -> None:
    by_name = {measure.measure: measure for measure in rescale.kill_measures(GOOD, 20)}
    assert by_name["stages_hit"].value == 2
    assert by_name["stages_hit"].note == "move: committed 4, roll-back: some state deleted 9"
    assert all(measure.met in (True, None) for measure in by_name.values())


def test_wrong_keys_and_missed_kills_miss_their_goals() -> None:
    bad = Kills(19, 3, 20, 7, Counter({"move: committed": 1}), ("format 1, changelog: 7 keys wrong",))
    by_name = {measure.measure: measure for measure in rescale.kill_measures(bad, 20)}
    assert [by_name[name].met for name in ("kills_move", "kills_undo", "keys_wrong")] == [False, False, False]
    assert by_name["undone"].note == "format 1, changelog: 7 keys wrong"
