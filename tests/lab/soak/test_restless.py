"""The restless policy: random sizes within bounds, the same ones from the same seed."""

from __future__ import annotations

from dataclasses import replace

from rheostat.job.slo import Bounds
from rheostat.lab.soak.restless import Restless
from rheostat.testing.situations import situation, window, word_count

WORDS = word_count(Bounds(1, 8))
AT = situation(WORDS, window(WORDS, 100.0, 2, 1000.0), None)


def drawn(policy: Restless, seed: int) -> list[dict[str, int] | None]:
    decisions = [policy.decide(replace(AT, seed=seed, step=step)) for step in range(200)]
    return [None if decision.target is None else dict(decision.target.tasks) for decision in decisions]


def test_sizes_stay_within_its_bounds_and_reach_them() -> None:
    tasks = [count for target in drawn(Restless(most=3), 0) if target for count in target.values()]
    assert set(tasks) == {1, 2, 3}


def test_it_rests_by_chance() -> None:
    changes = sum(target is not None for target in drawn(Restless(chance=0.2), 0))
    assert 15 < changes < 65
    assert not any(drawn(Restless(chance=0.0), 0))


def test_a_seed_gives_the_same_sizes() -> None:
    assert drawn(Restless(), 5) == drawn(Restless(), 5)
    assert drawn(Restless(), 5) != drawn(Restless(), 6)
