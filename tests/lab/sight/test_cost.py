"""The CPU time of stretches with and without a scaler."""

import math
import os
from contextlib import nullcontext

import pytest

from rheostat.lab.sight.cost import Spending, alternate, cpu_s, ratios_of


def test_the_interval_of_the_mean_is_that_of_students_t() -> None:
    ratios = ratios_of([(1.02, 1.0), (2.0, 2.0), (0.98, 1.0), (1.04, 1.0)])
    assert ratios.mean == pytest.approx(1.01)
    low, high = ratios.interval
    # t(0.975, 3) = 3.182; the deviation is 0.02582.
    assert (high - ratios.mean, ratios.mean - low) == pytest.approx((3.182 * 0.02582 / 2,) * 2, rel=1e-3)
    assert ratios.without_us == pytest.approx(1.25e6)
    assert ratios_of([(1.0, 1.0)]).interval == (-math.inf, math.inf)


def test_stretches_alternate_and_every_second_pair_begins_with_the_other_one() -> None:
    batches = [0]
    entered: list[int] = []

    def count() -> tuple[int, int]:
        batches[0] += 1
        sum(number * number for number in range(300_000))  # some ticks of CPU time per batch
        return batches[0], 100 * batches[0]

    def watched() -> nullcontext[None]:
        entered.append(batches[0])
        return nullcontext()

    ratios = alternate(3, watched, Spending(count, 3))
    assert len(ratios.values) == 3
    entered = entered[2:]  # after two for warm-up
    assert ratios.without_us > 0
    assert entered[1] - entered[0] > entered[2] - entered[1]  # with, without; without, with; with, without


def test_the_cpu_time_of_a_process_rises() -> None:
    before_s = cpu_s(os.getpid())
    while cpu_s(os.getpid()) <= before_s:
        sum(range(100_000))
    assert cpu_s(os.getpid()) > before_s
