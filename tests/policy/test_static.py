"""Static: configured tasks, limits and wrong names."""

from __future__ import annotations

import pytest

from rheostat.errors import InvalidValue
from rheostat.job.decision import Reason
from rheostat.job.slo import Bounds
from rheostat.policy.static import Static
from rheostat.testing.situations import situation, window, word_count

WORDS = word_count()
AT = situation(WORDS, window(WORDS, 100.0, 4, 1000.0), None)


@pytest.mark.parametrize(
    ("tasks", "target", "reason"),
    [
        pytest.param(None, None, Reason.STEADY, id="keeps the running size"),
        pytest.param({}, None, Reason.STEADY, id="nothing configured"),
        pytest.param({"split": 4, "count": 4}, None, Reason.STEADY, id="runs already"),
        pytest.param({"split": 6}, {"split": 6, "count": 4}, Reason.UNDER_PROVISIONED, id="grows one"),
        pytest.param({"split": 2}, {"split": 2, "count": 4}, Reason.OVER_PROVISIONED, id="shrinks one"),
        pytest.param({"split": 2, "count": 9}, {"split": 2, "count": 9}, Reason.MIXED, id="both ways"),
    ],
)
def test_decisions(tasks: dict[str, int] | None, target: dict[str, int] | None, reason: Reason) -> None:
    decision = Static(tasks).decide(AT)
    assert (None if decision.target is None else dict(decision.target.tasks)) == target
    assert decision.reason is reason


def test_tasks_outside_the_limits_are_cut_and_named() -> None:
    spec = word_count(Bounds(1, 8))
    decision = Static({"count": 20}).decide(situation(spec, window(spec, 100.0, 4, 1000.0), None))
    assert decision.target is not None
    assert decision.target.tasks["count"] == 8
    assert "do not allow count 20" in decision.sentence


def test_an_unknown_operator_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InvalidValue, match=r"'cuont'.*did you mean 'count'"):
        Static({"cuont": 3}).decide(AT)


def test_a_pinned_operator_is_refused() -> None:
    with pytest.raises(InvalidValue, match="'lines', which cannot be tuned"):
        Static({"lines": 3}).decide(AT)


@pytest.mark.parametrize("count", [0, -1, 2.5, True])
def test_impossible_counts_are_refused_at_once(count: int) -> None:
    with pytest.raises(InvalidValue, match="option tasks"):
        Static({"split": count})


def test_options_cannot_be_changed_from_outside() -> None:
    tasks = {"split": 3}
    policy = Static(tasks)
    tasks["split"] = 99
    assert policy.options() == {"tasks": {"split": 3}}
