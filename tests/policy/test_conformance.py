"""Every policy conforms to the port."""

from __future__ import annotations

from typing import Any

from rheostat.job.graph import JobSpec
from rheostat.policy.autrascale.policy import AuTraScale
from rheostat.policy.conttune.big_ds2 import BigDS2
from rheostat.policy.conttune.policy import ContTune
from rheostat.policy.dhalion import Dhalion
from rheostat.policy.drs import DRS
from rheostat.policy.ds2 import DS2
from rheostat.policy.exponent import Exponent
from rheostat.policy.hpa import HPA
from rheostat.policy.max_tasks import MaxTasks
from rheostat.policy.phoebe.anticipate import Anticipate
from rheostat.policy.phoebe.policy import Phoebe
from rheostat.policy.phoebe.twres import TWRES
from rheostat.policy.proportion import Proportion
from rheostat.policy.static import Static
from rheostat.policy.trigger_interval import TriggerInterval
from rheostat.ports import Policy
from rheostat.testing.policy import PolicyConformance
from rheostat.testing.situations import word_count


class TestStatic(PolicyConformance):
    def make_policy(self) -> Policy[Any]:
        return Static()


class TestStaticWithTasks(PolicyConformance):
    def make_policy(self) -> Policy[Any]:
        return Static({"split": 6, "count": 300})

    def jobs(self) -> tuple[JobSpec, ...]:
        return (word_count(), word_count(quantum=4))


class TestDS2(PolicyConformance):
    def make_policy(self) -> Policy[Any]:
        return DS2()


class TestDS2WithEveryOption(PolicyConformance):
    def make_policy(self) -> Policy[Any]:
        return DS2(
            activation_windows=2,
            warm_up_windows=1,
            target_rate_ratio=1.01,
            scaling_factor=0.2,
            ignore_single_decrease=False,
        )


class TestDhalion(PolicyConformance):
    def make_policy(self) -> Policy[Any]:
        return Dhalion()


class TestDhalionAsPublished(PolicyConformance):
    def make_policy(self) -> Policy[Any]:
        return Dhalion(idle_below=None)


class TestContTune(PolicyConformance):
    def make_policy(self) -> Policy[Any]:
        return ContTune()


class TestContTuneWithOurModelAndWithoutBig(PolicyConformance):
    def make_policy(self) -> Policy[Any]:
        return ContTune(model="loglog", big=False, refine=True)


class TestContTuneAsPublishedWithCei(PolicyConformance):
    def make_policy(self) -> Policy[Any]:
        return ContTune(alpha=0.0, acquisition="cei", bracket=False)


class TestBigDS2(PolicyConformance):
    def make_policy(self) -> Policy[Any]:
        return BigDS2()


class TestHPA(PolicyConformance):
    def make_policy(self) -> Policy[Any]:
        return HPA()


class TestHPAWithoutStabilisation(PolicyConformance):
    def make_policy(self) -> Policy[Any]:
        return HPA(target_cpu=0.35, stabilise_down_s=0.0, tolerance=0.0)


class TestTriggerInterval(PolicyConformance):
    def make_policy(self) -> Policy[Any]:
        return TriggerInterval()


class TestAuTraScale(PolicyConformance):
    def make_policy(self) -> Policy[Any]:
        return AuTraScale(processing_s=0.2)


class TestAuTraScaleWithOurModel(PolicyConformance):
    def make_policy(self) -> Policy[Any]:
        return AuTraScale(model="decomposed", literal=True, transfer="none")


class TestDRS(PolicyConformance):
    def make_policy(self) -> Policy[Any]:
        return DRS(processing_s=0.01)


class TestDRSObserved(PolicyConformance):
    def make_policy(self) -> Policy[Any]:
        return DRS(rates="observed")


class TestMaxTasks(PolicyConformance):
    def make_policy(self) -> Policy[Any]:
        return MaxTasks()


class TestProportion(PolicyConformance):
    def make_policy(self) -> Policy[Any]:
        return Proportion(limit_s=60.0)


class TestExponent(PolicyConformance):
    def make_policy(self) -> Policy[Any]:
        return Exponent(limit_s=60.0)


class TestPhoebe(PolicyConformance):
    def make_policy(self) -> Policy[Any]:
        return Phoebe()


class TestPhoebeWithoutProfile(PolicyConformance):
    def make_policy(self) -> Policy[Any]:
        return Phoebe(profile=False, evaluation_s=30.0)


class TestTWRES(PolicyConformance):
    def make_policy(self) -> Policy[Any]:
        return TWRES(profile=False)


class TestAnticipate(PolicyConformance):
    def make_policy(self) -> Policy[Any]:
        return Anticipate()


class TestAnticipateWithoutProfile(PolicyConformance):
    def make_policy(self) -> Policy[Any]:
        return Anticipate(profile=False)
