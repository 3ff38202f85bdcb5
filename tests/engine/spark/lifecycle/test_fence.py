"""A restart asks before each of its effects, after any wait, whether it may still act."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rheostat.engine.spark.lifecycle import restart
from rheostat.engine.spark.lifecycle.checkpoint import Checkpoint
from rheostat.engine.spark.lifecycle.restart import Pipeline
from rheostat.errors import EngineError
from rheostat.job.allocation import Allocation

SMALL, LARGE = Allocation({"job": 2}), Allocation({"job": 6})


class Traced(Pipeline):
    """A pipeline whose query, checkpoint and waits only write a trace."""

    def __init__(self, trace: list[str], *, unmovable: bool, half: int) -> None:
        super().__init__(None, lambda _: lambda: None)  # type: ignore[arg-type, return-value]
        self.trace, self.unmovable, self.half = trace, unmovable, half
        self.allocation = SMALL
        self.confirm_claim = lambda: trace.append("claim")
        self.query = SimpleNamespace(stop=lambda: trace.append("effect: stop"), exception=lambda: None)  # type: ignore[assignment]

    # -- the checkpoint
    location = "memory:/checkpoint"
    done = 7

    @property
    def begun(self) -> int:
        self.half -= 1
        return 8 if self.half >= 0 else 7

    def repartition(self, *_: Any, **__: Any) -> None:
        self.trace.append("effect: repartition")
        if self.unmovable:
            raise EngineError("not this state")

    def roll_back(self, _: int) -> None:
        self.trace.append("effect: roll back")

    # -- the pipeline
    def _new_partitions(self, *_: Any) -> tuple[int, int]:
        return 4, 12

    def _build(self, allocation: Allocation) -> Any:
        self.trace.append("wait: build")
        return lambda: None

    def _start(self, allocation: Allocation, start: Any = None) -> None:
        if start is None:
            self._build(allocation)
        self.confirm_claim()
        self.trace.append("effect: start")

    def _await_first_batch(self) -> None:
        self.trace.append("wait: first batch")


@pytest.mark.parametrize("unmovable", [False, True])
@pytest.mark.parametrize("half", [0, 2])
def test_every_effect_follows_a_question_without_a_wait(
    monkeypatch: pytest.MonkeyPatch, unmovable: bool, half: int
) -> None:
    trace: list[str] = []
    pipeline = Traced(trace, unmovable=unmovable, half=half)
    monkeypatch.setattr(restart, "await_gap", lambda *_: trace.append("wait: batch"))
    monkeypatch.setattr(Checkpoint, "of", staticmethod(lambda *_: pipeline))

    def stopped() -> None:
        trace.append("wait: executors")

    pipeline._replace_query(LARGE, lambda name: trace.append("note"), stopped)
    effects = [place for place, what in enumerate(trace) if what.startswith("effect")]
    assert len(effects) >= 3
    for place in effects:
        since_wait: list[str] = []
        for what in reversed(trace[:place]):
            if what.startswith(("wait", "effect")):
                break
            since_wait.append(what)
        # What touches the checkpoint asks for the claim on it, too; undoing a journaled repartition asks only that.
        checkpoint = trace[place] != "effect: stop"
        asked = {"claim"} if trace[place] == "effect: roll back" else {"note", "claim"} if checkpoint else {"note"}
        assert asked <= set(since_wait), (trace[place], trace)
