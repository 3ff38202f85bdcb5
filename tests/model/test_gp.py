"""The paper's Gaussian process, beside scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from rheostat.model.capacity import Sample
from rheostat.model.gp import JITTER, LENGTH_0, LENGTHS, GaussianProcess

TASKS = np.arange(1.0, 41.0)


def draw(count: int, seed: int = 0) -> list[Sample]:
    """Different sizes of an operator with contention, measured with 3 % noise."""
    rng = np.random.default_rng(seed)
    sizes = rng.choice(np.arange(1, 26), count, replace=False)
    return [Sample(int(p), 7e5 * p / (1 + 0.03 * (p - 1)) * float(np.exp(0.03 * rng.standard_normal()))) for p in sizes]


@pytest.mark.parametrize("count", [1, 2, 5, 14])
def test_it_is_scikit_learns_process_with_the_same_parameters(count: int) -> None:
    samples = draw(count)
    process = GaussianProcess.fit(samples)
    unit, variance = process.unit_per_s, process.signal**2
    kernel = ConstantKernel(variance, "fixed") * RBF(process.length, "fixed")
    oracle = GaussianProcessRegressor(kernel, alpha=JITTER * variance, optimizer=None)
    oracle.fit([[s.tasks] for s in samples], [s.capacity_per_s / unit for s in samples])
    mean, sd = oracle.predict(TASKS[:, None], return_std=True)
    curve = process.curve(len(TASKS))
    assert curve.capacity_per_s / unit == pytest.approx(mean, abs=1e-4)
    assert curve.sd_per_s / unit == pytest.approx(sd, abs=2e-3)


@pytest.mark.parametrize("seed", range(5))
def test_its_parameters_are_as_likely_as_scikit_learns_optimum(seed: int) -> None:
    samples = draw(8, seed)
    process = GaussianProcess.fit(samples)
    x, y = [[s.tasks] for s in samples], [s.capacity_per_s / process.unit_per_s for s in samples]
    lengths = (float(LENGTHS.min()), float(LENGTHS.max()))
    kernel = ConstantKernel(0.5, (1e-6, 1.0)) * RBF(LENGTH_0, lengths)
    theta = np.log([process.signal**2, process.length])
    oracle = GaussianProcessRegressor(kernel, alpha=1e-8, optimizer=None).fit(x, y)
    # scikit-learn's optimiser warns at a bound, so its likelihood is searched on a fine grid.
    best = max(
        oracle.log_marginal_likelihood([np.log(variance), np.log(length)])
        for variance in np.geomspace(1e-3, 1.0, 30)
        for length in np.geomspace(*lengths, 30)
    )
    assert oracle.log_marginal_likelihood(theta) > best - 0.4


def test_repeated_observations_of_a_size_are_averaged() -> None:
    once = GaussianProcess.fit([Sample(2, 200.0), Sample(6, 500.0)])
    twice = GaussianProcess.fit([Sample(2, 190.0), Sample(6, 500.0), Sample(2, 210.0)])
    assert twice.curve(10).capacity_per_s == pytest.approx(once.curve(10).capacity_per_s)


def test_one_sample_says_nothing_about_the_length_scale() -> None:
    assert GaussianProcess.fit([Sample(4, 100.0)]).length == LENGTH_0


def test_its_mean_falls_to_zero_beyond_the_data() -> None:
    """The published model does not extrapolate and is not monotonic."""
    capacity = GaussianProcess.fit([Sample(p, 100.0 * p) for p in (2, 4, 6, 8)]).curve(60).capacity_per_s
    assert capacity[7] == pytest.approx(800.0, rel=1e-3)
    assert abs(capacity[59]) < 100.0
