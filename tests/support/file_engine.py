"""A job that outlives its controller: its state is a file. Run as a script it is a controller that gets killed.

    python file_engine.py JOURNAL STATE KILL_AT

KILL_AT names the moment at which the process sends itself SIGKILL: before or after a note of `apply`, or never.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from step_clock import StepClock

from rheostat.control.controller import IMMEDIATE, Controller
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Reason
from rheostat.job.graph import Edge, Graph, JobSpec, Pinned, Tunable
from rheostat.job.observation import Change, Observation, OperatorReading, SourceReading
from rheostat.job.record import Intent
from rheostat.job.slo import Bounds
from rheostat.journal import open_journal
from rheostat.ports import Note, Policy, Situation

SPEC = JobSpec(
    "files",
    Graph(("source", "map"), (Edge("source", "map"),), ("source",)),
    (Tunable("map", Bounds(1, 50)),),
    (Pinned("source", 1, "a file"),),
)


class FileEngine:
    """Stops (writes `stopped`), then starts (writes the new tasks); each is one atomic rename."""

    def __init__(self, path: Path, clock: StepClock, kill_at: str = "never") -> None:
        self.path, self.clock, self.kill_at = path, clock, kill_at
        if not path.exists():
            self.write({"tasks": 2, "stopped": False, "starts": 0})

    def read(self) -> dict[str, int]:
        state: dict[str, int] = json.loads(self.path.read_text())
        return state

    def write(self, state: dict[str, int | bool]) -> None:
        draft = self.path.with_suffix(".new")
        draft.write_text(json.dumps(state))
        draft.replace(self.path)

    def die_if(self, moment: str) -> None:
        if self.kill_at == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    def describe(self) -> JobSpec:
        return SPEC

    def observe(self) -> Observation:
        state, now = self.read(), self.clock.now()
        running = Allocation({"map": state["tasks"]})
        return Observation(
            now,
            max(0.0, now - 60.0),
            now,
            running,
            running,
            Change.NONE,
            sources=(SourceReading("source", 100.0, 0.0, 0.0),),
            operators=(OperatorReading("map", state["tasks"], 100.0, 0.5, 100.0),),
            problem="stopped" if state["stopped"] else None,
        )

    def apply(self, intent: Intent, note: Note) -> None:
        state, wanted = self.read(), intent.target.tasks["map"]
        if state["tasks"] == wanted and not state["stopped"]:
            return
        self.die_if("before stop")
        note("stop")
        self.die_if("noted stop")
        self.write({**state, "stopped": True})
        self.die_if("stopped")
        note("start")
        self.die_if("noted start")
        self.write({"tasks": wanted, "stopped": False, "starts": state["starts"] + 1})
        self.die_if("started")


@dataclass(frozen=True)
class Seven(Policy[None]):
    """Wants seven tasks, once."""

    name: ClassVar[str] = "seven"

    def decide(self, situation: Situation[None]) -> Decision:
        if situation.memo.get("asked"):
            return Decision.hold(Reason.STEADY, "asked before", memo=situation.memo)
        return Decision(Allocation({"map": 7}), Reason.UNDER_PROVISIONED, "seven", memo={"asked": True})


def main(journal: str, state: str, kill_at: str) -> None:
    clock = StepClock()
    controller = Controller(
        FileEngine(Path(state), clock, kill_at), Seven(), open_journal(journal), clock, pace=IMMEDIATE
    )
    controller.start()
    controller.step()


if __name__ == "__main__":
    main(*sys.argv[1:])
