"""The batch time is fitted by a line: fixed cost and slope per record and slot, or None if batches are too alike."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from rheostat.engine.batches.batch_time import Sample, SlotHistory, fit_batches


def batches(
    fixed_s: float, slope: float, loads: list[tuple[float, int]], noise: float = 0.0, seed: int = 0
) -> list[Sample]:
    rng = np.random.default_rng(seed)
    factors = np.exp(noise * rng.standard_normal(len(loads)))
    return [Sample(n, s, (fixed_s + slope * n / s) * float(f)) for (n, s), f in zip(loads, factors, strict=True)]


VARIED = [(400.0 * k, 1 + k % 4) for k in range(1, 21)]


@pytest.mark.parametrize(("fixed_s", "slope"), [(0.4, 2.5e-3), (0.0, 1e-3), (5.0, 1e-4)])
def test_the_fit_recovers_the_line_for_any_slots(fixed_s: float, slope: float) -> None:
    line = fit_batches(batches(fixed_s, slope, VARIED))
    assert line is not None
    assert line.fixed_s == pytest.approx(fixed_s, abs=1e-9)
    assert line.slot_s_per_record == pytest.approx(slope)
    assert line.error == pytest.approx(0.0, abs=1e-9)
    loads = [n / s for n, s in VARIED]
    assert (line.batches, line.least_per_slot, line.most_per_slot) == (20, min(loads), max(loads))


def test_noise_and_outliers_hardly_move_the_line() -> None:
    """Nine seeds: ten percent of noise, a cold first batch, and two outliers, one of them the largest batch."""
    for seed in range(9):
        samples = batches(0.5, 2e-3, VARIED, noise=0.1, seed=seed)
        for outlier, factor in ((0, 8.0), (11, 4.0), (19, 6.0)):
            samples[outlier] = Sample(
                samples[outlier].records, samples[outlier].slots, samples[outlier].seconds * factor
            )
        line = fit_batches(samples)
        assert line is not None
        assert line.slot_s_per_record == pytest.approx(2e-3, rel=0.1)
        assert line.fixed_s == pytest.approx(0.5, abs=0.3)
        assert line.batches <= 17
        assert line.error < 0.2


def test_without_outliers_the_fit_is_weighted_least_squares() -> None:
    samples = batches(0.5, 2e-3, VARIED, noise=0.02, seed=0)
    line = fit_batches(samples)
    assert line is not None
    assert line.batches == len(samples)
    weights = [1 / (0.5 + 2e-3 * sample.per_slot) for sample in samples]
    slope, fixed_s = np.polyfit([s.per_slot for s in samples], [s.seconds for s in samples], 1, w=weights)
    assert (line.slot_s_per_record, line.fixed_s) == pytest.approx((slope, fixed_s), rel=1e-2)


@pytest.mark.parametrize(
    "samples",
    [
        [],
        batches(0.5, 2e-3, VARIED[:5]),
        batches(0.5, 2e-3, [(1000.0, 2)] * 20),
        batches(0.0, 2e-3, [(1000.0 + k, 2) for k in range(20)], noise=0.1),
        batches(0.5, 0.0, VARIED, noise=0.05),
        [Sample(0.0, 2, 0.1)] * 20,
        [Sample(500.0, 0, 1.0)] * 20,
        [Sample(1000.0 * k, 1, 10.0 - k) for k in range(1, 9)],
    ],
    ids=["none", "few", "alike", "nearly alike", "no slope", "empty", "no slots", "falling"],
)
def test_batches_too_few_or_too_alike_give_no_line(samples: list[Sample]) -> None:
    assert fit_batches(samples) is None


def test_only_the_newest_batches_count() -> None:
    line = fit_batches(batches(3.0, 9e-3, VARIED * 5) + batches(0.4, 2e-3, VARIED * 4))
    assert line is not None
    assert line.slot_s_per_record == pytest.approx(2e-3)
    assert line.batches == 64


@given(
    some.lists(
        some.builds(
            Sample,
            some.floats(0, 1e9, allow_subnormal=False),
            some.integers(0, 500),
            some.floats(0, 1e5, allow_subnormal=False),
        ),
        max_size=30,
    )
)
def test_no_coefficient_is_negative_or_infinite(samples: list[Sample]) -> None:
    line = fit_batches(samples)
    if line is not None:
        assert 0 <= line.fixed_s < float("inf")
        assert 0 < line.slot_s_per_record < float("inf")
        assert 0 <= line.error < float("inf")
        assert line.batches <= len(samples)


def test_slots_are_known_only_between_equal_samples() -> None:
    history = SlotHistory()
    for at_s, slots in ((0.0, 2), (10.0, 2), (20.0, 4), (30.0, 4)):
        history.record(at_s, slots)
    assert history.during(1.0, 9.0) == 2
    assert history.during(21.0, 30.0) == 4
    assert history.during(9.0, 12.0) is None  # the change came somewhere between 10 and 20
    assert history.during(12.0, 19.0) is None
    assert history.during(25.0, 31.0) is None  # no sample since
    history.record(40.0, 4, replaced=True)  # one executor died and was replaced
    history.record(50.0, 4)
    assert history.during(29.0, 41.0) is None
    assert history.during(41.0, 50.0) == 4
