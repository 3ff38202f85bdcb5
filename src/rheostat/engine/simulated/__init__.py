"""A simulated engine: many replicas of one plant at once, second by second, under one of three disciplines.

| file | what it is |
|---|---|
| `plant.py`, `curves.py` | the true parameters of a job, most of which its engine never shows |
| `discipline.py` | the interface between a plant and its execution model |
| `draws.py` | loads, capacities and drift of a seed: the same for a fleet and for the oracle |
| `fleet.py` | time, loads, noise, failures, history and trace of all replicas; `Replicas` simulate the discipline |
| `engine.py` | the parts common to the engines of all disciplines; the fleet's clock |
| `flow/` | fluid flow with back pressure, as in Flink |
| `microbatch/`, `realtime/` | Spark's two modes; both use `arrivals.py` |
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
