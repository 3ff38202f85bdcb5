"""A simulated engine: flow with back pressure, micro-batches or real time, second by second, many replicas at once."""

from rheostat.engine.simulated.engine import FleetClock, SimulatedEngine
from rheostat.engine.simulated.fleet import Fleet
from rheostat.engine.simulated.microbatch.discipline import MicroBatch
from rheostat.engine.simulated.microbatch.scripted import ScriptedRun, simulated_run
from rheostat.engine.simulated.plant import Plant
from rheostat.engine.simulated.realtime.discipline import RealTime

__all__ = [
    "Fleet",
    "FleetClock",
    "MicroBatch",
    "Plant",
    "RealTime",
    "ScriptedRun",
    "SimulatedEngine",
    "simulated_run",
]
