"""A replay on another processor: numbers that differ in their last digits are no difference, others are."""

from dataclasses import replace

from rheostat.control.replay import alike
from rheostat.job.decision import Decision, Expectation, Reason
from rheostat.job.decision import Interval as Range

DECISION = Decision(
    None, Reason.STEADY, "holds", {"needed_per_s": 482558.5216739614}, Expectation(recovery_s=Range(0.0, 149.7, 149.7))
)


def test_the_last_digits_of_a_processor_are_no_difference() -> None:
    other = replace(DECISION, evidence={"needed_per_s": 482558.5216739614 * (1 + 1e-14)})
    assert other != DECISION
    assert alike([other], [DECISION])


def test_another_number_another_sentence_and_another_record_are() -> None:
    for other in (
        replace(DECISION, evidence={"needed_per_s": 482558.6}),
        replace(DECISION, evidence={"needed": 482558.5216739614}),
        replace(DECISION, sentence="grows"),
    ):
        assert not alike([other], [DECISION])
    assert not alike([DECISION, DECISION], [DECISION])
    assert alike([], [])
