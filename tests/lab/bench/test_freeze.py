"""What the rounds of `rheostat bench freeze` come to."""

from __future__ import annotations

import pytest

from rheostat.lab.bench import freeze
from rheostat.lab.freeze.round import Round


def test_violations_of_all_rounds_are_counted_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = [Round(None, False, 0, 0, 0, True, "beside"), Round(4.0, True, 0, 2, 3, False, "late")]
    played = iter(rounds * 2)
    monkeypatch.setattr(freeze, "freeze_python", lambda mode, hold_s, *, killed: next(played))
    messages: list[str] = []
    measures = {each.measure: each for each in freeze.python(True, messages.append, rounds=2)}
    assert {name: each.value for name, each in measures.items() if name.endswith("_realtime")} == {
        "started_beside_realtime": 1,
        "rounds_realtime": 2,
        "late_take_overs_realtime": 1,
        "committed_twice_realtime": 2,
        "keys_wrong_realtime": 3,
    }
    assert measures["started_beside_microbatch"].note == "beside"
    assert measures["started_beside_microbatch"].met is False
    assert "microbatch, Python frozen: round 1 of 2: beside" in messages


def test_take_overs_are_summed_up_over_the_rounds_that_had_one(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = iter([21.0, None, 33.0] * 2)

    def play(mode: str, freeze_s: float, *, same_journal: bool, wake_s: float | None = None) -> Round:
        assert 25.0 <= freeze_s <= 90.0
        assert wake_s is None or 0.0 <= wake_s <= 5.0
        return Round(next(waits), False, 1, 0, 0, False, "")

    monkeypatch.setattr(freeze, "freeze_driver", play)
    measures = {each.measure: each for each in freeze.driver(False, lambda _: None, rounds=3)}
    assert measures["take_over_s_microbatch"].value == 27.0
    assert measures["take_over_s_microbatch"].note == "median of 2, the worst 33.0; lease 25 s"
    assert measures["woken_commits_realtime"].value == 3
