"""Scores: the published ones follow from the published parallelisms; transfer follows Algorithm 2."""

from __future__ import annotations

import numpy as np
import pytest

from rheostat.model.joint import JointGP
from rheostat.policy.autrascale.benefit import Transferred, benefit, enough, nearness, traditional


@pytest.mark.parametrize(
    ("base", "tasks", "score"),
    [
        ((3, 4, 12, 10), (7, 8, 12, 38), 0.9096),
        ((4, 2, 1, 1, 34), (4, 2, 1, 1, 40), 0.994),
        ((4, 2, 1, 1, 34), (22, 2, 1, 1, 36), 0.965),
    ],
)
def test_the_three_published_scores_of_table_iv(base: tuple[int, ...], tasks: tuple[int, ...], score: float) -> None:
    met = benefit(np.array([0.1]), 0.18, np.array(base, dtype=float), np.array([tasks], dtype=float), 0.8)
    assert met[0] == pytest.approx(score, abs=5e-4)


def test_a_missed_target_costs_its_share() -> None:
    ones = np.ones(2)
    assert benefit(np.array([0.36]), 0.18, ones, np.ones((1, 2)), 0.8)[0] == pytest.approx(0.6)
    assert benefit(np.array([0.0]), 0.18, ones, np.ones((1, 2)), 0.8)[0] == pytest.approx(1.0)


def test_the_published_threshold_accepts_twice_the_tasks() -> None:
    assert enough(0.8, 1.0) == pytest.approx(0.9)
    assert enough(0.8, 0.0) == pytest.approx(1.0)


def test_throughput_beyond_the_target_scores_no_better_than_below_it() -> None:
    assert nearness(np.array([90.0, 100.0, 110.0]), 100.0, 10.0) == pytest.approx([0.5, 1.0, 0.5])


class TestTransfer:
    """Algorithm 2."""

    OLD_TASKS = np.array([[p, q] for p in (1, 4, 9) for q in (1, 4, 9)], dtype=float)
    OLD = JointGP.fit(OLD_TASKS, 1.0 / np.log(OLD_TASKS + 1).sum(axis=1))
    NEW_TASKS = OLD_TASKS[[0, 4, 8]]

    def test_a_constant_difference_is_learned_from_a_few_samples(self) -> None:
        new = self.OLD.predict(self.NEW_TASKS)[0] - 0.2
        transferred = Transferred.light(self.OLD, self.NEW_TASKS, new, 1.0)
        assert transferred.predict(self.OLD_TASKS)[0] == pytest.approx(
            self.OLD.predict(self.OLD_TASKS)[0] - 0.2, abs=1e-3
        )

    def test_uncertainty_is_weighted_by_the_samples_of_both_rates(self) -> None:
        transferred = Transferred.light(self.OLD, self.NEW_TASKS, np.array([0.1, 0.4, 0.2]), 2.0)
        assert transferred.weight == pytest.approx(6 / 15)
        at = np.array([[2.0, 7.0]])
        old, residual = self.OLD.predict(at)[1], transferred.residual.predict(at)[1]
        assert transferred.predict(at)[1] == pytest.approx(residual**0.4 * old**0.6)

    def test_the_traditional_method_trains_on_estimates_of_the_bootstrapping_set(self) -> None:
        new = self.OLD.predict(self.NEW_TASKS)[0] + 0.1
        bootstrap = np.array([[9.0, 1.0], [1.0, 9.0], [4.0, 9.0]])
        model = traditional(self.OLD, self.NEW_TASKS, new, bootstrap, 1.0)
        assert model.count == 6
        assert model.predict(bootstrap)[0] == pytest.approx(self.OLD.predict(bootstrap)[0] + 0.1, abs=0.05)
