"""Big + DS2: ContTune's first baseline, its Big phase in front of DS2.

"The Big phase first ensures that the job is not in back pressure and gets the real upstream rate; then DS2 tunes the
job" (Lian et al., VLDB 2023, section 7.1). Once DS2 has begun, DS2 itself resolves back pressure: the rate is known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, cast

from rheostat.job.decision import Decision, Reason
from rheostat.job.frozen import check_number
from rheostat.job.record import Record
from rheostat.model.history import History, fold
from rheostat.policy.conttune.policy import big
from rheostat.policy.ds2 import DS2
from rheostat.policy.explanation import rate, sustains
from rheostat.policy.tuning import Tuning
from rheostat.ports import Policy, Situation


@dataclass(frozen=True)
class BigDS2(Policy[History]):
    """Lifts an under-provisioned job out of back pressure, then applies DS2's linear model."""

    name: ClassVar[str] = "big-ds2"

    ignore_single_decrease: bool = True
    """Whether to skip a change that only removes single tasks, as in DS2."""
    trigger: float = 0.05
    """Share by which a demand must move for a new tuning."""

    def __post_init__(self) -> None:
        check_number("trigger of policy 'big-ds2'", self.trigger, most=10.0)

    def initial(self) -> History:
        """Return an empty history; only its largest size is used."""
        return History()

    def learn(self, knowledge: History, record: Record) -> History:
        """Store the observed sizes."""
        return fold(knowledge, record)

    def decide(self, situation: Situation[History]) -> Decision:
        """Apply Big while there is back pressure and DS2 has not begun, then DS2 until it suggests the running size."""
        tuning = Tuning.at(situation, self.trigger)
        load_per_s = situation.window.load_per_s
        if not tuning.open:
            sentence = f"big-ds2: {situation.running} is tuned for {rate(load_per_s)}"
            return Decision.hold(Reason.STEADY, sentence, expects=sustains(load_per_s), memo=tuning.memo(situation))
        if situation.window.overloaded and not tuning.small:
            return big(situation, tuning)
        linear = DS2(ignore_single_decrease=self.ignore_single_decrease)
        decision = linear.decide(cast(Situation[None], replace(situation, memo={})))
        continues = decision.target is not None
        return replace(decision, memo=tuning.memo(situation, open=continues, small=True, asked=continues))
