"""The CPU time of stretches with and without a scaler."""

import math
import os
from contextlib import nullcontext

import numpy as np
import pytest
from scipy.stats import wilcoxon

from rheostat.lab.sight.cost import Ratios, Spending, Spent, alternate, cpu_s, largest_rank, ratios_of


@pytest.mark.parametrize(("pairs", "rank"), [(5, None), (6, 0), (8, 3), (10, 8), (12, 13), (20, 52)])
def test_ranks_are_those_of_wilcoxons_table(pairs: int, rank: int | None) -> None:
    assert largest_rank(pairs) == rank


def ratios(*values: float) -> Ratios:
    """Return these ratios, of an application in one process."""
    return ratios_of([(Spent(value), Spent(1.0)) for value in values])


def test_a_disturbed_stretch_moves_the_interval_little() -> None:
    quiet = [1.00, 1.02, 0.99, 1.01, 1.03, 1.00, 1.01, 0.98, 1.02, 1.01, 1.00, 1.01]
    calm, disturbed = ratios(*quiet), ratios(*quiet[:-1], 0.7)
    for each in (calm, disturbed):
        low, high = each.interval
        assert low <= 1.005 <= high <= 1.02
        assert low >= 0.98
    assert calm.middle == pytest.approx(1.007, abs=0.003)
    assert disturbed.mean < 0.985
    assert ratios(*[1.0] * 5).interval == (-math.inf, math.inf)


def test_what_executors_spend_is_noise_beside_what_the_driver_spends_more() -> None:
    pairs = [(Spent(0.22, 0.7), Spent(0.2, 0.8)), (Spent(0.21, 0.9), Spent(0.2, 0.8))]
    found = ratios_of(pairs)
    assert found.values == pytest.approx((1.02, 1.01))
    assert found.whole is not None
    assert found.whole.values == pytest.approx((0.92, 1.11))
    assert found.without_us == pytest.approx(1e6)


def test_the_interval_is_scipys() -> None:
    values = np.random.default_rng(3).normal(1.01, 0.03, 12)
    low, high = ratios(*values).interval
    for end, inside in ((low, 1), (high, -1)):
        assert wilcoxon(values - end - inside * 1e-6).pvalue > 0.05 - 1e-9
        assert wilcoxon(values - end + inside * 1e-6).pvalue <= 0.05


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
