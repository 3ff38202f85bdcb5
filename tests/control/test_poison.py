"""Whatever an engine, a policy, a testbed or a forecaster returns and whatever a journal holds, a controller goes on.

An example poisons some turns of a live controller, then records in the SQLite file, and restarts on it. No step raises,
no start fails, the next clean windows are usable and lead to a decision, and memory is the fold of the journal.
RHEOSTAT_POISONS in the environment sets the number of examples.
"""

from __future__ import annotations

import copy
import json
import logging
import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rheostat.control import controller as loop
from rheostat.control.controller import IMMEDIATE, Controller
from rheostat.control.memory import remember
from rheostat.job.decision import Decision, Measurement, Phase, Reason, Trial
from rheostat.job.forecast import Forecast, ForecastChoice
from rheostat.job.frozen import to_json
from rheostat.job.graph import JobSpec
from rheostat.job.guards import Guards
from rheostat.job.observation import Change, Observation, Status
from rheostat.job.record import KINDS, Intent, Record
from rheostat.job.slo import SLO
from rheostat.journal.sql import SqlJournal
from rheostat.policy.conttune.policy import ContTune
from rheostat.policy.ds2 import DS2
from rheostat.ports import Note, Policy, Situation
from rheostat.testing.situations import window, word_count

EXAMPLES = int(os.environ.get("RHEOSTAT_POISONS", "400"))
TURNS = 6
CLEAN_TURNS = 3
START_S = 1e6
TRIAL = Trial("a trial", window(word_count(), 1.0, 4, 1.0).running, (Phase(10.0, {"lines": 5.0}, observed=True),))  # type: ignore[arg-type]


