"""The joint process against scikit-learn's, and expected improvement against its definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from rheostat.errors import InvalidValue
from rheostat.model.joint import LENGTHS, NOISES, JointGP, expected_improvement


def samples(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    tasks = rng.integers(1, 41, (count, 3)).astype(float)
    return tasks, 0.8 / (1 + np.log(tasks).sum(axis=1)) + 0.01 * rng.standard_normal(count)


def test_it_predicts_what_scikit_learn_does_with_the_same_kernel() -> None:
    tasks, values = samples(14)
    process = JointGP.fit(tasks, values)
    likely: list[tuple[float, GaussianProcessRegressor]] = []
    for length in LENGTHS:
        for noise in NOISES:
            kernel = ConstantKernel(1.0, "fixed") * Matern(length, "fixed", nu=2.5)
            y, x = values - values.mean(), np.log(tasks)
            unit = GaussianProcessRegressor(kernel, alpha=noise**2 + 1e-9, optimizer=None).fit(x, y)
            variance = float(y @ np.linalg.solve(unit.L_ @ unit.L_.T, y)) / len(y)
            scaled = ConstantKernel(variance, "fixed") * Matern(length, "fixed", nu=2.5)
            gp = GaussianProcessRegressor(scaled, alpha=variance * (noise**2 + 1e-9), optimizer=None).fit(x, y)
            likely.append((gp.log_marginal_likelihood_value_, gp))
    best = max(likely, key=lambda pair: pair[0])[1]
    at, _ = samples(20, seed=1)
    mean, sd = best.predict(np.log(at), return_std=True)
    ours, ours_sd = process.predict(at)
    assert ours == pytest.approx(mean + values.mean(), abs=1e-8)
    assert ours_sd == pytest.approx(sd, abs=1e-6)


def test_repeated_samples_are_averaged_and_equal_ones_leave_no_nan() -> None:
    once, _ = JointGP.fit(np.array([[2.0, 3.0], [4.0, 4.0]]), np.array([0.5, 0.9])).predict(np.array([[2.0, 3.0]]))
    twice = JointGP.fit(np.array([[2.0, 3.0], [2.0, 3.0], [4.0, 4.0]]), np.array([0.4, 0.6, 0.9]))
    assert twice.predict(np.array([[2.0, 3.0]]))[0] == pytest.approx(once, abs=0.02)
    assert twice.count == 3
    flat = JointGP.fit(np.full((5, 2), 7.0), np.full(5, 0.3))
    mean, sd = flat.predict(np.array([[7.0, 7.0], [1.0, 40.0]]))
    assert mean == pytest.approx([0.3, 0.3])
    assert np.isfinite(sd).all()


def test_it_needs_a_sample() -> None:
    with pytest.raises(InvalidValue, match="at least one"):
        JointGP.fit(np.zeros((0, 2)), np.zeros(0))


def test_expected_improvement_is_the_mean_gain_of_a_draw() -> None:
    rng = np.random.default_rng(0)
    for mean, sd, best in ((0.5, 0.1, 0.6), (0.7, 0.2, 0.6), (0.2, 0.01, 0.9)):
        draws = np.maximum(mean + sd * rng.standard_normal(400_000) - best - 0.01, 0.0).mean()
        assert expected_improvement(np.array([mean]), np.array([sd]), best, 0.01)[0] == pytest.approx(draws, abs=3e-4)
    assert expected_improvement(np.array([5.0]), np.array([0.0]), 0.0, 0.0)[0] == 0.0  # Eq 6: σ = 0


@given(st.lists(st.tuples(st.integers(1, 1000), st.integers(1, 1000), st.floats(-1e3, 1e3)), min_size=1, max_size=12))
def test_it_is_never_nan(rows: list[tuple[int, int, float]]) -> None:
    process = JointGP.fit(np.array([row[:2] for row in rows], dtype=float), np.array([row[2] for row in rows]))
    mean, sd = process.predict(np.array([[1.0, 1.0], [30.0, 2.0], [1000.0, 1000.0]]))
    assert np.isfinite(mean).all()
    assert (sd >= 0).all()
    assert all(math.isfinite(v) for v in expected_improvement(mean, sd, float(mean.max()), 0.01))
