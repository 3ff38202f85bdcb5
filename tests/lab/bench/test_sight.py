"""What the runs of `rheostat bench sight` come to."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from rheostat.lab.bench import sight
from rheostat.lab.bench.measure import Measure
from rheostat.lab.experiment.trial import Progress
from rheostat.lab.sight.run import Recording
from rheostat.lab.sight.scenario import Scenario
from rheostat.lab.sight.truth import Truth
from rheostat.lab.sight.windows import Window


def recorded(windows: tuple[Window, ...]) -> Recording:
    """Return a run of the spike in which every record is worked on a second after its arrival."""
    at_s = np.arange(1, 1801) / 10
    counts = np.cumsum(np.where((at_s > 60) & (at_s <= 120), 500.0, 50.0))
    processed_s = np.repeat(at_s, np.diff(counts, prepend=0.0).astype(int)) + 1.0
    return Recording(0.0, 180.0, Truth(at_s, counts, processed_s, at_s), windows, 400.0, 3, 0)


SEEN = tuple(
    Window(at_s, rate, backlog, 1.0, running=1)
    for at_s, rate, backlog in ((50.0, 500.0, 500.0), (85.0, 5000.0, 5000.0), (115.0, 5000.0, 5500.0))
)
BLIND = Window(70.0, problem="no batch has finished")
GROWS = Window(75.0, 5000.0, 5000.0, 1.0, target=4, decided_s=75.5)


def measures(monkeypatch: pytest.MonkeyPatch, quick: bool, *runs: Recording) -> dict[str, Measure]:
    played = iter(runs)

    def play(scenario: Scenario, progress: Progress) -> Recording:
        progress("plays")
        return next(played)

    monkeypatch.setattr(sight, "run_scenario", play)
    messages: list[str] = []
    by_name = {each.measure: each for each in sight.spike(quick, messages.append)}
    assert messages[0] == f"run 1 of {len(runs)}: plays"
    return by_name


def test_a_run_is_summed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    by_name = measures(monkeypatch, True, recorded((SEEN[0], BLIND, GROWS, *SEEN[1:])))
    assert by_name["reaction_s"].value == pytest.approx(15.5, abs=0.01)
    assert by_name["reaction_s"].met is False
    assert by_name["reaction_s"].note == "from 1 to a decision for 4 executors; runs: 15.5"
    assert by_name["blind_share"].value == 0.25
    assert by_name["backlog_error"].value == pytest.approx(0.0, abs=1e-6)
    assert by_name["backlog_error_worst"].value == pytest.approx(0.1)
    assert by_name["backlog_error_worst"].met
    assert by_name["rate_error"].value == pytest.approx(0.0, abs=0.01)
    assert by_name["unseen_share"].value == 0.2
    assert by_name["executor_s"].note == "in 180 s; 3 s over a lag of 15 s"


def test_the_middle_run_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    waits_s = (8.0, 30.0, 9.0, 10.0, 11.0)
    runs = [recorded((SEEN[0], replace(GROWS, at_s=60.0 + wait_s, decided_s=None))) for wait_s in waits_s]
    reaction = measures(monkeypatch, False, *runs)["reaction_s"]
    assert reaction.value == pytest.approx(10.0, abs=0.01)
    assert reaction.met
    assert reaction.note.endswith("runs: 8, 30, 9, 10, 11")


def test_without_a_decision_the_goal_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    reaction = measures(monkeypatch, True, recorded(SEEN))["reaction_s"]
    assert (reaction.value, reaction.met) == (math.inf, False)


def test_without_windows_every_goal_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    by_name = measures(monkeypatch, True, recorded(()))
    with_goal = [each for each in by_name.values() if each.goal]
    assert len(with_goal) == 6
    assert [each.met for each in with_goal] == [False] * 6


def test_without_a_spike_at_the_broker_there_is_no_reaction(monkeypatch: pytest.MonkeyPatch) -> None:
    run = recorded((GROWS,))
    flat = replace(run, truth=replace(run.truth, counts=np.cumsum(np.full(1800, 50.0))))
    by_name = measures(monkeypatch, True, flat)
    assert by_name["reaction_s"].met is False
    assert by_name["blind_share"].met is False


def test_other_loads_have_names_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sight, "run_scenario", lambda scenario, progress: recorded(SEEN))
    names = {each.measure for part in (sight.steps, sight.files) for each in part(True, lambda _: None)}
    assert {"backlog_error_steps", "lag_error_s_files"} <= names
