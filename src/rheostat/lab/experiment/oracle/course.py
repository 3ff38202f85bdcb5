"""The course of a trial: all that its seed decides, second by second, without any policy."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rheostat.engine.simulated.discipline import Flow
from rheostat.engine.simulated.draws import (
    BLOCK_S,
    FAILURE,
    PERIODS,
    RESTART,
    Floats,
    add_noise,
    draw_capacities,
    generator,
    output_factors,
    shape_rates,
)
from rheostat.engine.simulated.plant import Plant
from rheostat.lab.experiment.trial import Trial

SMOOTH_S = 60.0
"""Seconds over which the simulator smooths the input rate that turns a backlog into a latency."""
DRAINED_S = 4
"""Seconds in which a buffer that has become too small drains: 2 s of a capacity that fell to a third at most."""
LIVE_CHANGE_S = 6
"""Seconds that a schedule allows for a live change; the bound takes it as free."""
LATE_S = 120
"""Seconds of delay that the state's lower bound and a drifting selectivity allow for."""


@dataclass(frozen=True)
class Course:
    """The known future of one trial."""

    trial: Trial[Plant]
    seconds: int
    work: dict[str, Floats]
    """Operator -> records that arrive for it in every second, if nothing waits."""
    rate: dict[str, Floats]
    """The same, smoothed as the simulator does it."""
    factor: dict[str, Floats]
    """Operator -> factor on its nominal capacity in every second: noise and drift."""
    fullest: dict[str, Floats]
    """Operator -> content of a full buffer over its size: above 1 just after the capacity, and so the size, fell."""
    up: Floats
    """0 in the seconds in which a failure stops the job, else 1."""
    moments: NDArray[np.int64]
    """Seconds at which policies decide."""
    downtimes: NDArray[np.int64]
    """Downtime of a change at each of these moments; its state is that of a job `LATE_S` behind."""
    bare_downtimes: NDArray[np.int64]
    """The same without state."""


def read_course(trial: Trial[Plant]) -> Course:
    """Draw the course of a trial as the simulator will."""
    plant, seconds = trial.job, math.ceil(trial.duration_s)
    blocks = range(-(-seconds // BLOCK_S))
    load = trial.seeded_load
    arrivals = np.concatenate(
        [add_noise(shape_rates(plant, load, block), load.noise, trial.seed, block) for block in blocks]
    )[:seconds]
    work = _work(plant, arrivals)
    periods = np.arange(seconds) // plant.noise_period_s
    drawn = [draw_capacities(plant, trial.seed, block) for block in range(-(-int(periods[-1] + 1) // PERIODS))]
    factors = np.concatenate(drawn)[periods]
    count = int(trial.duration_s / trial.interval_s + 1e-9)
    moments = np.ceil(np.arange(1, count + 1) * trial.interval_s - 1e-9).astype(np.int64)
    moments = moments[moments < seconds]
    state = _state_bytes(plant, work, moments)
    return Course(
        trial,
        seconds,
        work,
        _rates(plant, arrivals, work),
        {name: factors[:, k] for k, name in enumerate(plant.graph.operators)},
        {name: _fullest(factors[:, k]) for k, name in enumerate(plant.graph.operators)},
        _uptime(trial, seconds),
        moments,
        _downtimes(trial, moments, state),
        _downtimes(trial, moments, np.zeros(len(moments))),
    )


def _fullest(factor: Floats) -> Floats:
    """Return the largest factor of the last seconds over the present one: what exceeds a buffer drains in no time."""
    padded = np.concatenate([np.full(DRAINED_S, factor[0]), factor])
    views = np.lib.stride_tricks.sliding_window_view(padded, DRAINED_S + 1)
    ratio: Floats = views.max(axis=1) / factor
    return ratio


def smooth(series: Floats) -> Floats:
    """Return the moving mean by which the simulator turns a backlog into seconds."""
    result = np.empty(len(series))
    value = float(series[0])
    for second, each in enumerate(series.tolist()):
        value += (each - value) / SMOOTH_S
        result[second] = value
    return result


def _rates(plant: Plant, arrivals: Floats, work: dict[str, Floats]) -> dict[str, Floats]:
    """Return the smoothed work; where selectivities drift, the larger of both orders of smoothing and multiplying."""
    smoothed = np.stack([smooth(series) for series in arrivals.T], axis=1)
    later = _work(plant, smoothed)
    return {name: np.maximum(smooth(series), later[name]) for name, series in work.items()}


def _work(plant: Plant, arrivals: Floats) -> dict[str, Floats]:
    """Return the records for every operator; a selectivity that drifts counts with its least value in LATE_S."""
    graph, seconds = plant.graph, len(arrivals)
    outputs = np.ones((seconds, len(graph.operators)))
    if any(operator.output_drift for operator in plant.operators):
        read_s: Floats = np.arange(seconds + LATE_S) // plant.noise_period_s * np.float64(plant.noise_period_s)
        drifting = output_factors(plant, read_s)
        views = np.lib.stride_tricks.sliding_window_view(drifting, LATE_S + 1, axis=0)
        outputs = views.min(axis=2)
    work: dict[str, Floats] = {}
    for name in graph.order:
        if name in graph.sources:
            work[name] = arrivals[:, graph.sources.index(name)]
        else:
            parts = [
                work[e.upstream] * e.selectivity * outputs[:, graph.operators.index(e.upstream)]
                for e in graph.inputs[name]
            ]
            work[name] = np.sum(parts, axis=0)
    return work


def _state_bytes(plant: Plant, work: dict[str, Floats], moments: NDArray[np.int64]) -> Floats:
    """Return the least state at these moments of a job that is at most LATE_S behind: older records have decayed."""
    total = np.zeros(len(moments))
    if not plant.restart.per_gb_s or not isinstance(plant.discipline, Flow):
        return total
    for operator in plant.operators:
        if operator.state_bytes_per_record:
            keep, value, states = 1.0 - 1.0 / operator.state_retention_s, 0.0, []
            for records in work[operator.name].tolist():
                states.append(value)
                value = value * keep + records * operator.state_bytes_per_record
            before = np.array(states)[np.maximum(moments - LATE_S, 0)]
            total += np.where(moments > LATE_S, before * keep**LATE_S, 0.0)
    return total


def _downtimes(trial: Trial[Plant], moments: NDArray[np.int64], state_bytes: Floats) -> NDArray[np.int64]:
    """Return the downtimes that the simulator would draw at these moments."""
    restart = trial.job.restart
    if not isinstance(trial.job.discipline, Flow):
        return np.full(len(moments), LIVE_CHANGE_S, dtype=np.int64)
    drawn = [
        round(restart.draw_s(generator(trial.seed, RESTART, int(moment)), float(size)))
        for moment, size in zip(moments, state_bytes, strict=True)
    ]
    return np.array(drawn, dtype=np.int64)


def _uptime(trial: Trial[Plant], seconds: int) -> Floats:
    """Return 0 where a failure stops the job; records that are read again do not count."""
    up, failure = np.ones(seconds), trial.job.failure
    if isinstance(trial.job.discipline, Flow):
        for moment_s in trial.failures_s:
            start = math.ceil(moment_s + failure.detected_after_s)
            length = round(failure.draw_downtime_s(generator(trial.seed, FAILURE, start)))
            up[start : start + length] = 0.0
    return up
