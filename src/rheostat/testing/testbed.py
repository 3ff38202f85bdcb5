"""What every testbed must do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

import pytest

from rheostat.job.allocation import Allocation
from rheostat.job.decision import Measurement, Phase, Trial
from rheostat.job.frozen import from_json, to_json
from rheostat.job.graph import JobSpec
from rheostat.ports import Testbed


class TestbedConformance(ABC):
    """Subclass it, say how a testbed is made and what it can do, and run it with pytest."""

    __test__ = False  # pytest must collect the subclasses only

    def __init_subclass__(cls, **rest: object) -> None:
        super().__init_subclass__(**rest)
        cls.__test__ = True

    @abstractmethod
    def make_testbed(self) -> tuple[Testbed, JobSpec]:
        """Return a testbed and the job it can run."""

    @abstractmethod
    def easy(self) -> tuple[Allocation, dict[str, float]]:
        """Return an allocation with rates that it sustains with ease."""

    @abstractmethod
    def too_much(self) -> tuple[Allocation, dict[str, float]]:
        """Return an allocation with rates that are far beyond it."""

    def trial(self, allocation: Allocation, rates: dict[str, float]) -> Trial:
        """Return a trial that warms up and then looks."""
        return Trial("test", allocation, (Phase(30, rates), Phase(30, rates, observed=True)))

    def test_an_easy_rate_is_sustained(self) -> None:
        """Throughput is the offered rate, and nothing is overloaded."""
        testbed, _ = self.make_testbed()
        allocation, rates = self.easy()
        measured = testbed.measure(self.trial(allocation, rates))
        assert measured.problem is None
        assert measured.observation is not None
        assert measured.observation.running == allocation
        assert measured.observation.throughput_per_s == pytest.approx(sum(rates.values()), rel=0.05)
        assert measured.observation.overloaded == ()

    def test_too_much_shows_as_overload(self) -> None:
        """Throughput stays below the offered rate, and an operator is named."""
        testbed, _ = self.make_testbed()
        allocation, rates = self.too_much()
        observation = testbed.measure(self.trial(allocation, rates)).observation
        assert observation is not None
        assert observation.throughput_per_s is not None
        assert observation.throughput_per_s < 0.9 * sum(rates.values())
        assert observation.overloaded

    def test_says_what_it_cost(self) -> None:
        """Seconds and slot-seconds cover the whole trial, warm-up included."""
        testbed, _ = self.make_testbed()
        allocation, rates = self.easy()
        measured = testbed.measure(self.trial(allocation, rates))
        assert measured.seconds >= 60
        assert measured.slot_seconds >= 60 * allocation.slots

    def test_a_trial_that_cannot_be_run_is_an_answer(self) -> None:
        """Wrong operators or sources give a measurement with a problem, at no cost."""
        testbed, _ = self.make_testbed()
        allocation, rates = self.easy()
        for wrong in (
            self.trial(Allocation({"no such operator": 1}), rates),
            replace(self.trial(allocation, rates), phases=(Phase(30, {"no such source": 1.0}, observed=True),)),
        ):
            measured = testbed.measure(wrong)
            assert measured.observation is None
            assert measured.problem
            assert measured.slot_seconds == 0

    def test_measurement_survives_json(self) -> None:
        """What is journaled is what was measured."""
        testbed, _ = self.make_testbed()
        measured = testbed.measure(self.trial(*self.easy()))
        assert from_json(Measurement, to_json(measured)) == measured