class Mute:
    """An object that can be neither printed nor compared."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparison")

    __hash__ = None  # type: ignore[assignment]


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no message")


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


NUMBERS = st.sampled_from(
    (0, -1, 1, 7, 2**31, 2**63, 10**18, 10**400, -(10**400), 10**5000, 0.5, -0.0, 5e-324, 1e18, 1e300, -1e308)
) | st.sampled_from((float("nan"), float("inf"), float("-inf"), True, False))
TEXTS = st.sampled_from(
    ("", "many", "\ud800", "a\x00b", "\x1b[2J\r\n\x7f", "x" * 70_000, "NaN", "Infinity", "1e5", "7", "split", "点")
) | st.text(st.characters(), max_size=5)
ENUMS = st.sampled_from([*Change, *Status, *Reason])
ODD = st.sampled_from([None, object, object(), Mute(), b"\xff", 3j, {1, 2}, range(3), nested(60), nested(5000), len])
JUNK: st.SearchStrategy[Any] = st.recursive(
    NUMBERS | TEXTS | ENUMS | ODD | st.floats() | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers() | st.sampled_from(["split", "count"]), inner, max_size=3)
    ),
    max_leaves=5,
)
ERRORS = st.sampled_from(
    (ValueError("\ud800"), MuteError(), ZeroDivisionError("x\x00" * 9000), KeyError(Mute()), OSError(28, "\udcff"))
) | st.sampled_from((RecursionError("deep"), StopIteration(), AssertionError()))

Draw = Callable[[st.SearchStrategy[Any]], Any]


def poisoned(draw: Draw, value: Any, inside: bool = False) -> Any:
    """Return the value with junk in one place: a field, an item, or all of it."""
    if is_dataclass(value) and not isinstance(value, type) and (not inside or draw(st.integers(0, 3))):
        name = draw(st.sampled_from([f.name for f in fields(value)]))
        changed = copy.copy(value)
        object.__setattr__(changed, name, poisoned(draw, getattr(value, name), inside=True))
        return changed
    if isinstance(value, tuple) and value and draw(st.integers(0, 3)):
        place = draw(st.integers(0, len(value) - 1))
        return (*value[:place], poisoned(draw, value[place], inside=True), *value[place + 1 :])
    if isinstance(value, Mapping) and value and draw(st.integers(0, 3)):
        name = draw(st.sampled_from(sorted(value)))
        return {**value, name: poisoned(draw, value[name], inside=True)}
    if (value is None or isinstance(value, int | float)) and draw(st.booleans()):
        return draw(NUMBERS)
    return draw(JUNK)


@dataclass
class Poison:
    """What is poisoned in this turn: these places return something wrong, or raise."""

    draw: Draw
    places: tuple[str, ...] = ()

    def __call__(self, place: str, value: Any) -> Any:
        if place not in self.places:
            return value
        # Knowledge of the right type with wrong numbers is the policy's own: it may compute from them what it likes.
        ways = ["part", "part", "part", "twice", "all", "raise"] if place != "learn" else ["all", "raise"]
        what = self.draw(st.sampled_from(ways))
        if what == "raise":
            raise self.draw(ERRORS)
        if what == "all":
            return self.draw(JUNK)
        value = poisoned(self.draw, value)
        return poisoned(self.draw, value) if what == "twice" else value


class Job:
    """A clock and an engine whose changes take effect at once."""

    def __init__(self, name: str, poison: Poison) -> None:
        self.spec, self.poison = replace(word_count(), name=name), poison
        self.tasks = {"split": 4, "count": 4}
        self.passed_s = 0.0

    def now(self) -> float:
        return START_S + self.passed_s

    def monotonic(self) -> float:
        return self.passed_s

    def sleep(self, seconds: float) -> None:
        self.passed_s += max(0.0, seconds)

    def describe(self) -> JobSpec:
        spec: JobSpec = self.poison("describe", self.spec)
        return spec

    def observe(self) -> Observation:
        seen = window(self.spec, 900.0, self.tasks, 300.0, at_s=self.now())
        spoilt: Observation = self.poison("observe", seen)
        return spoilt

    def apply(self, intent: Intent, note: Note) -> None:
        for name, tasks in intent.target.tasks.items():
            note(self.poison("note", f"{name} {tasks}"))
            self.tasks[name] = tasks

    def measure(self, trial: Trial) -> Measurement:
        seen = window(self.spec, 900.0, 4, 300.0, at_s=self.now())
        measurement: Measurement = self.poison("measure", Measurement(trial, seen, 10.0, 80.0))
        return measurement


class Sick(Policy[Any]):
    """A real policy whose answers are poisoned."""

    def __init__(self, well: Policy[Any], poison: Poison) -> None:
        self.well, self.poison = well, poison
        self.name = well.name  # type: ignore[misc]

    def options(self) -> Mapping[str, Any]:
        return self.well.options()

    def factor(self) -> tuple[str, float | None]:
        return self.well.factor()

    def initial(self) -> Any:
        return self.well.initial()

    def learn(self, knowledge: Any, record: Record) -> Any:
        return self.poison("learn", self.well.learn(knowledge, record))

    def decide(self, situation: Situation[Any]) -> Decision:
        decision = self.well.decide(situation)
        if "measure" in self.poison.places:
            decision = replace(decision, trials=(TRIAL,))
        spoilt: Decision = self.poison("decide", decision)
        return spoilt


POLICIES: Mapping[str, Callable[[], Policy[Any]]] = {"ds2": DS2, "conttune": ContTune}
OBJECTIVES = (SLO(), SLO(max_recovery_s=120.0), SLO(max_latency_s=5.0, max_lag_s=60.0))
PLACES = ["observe", "describe", "decide", "learn", "measure", "note", "choice", "forecast"]


class Home:
    """One SQLite file for all examples; every example is a job of its own."""

    def __init__(self, folder: Path) -> None:
        self.path, self.jobs, self.passed_s = folder / "journal.db", 0, 0.0
        self.journal = SqlJournal(self.path, wall=lambda: self.passed_s)
        self.raw = sqlite3.connect(self.path, isolation_level=None)

    def next_job(self) -> str:
        self.jobs += 1
        return f"word-count-{self.jobs}"

    def poison_records(self, draw: Draw, job: str) -> None:
        """Change some records of a job in the file."""
        numbers = [row[0] for row in self.raw.execute("SELECT number FROM record WHERE job = ?", (job,))]
        for number in draw(st.lists(st.sampled_from(numbers), max_size=4)):
            row = self.raw.execute("SELECT kind, body FROM record WHERE number = ?", (number,)).fetchone()
            column, value = draw(mutations(*row)) if row else ("", None)
            if not column:
                self.raw.execute("DELETE FROM record WHERE number = ?", (number,))
            else:
                self.raw.execute(f"UPDATE record SET {column} = ? WHERE number = ?", (value, number))


JSON_JUNK: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.sampled_from([0, -1, 1, 7, 10**18, 10**400, 0.5, 1e300, -1e300, 5e-324, "NaN", "Infinity", "-Infinity"])
    | st.sampled_from(["", "many", "a\x00b", "done", "failed", "down", "recovering", "under way", "ds2"])
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["split", "count", "x"]), inner),
    max_leaves=5,
)


@st.composite
def mutations(draw: Draw, kind: str, body: Any) -> tuple[str, Any]:
    """Draw a column and its new value; an empty column deletes the record."""
    how = draw(st.sampled_from(["part", "part", "part", "cut", "junk", "kind", "column", "delete", "bytes"]))
    if how == "delete":
        return "", None
    if how == "kind":
        return "kind", draw(st.sampled_from([*KINDS, "unheard of", "", "\x00"]))
    if how == "column":
        columns = [("step", -1), ("step", 2**62), ("step", "x"), ("at_s", None), ("at_s", "soon")]
        changed: tuple[str, Any] = draw(st.sampled_from(columns))
        return changed
    if how == "bytes" or not isinstance(body, str):
        return "body", draw(st.sampled_from([b"\xff\x00", b"{}", 7, "", "\x00"]))
    if how == "cut":
        return "body", body[: draw(st.integers(0, len(body)))]
    if how == "junk":
        return "body", json.dumps(draw(JSON_JUNK))
    try:
        value = json.loads(body)
    except ValueError:
        return "body", "{}"
    if kind == "snapshot" and isinstance(value, dict) and draw(st.integers(0, 2)):
        part = draw(st.sampled_from(["state", "knowledge"]))
        if isinstance(value.get(part), str):
            return "body", json.dumps({**value, part: _changed_text(draw, value[part])})
    return "body", json.dumps(_changed(draw, value))


def _changed_text(draw: Draw, text: str) -> str:
    try:
        return json.dumps(_changed(draw, json.loads(text)))
    except ValueError:
        return text[1:]


def _changed(draw: Draw, value: Any) -> Any:
    """Return a JSON value with one part replaced, removed or added."""
    if isinstance(value, dict) and value and draw(st.integers(0, 5)):
        name = draw(st.sampled_from(sorted(value)))
        how = draw(st.integers(0, 7))
        if how == 0:
            return {key: item for key, item in value.items() if key != name}
        if how == 1:
            return {**value, "unheard_of": draw(JSON_JUNK)}
        return {**value, name: _changed(draw, value[name])}
    if isinstance(value, list) and value and draw(st.integers(0, 5)):
        place = draw(st.integers(0, len(value) - 1))
        return [*value[:place], _changed(draw, value[place]), *value[place + 1 :]]
    return draw(JSON_JUNK)


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    logging.getLogger("rheostat").setLevel(logging.CRITICAL)  # thousands of warnings
    with tempfile.TemporaryDirectory() as folder:
        opened = Home(Path(folder))
        yield opened
        opened.raw.close()
        opened.journal.close()
    logging.getLogger("rheostat").setLevel(logging.NOTSET)


def control(home: Home, job: Job, policy: Policy[Any], slo: SLO, live: bool) -> Controller[Any]:
    pace = replace(IMMEDIATE, snapshot_every=3)
    guards = Guards() if live else Guards(cooldown_down_s=0.0, shrink_after_s=0.0)
    return Controller(job, policy, home.journal, job, slo=slo, guards=guards, pace=pace, testbed=job)


@settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_poison_stops_no_step_and_no_start(home: Home, data: st.DataObject) -> None:
    run_example(home, data.draw)


def run_example(home: Home, draw: Draw) -> None:
    poison = Poison(draw)
    job = Job(home.next_job(), poison)
    make, slo = POLICIES[draw(st.sampled_from(sorted(POLICIES)))], draw(st.sampled_from(OBJECTIVES))
    live = control(home, job, Sick(make(), poison), slo, draw(st.booleans()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "run_backtest", lambda *_: poison("choice", ForecastChoice(job.now())))
        patch.setattr(loop, "backtest_is_due", lambda *_: "choice" in poison.places)
        quantiles = (0.1, 0.5, 0.9)
        flat = Forecast(job.now(), 60.0, quantiles, ((900.0, 900.0, 900.0),) * 3)
        patch.setattr(loop, "forecast_load", lambda *_: poison("forecast", replace(flat, at_s=job.now())))
        poison.places = draw(st.sampled_from([(), (), ("learn",)]))
        live.start()
        for _ in range(draw(st.integers(1, TURNS))):
            job.passed_s += 60.0
            poison.places = draw(st.tuples(st.sampled_from(PLACES), st.sampled_from(PLACES)))
            live.step()
        poison.places = draw(st.sampled_from([(), (), ("learn",)]))
        if draw(st.booleans()):
            live.stop()
        poison.places = ()
        home.poison_records(draw, job.spec.name)
        home.passed_s += 1000.0  # the lease has ended
        again = control(home, job, make(), slo, True)
        again.start()
        steps = []
        for _ in range(CLEAN_TURNS):
            job.passed_s += 60.0
            steps.append(again.step())
    assert steps[-1].problem is None
    assert steps[-1].observation.usable, steps[-1].observation.problem
    decided = any(step.decision.reason is not Reason.NO_POLICY for step in steps)
    assert decided, steps[-1].decision.sentence
    assert to_json((again.state, again.knowledge)) == to_json(remember(home.journal, again.mind))
    again.stop()
