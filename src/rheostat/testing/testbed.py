"""The rules for every testbed."""

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
    """Subclass it, implement `make_testbed`, `easy` and `too_much`, and run pytest."""

    __test__ = False  # pytest collects only the subclasses

    def __init_subclass__(cls, **rest: object) -> None:
        super().__init_subclass__(**rest)
        cls.__test__ = True

    @abstractmethod
    def make_testbed(self) -> tuple[Testbed, JobSpec]:
        """Return a testbed and its job."""

    @abstractmethod
    def easy(self) -> tuple[Allocation, dict[str, float]]:
        """Return an allocation with rates that it easily sustains."""

    @abstractmethod
    def too_much(self) -> tuple[Allocation, dict[str, float]]:
        """Return an allocation with rates far above its capacity."""

    def trial(self, allocation: Allocation, rates: dict[str, float]) -> Trial:
        """Return a trial with a warm-up phase and an observed phase."""
        return Trial("test", allocation, (Phase(30, rates), Phase(30, rates, observed=True)))

    def test_an_easy_rate_is_sustained(self) -> None:
        """The throughput equals the input rate, and no operator is overloaded."""
        testbed, _ = self.make_testbed()
        allocation, rates = self.easy()
        measurement = testbed.measure(self.trial(allocation, rates))
        assert measurement.problem is None
        assert measurement.observation is not None
        assert measurement.observation.running == allocation
        assert measurement.observation.throughput_per_s == pytest.approx(sum(rates.values()), rel=0.05)
        assert measurement.observation.overloaded == ()

    def test_too_much_shows_as_overload(self) -> None:
        """The throughput stays below the input rate, and an operator is overloaded."""
        testbed, _ = self.make_testbed()
        allocation, rates = self.too_much()
        observation = testbed.measure(self.trial(allocation, rates)).observation
        assert observation is not None
        assert observation.throughput_per_s is not None
        assert observation.throughput_per_s < 0.9 * sum(rates.values())
        assert observation.overloaded

    def test_a_measurement_has_its_cost(self) -> None:
        """Its seconds and slot-seconds cover the whole trial, with the warm-up."""
        testbed, _ = self.make_testbed()
        allocation, rates = self.easy()
        measurement = testbed.measure(self.trial(allocation, rates))
        assert measurement.seconds >= 60
        assert measurement.slot_seconds >= 60 * allocation.slots

    def test_an_invalid_trial_gives_a_problem(self) -> None:
        """Unknown operators or sources give a measurement with a problem and no cost."""
        testbed, _ = self.make_testbed()
        allocation, rates = self.easy()
        for invalid in (
            self.trial(Allocation({"no such operator": 1}), rates),
            replace(self.trial(allocation, rates), phases=(Phase(30, {"no such source": 1.0}, observed=True),)),
        ):
            measurement = testbed.measure(invalid)
            assert measurement.observation is None
            assert measurement.problem
            assert measurement.slot_seconds == 0

    def test_measurement_survives_json(self) -> None:
        """The journaled measurement equals the original."""
        testbed, _ = self.make_testbed()
        measurement = testbed.measure(self.trial(*self.easy()))
        assert from_json(Measurement, to_json(measurement)) == measurement
