"""A simulated engine: fluid flow, second by second, many replicas of one job at once in numpy arrays."""

from rheostat.engine.simulated.engine import FleetClock, SimulatedEngine
from rheostat.engine.simulated.fleet import Fleet
from rheostat.engine.simulated.plant import Plant
from rheostat.engine.simulated.testbed import SimulatedTestbed

__all__ = ["Fleet", "FleetClock", "Plant", "SimulatedEngine", "SimulatedTestbed"]
