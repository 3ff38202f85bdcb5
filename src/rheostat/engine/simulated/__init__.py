"""A simulated engine: many replicas of one plant at once, second by second, under one of three disciplines.

| file | what it is |
|---|---|
| `plant.py`, `curves.py` | everything that is true of a job, most of which its engine never shows |
| `discipline.py` | what a plant asks the way in which its job works |
| `fleet.py` | time, loads, noise, failures, history and trace of all replicas; `Replicas`, which play the discipline |
| `engine.py` | what the engines of all disciplines share; the fleet's clock |
| `flow/` | fluid flow with back pressure, as Flink has it |
| `microbatch/`, `realtime/` | Spark's two modes; `arrivals.py` is for both |
"""

from rheostat.engine.simulated.engine import FleetClock, SimulatedEngine
from rheostat.engine.simulated.fleet import Fleet
from rheostat.engine.simulated.flow.replicas import FlowReplicas
from rheostat.engine.simulated.microbatch.discipline import MicroBatch
from rheostat.engine.simulated.microbatch.replicas import MicroBatchReplicas
from rheostat.engine.simulated.microbatch.scripted import ScriptedRun, simulated_run
from rheostat.engine.simulated.plant import Plant
from rheostat.engine.simulated.realtime.discipline import RealTime
from rheostat.engine.simulated.realtime.replicas import RealTimeReplicas

__all__ = [
    "Fleet",
    "FleetClock",
    "FlowReplicas",
    "MicroBatch",
    "MicroBatchReplicas",
    "Plant",
    "RealTime",
    "RealTimeReplicas",
    "ScriptedRun",
    "SimulatedEngine",
    "simulated_run",
]
