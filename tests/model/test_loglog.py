"""Our capacity model, against scikit-learn's process with the same prior, and its properties."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct

from rheostat.errors import InvalidValue
from rheostat.model import loglog
from rheostat.model.capacity import CapacityModel, Sample
from rheostat.model.loglog import LogLog
from rheostat.model.registry import MODELS


def draw(count: int, noise: float, seed: int = 0, level: float = 1e5, start: int = 0) -> list[Sample]:
    rng = np.random.default_rng([seed, start])
    sizes = rng.integers(1, 17, count).tolist()
    return [
        Sample(p, level * p**0.93 * float(np.exp(noise * rng.standard_normal())), start + k)
        for k, p in enumerate(sizes)
    ]


def errors(model: CapacityModel, level: float = 1e5, most: int = 24) -> float:
    true = level * np.arange(1, most + 1) ** 0.93
    return float(np.median(np.abs(model.curve(most).capacity_per_s / true - 1.0)))


@pytest.mark.parametrize("count", [1, 3, 20])
def test_it_is_scikit_learns_process_with_the_same_prior_and_parameters(count: int) -> None:
    samples = draw(count, 0.05)
    fitted = LogLog.fit(samples)
    best = fitted.best
    kernel = (
        ConstantKernel(loglog.LEVEL_SD**2, "fixed")
        + ConstantKernel(loglog.SLOPE_SD**2, "fixed") * DotProduct(1e-9, "fixed")
        + ConstantKernel(best.shape.sd**2, "fixed") * RBF(best.shape.length, "fixed")
        + ConstantKernel(loglog.ROUGH_SD**2, "fixed") * RBF(1e-6, "fixed")
    )
    sizes = sorted({s.tasks for s in samples})
    rates = [[np.log(s.capacity_per_s / s.tasks) for s in samples if s.tasks == p] for p in sizes]
    x = np.log(sizes)
    y = np.array([np.mean(r) for r in rates]) - fitted.centre - loglog.SLOPE * x
    alpha = np.array([best.noise**2 / len(r) for r in rates])
    oracle = GaussianProcessRegressor(kernel, alpha=alpha, optimizer=None).fit(x[:, None], y)
    at = np.log(np.arange(1.0, 41.0))
    mean, sd = oracle.predict(at[:, None], return_std=True)
    curve = fitted.curve(40)
    expected = np.maximum.accumulate(np.exp(fitted.centre + loglog.SLOPE * at + mean + at))
    assert curve.capacity_per_s == pytest.approx(expected, rel=1e-6)
    assert curve.sd_per_s == pytest.approx(expected * np.sqrt(np.expm1(sd**2)), rel=1e-3)


def test_pooling_repeated_observations_is_exact() -> None:
    """The probability of the parameters is that of all single samples, not of their means."""
    samples = draw(12, 0.08, seed=3)
    fitted = LogLog.fit(samples).best
    x = np.log([s.tasks for s in samples])
    y = np.log([s.capacity_per_s / s.tasks for s in samples])
    y = y - y.mean() - loglog.SLOPE * x
    smooth = np.exp(-0.5 * ((x[:, None] - x[None, :]) / fitted.shape.length) ** 2)
    covariance = loglog.LEVEL_SD**2 + loglog.SLOPE_SD**2 * np.outer(x, x) + fitted.shape.sd**2 * smooth
    covariance += loglog.ROUGH_SD**2 * (x[:, None] == x[None, :]) + fitted.noise**2 * np.eye(len(x))
    single = -0.5 * (y @ np.linalg.solve(covariance, y) + np.linalg.slogdet(covariance)[1])
    single -= 0.5 * (np.log(fitted.noise / loglog.NOISE_0) / loglog.NOISE_SPREAD) ** 2
    assert fitted.log_probability == pytest.approx(single, abs=1e-6)


def test_it_learns_how_noisy_samples_are() -> None:
    low, high = (LogLog.fit(draw(40, noise)).best.noise for noise in (0.01, 0.16))
    assert low <= 0.02
    assert 0.08 <= high <= 0.32


def test_uncertainty_grows_with_the_distance_from_the_samples() -> None:
    curve = LogLog.fit(draw(8, 0.05)).curve(200)
    relative = curve.sd_per_s / curve.capacity_per_s
    assert relative[199] > 2 * relative[15]
    assert curve.distance[199] == 200 - max(s.tasks for s in draw(8, 0.05))


@pytest.mark.parametrize("level", [0.6, 1.5])
@pytest.mark.parametrize("seed", range(4))
def test_two_samples_after_a_change_outweigh_all_before_it(level: float, seed: int) -> None:
    before = draw(25, 0.03, seed)
    after = draw(2, 0.03, seed, level * 1e5, start=25)
    model = LogLog.fit([*before, *after])
    assert model.best.since == 2
    assert errors(model, level * 1e5) < 0.12


@pytest.mark.parametrize("seed", range(8))
def test_without_a_change_everything_counts(seed: int) -> None:
    model = LogLog.fit(draw(30, 0.08, seed))
    assert model.best.since == 0
    assert errors(model) < 0.06


def test_a_single_odd_sample_is_noise() -> None:
    odd = Sample(8, 0.5 * 1e5 * 8**0.93, 25)
    model = LogLog.fit([*draw(25, 0.05), odd])
    assert model.best.since == 0
    assert errors(model) < 0.08


def test_the_answer_stays_level_where_more_tasks_reduce_capacity() -> None:
    falling = [Sample(p, capacity, k) for k, (p, capacity) in enumerate([(1, 100), (4, 300), (8, 280), (16, 150)] * 3)]
    capacity = LogLog.fit(falling).curve(32).capacity_per_s
    assert np.all(np.diff(capacity) >= 0)
    assert capacity[3] == pytest.approx(300, rel=0.1)
    assert capacity[-1] < 400


FITS = st.sampled_from(sorted(MODELS))
SAMPLES = st.lists(
    st.builds(Sample, st.integers(1, 300), st.floats(1e-3, 1e12), st.integers(0, 50)), min_size=1, max_size=12
)


@given(FITS, SAMPLES, st.integers(1, 400))
def test_every_model_answers_with_finite_numbers(name: str, samples: Sequence[Sample], most: int) -> None:
    fit: Callable[[Sequence[Sample]], CapacityModel] = MODELS[name]
    curve = fit(samples).curve(most)
    for values in (curve.capacity_per_s, curve.sd_per_s, curve.distance):
        assert values.shape == (most,)
        assert np.isfinite(values).all()
    assert (curve.sd_per_s >= 0).all()
    if name == "loglog":
        assert (np.diff(curve.capacity_per_s) >= 0).all()
        assert (curve.capacity_per_s > 0).all()


@given(FITS, SAMPLES)
def test_the_order_of_the_samples_does_not_matter(name: str, samples: Sequence[Sample]) -> None:
    numbered = [Sample(s.tasks, s.capacity_per_s, k) for k, s in enumerate(samples)]
    one, other = MODELS[name](numbered).curve(50), MODELS[name](numbered[::-1]).curve(50)
    assert one.capacity_per_s == pytest.approx(
        other.capacity_per_s, rel=1e-4, abs=1e-6 * float(one.capacity_per_s.max())
    )


@pytest.mark.parametrize("name", sorted(MODELS))
def test_no_samples_are_refused(name: str) -> None:
    with pytest.raises(InvalidValue, match="at least one sample"):
        MODELS[name]([])


@pytest.mark.parametrize(("tasks", "capacity"), [(0, 1.0), (1, 0.0), (1, float("nan")), (1, float("inf"))])
def test_impossible_samples_are_refused(tasks: int, capacity: float) -> None:
    with pytest.raises(InvalidValue, match="of a sample"):
        Sample(tasks, capacity)


def test_linear_takes_the_newest_samples_rate_per_task() -> None:
    curve = MODELS["linear"]([Sample(4, 400.0, 7), Sample(2, 100.0, 9), Sample(3, 900.0, 1)]).curve(6)
    assert curve.capacity_per_s == pytest.approx(50.0 * np.arange(1, 7))
    assert curve.distance.tolist() == [1, 0, 0, 0, 1, 2]
