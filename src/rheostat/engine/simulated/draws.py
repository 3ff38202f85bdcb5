"""The random numbers of a simulated run, and what drifts with time: the same for a fleet and for the oracle.

Generators are keyed by (seed, purpose, moment), so anybody who knows the seed can draw the same load, capacities and
downtimes without simulating the job.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rheostat.engine.simulated.plant import Plant

Floats = NDArray[np.float64]

BLOCK_S = 512
"""Seconds of load per draw."""
PERIODS = 64
"""Noise periods per draw."""
LOAD, CAPACITY, RESTART, FAILURE, METRICS, BATCHES = range(1, 7)
"""Purposes of random numbers."""


class LoadShape(Protocol):
    """The interface of a load: see `engine/testbed/loads.py`."""

    @property
    def noise(self) -> float:
        """Return the share by which rates scatter evenly, drawn every second."""

    def level(self, t_s: Floats) -> Floats:
        """Return one level per second (times the unit rates), or sources x seconds of records/s."""


def generator(seed: int, purpose: int, moment: int) -> np.random.Generator:
    """Return the generator for one purpose at one moment."""
    return np.random.default_rng([seed, purpose, moment])


def shape_rates(plant: Plant, load: LoadShape, block: int) -> Floats:
    """Return the rates of one block before noise: seconds x sources."""
    level = load.level(np.arange(block * BLOCK_S, (block + 1) * BLOCK_S, dtype=float))
    units = np.array([[plant.unit_per_s[name]] for name in plant.graph.sources])
    rates: Floats = (level * units).T if level.ndim == 1 else level.T
    return rates


def add_noise(rates: Floats, noise: float, seed: int, block: int) -> Floats:
    """Return the rates of one block with the noise of a seed."""
    if not noise:
        return rates
    even = generator(seed, LOAD, block).random((BLOCK_S, 1))
    noisy: Floats = rates * (1.0 + noise * (2.0 * even - 1.0))
    return noisy


def draw_capacities(plant: Plant, seed: int, block: int) -> Floats:
    """Return the factors on the nominal capacities in one block of noise periods: periods x operators."""
    operators = [plant.operator(name) for name in plant.graph.operators]
    factors = np.ones((PERIODS, len(operators)))
    if any(operator.noise for operator in operators):
        sd = np.array([operator.noise for operator in operators])
        factors = np.exp(sd * generator(seed, CAPACITY, block).standard_normal(factors.shape))
    moments: Floats = (block * PERIODS + np.arange(PERIODS, dtype=np.float64)) * plant.noise_period_s
    for k, operator in enumerate(operators):
        factors[:, k] *= at_moments(operator.drift, moments)
    return factors


def output_factors(plant: Plant, moments: Floats) -> Floats:
    """Return the factors on the selectivities of every operator's outputs: moments x operators."""
    operators = [plant.operator(name) for name in plant.graph.operators]
    return np.stack([at_moments(operator.output_drift, moments) for operator in operators], axis=1)


def at_moments(points: tuple[tuple[float, float], ...], moments: Floats) -> Floats:
    """Return a factor at these moments: linear between the points, constant before the first and after the last."""
    if not points:
        return np.ones(len(moments))
    at_s, factors = zip(*points, strict=True)
    values: Floats = np.interp(moments, at_s, factors)
    return values
