"""A real-time change whose executors were refused is requested again, not taken for applied."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rheostat.engine.spark.realtime import RealTimeEngine
from rheostat.errors import EngineError
from rheostat.job.allocation import Allocation
from rheostat.job.record import Intent


def test_a_refused_request_is_made_again_with_the_same_intent() -> None:
    running, target = Allocation({"count": 2}), Allocation({"count": 6})
    requests: list[int] = []
    restarts: list[Any] = []

    def request(slots: int, _: Any) -> None:
        requests.append(slots)
        if len(requests) == 1:
            raise EngineError("the cluster manager did not acknowledge")

    engine: Any = object.__new__(RealTimeEngine)
    engine._applied, engine._target = "", None
    engine.pipeline = SimpleNamespace(
        activity="",
        failure=None,
        downtime_s=None,
        allocation=running,
        restart=lambda *arguments, **_: restarts.append(arguments),
    )
    engine.slots = SimpleNamespace(most=9, available=lambda: 3, request=request)
    engine._with_pinned, engine.check_slots = (lambda allocation: allocation), (lambda *_: None)
    engine.slots_needed, engine.telemetry = (lambda _: 7), SimpleNamespace(state_rows=0)
    intent = Intent("3@60", 3, 60.0, target, running)
    with pytest.raises(EngineError, match="did not acknowledge"):
        engine.apply(intent, lambda _: None)
    engine.apply(intent, lambda _: None)
    assert requests == [7, 7]
    assert len(restarts) == 1
    engine.apply(intent, lambda _: None)
    assert len(restarts) == 1, "the same intent again changes nothing"
