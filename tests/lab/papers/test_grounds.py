"""The suite of the grounds: real runs, their measures, and errors by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rheostat.errors import PolicyError
from rheostat.lab.experiment.comparison import compare
from rheostat.lab.experiment.config import make_config
from rheostat.lab.experiment.grounds import GROUNDS, OURS, PUBLISHED
from rheostat.lab.experiment.oracle.bound import Bound
from rheostat.lab.experiment.simulated import Simulated
from rheostat.lab.papers import campaign
from rheostat.lab.papers.claim import FAILS, HOLDS, UNKNOWN
from rheostat.lab.papers.grounds import SUITE, runs
from rheostat.lab.papers.grounds.rows import BETTER, WORSE, Standing, ground_rows, standings
from rheostat.lab.papers.grounds.runs import BelowBound, Played, Size, gather, parts, read_run, run_ground
from rheostat.lab.papers.parallel import run_part
from rheostat.lab.papers.result import Result

BREAKS = """
from rheostat import Policy

class Breaks(Policy):
    name = "breaks"

    def decide(self, situation):
        raise KeyError("no such rate")
"""

TINY = Size(seeds=1, trace_seeds=1, trace_hours=1.0, oracle_seeds=0, every_s=120.0)
SHORT = replace(GROUNDS["skewed"], values={**GROUNDS["skewed"].values, "duration_s": 1800.0})
"""Half an hour of a ground."""


def played(policy: str, seed: int, cost: float) -> Played:
    return Played(policy, seed, cost, 100.0, 90.0, 5.0, 2.5, 48.0, 3.0, 1.0)


def test_all_policies_run_beside_the_least_cost_of_their_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "PUBLISHED", ("static", "ds2"))
    monkeypatch.setattr(runs, "OURS", ("conttune:model=loglog",))
    monkeypatch.setattr(runs, "GROUNDS", {"skewed": SHORT})
    found = run_ground("skewed", replace(TINY, oracle_seeds=1), (0, 1))
    assert [(run.policy, run.seed) for run in found] == [
        ("static", 0), ("static", 1), ("ds2", 0), ("ds2", 1),
        ("conttune:model=loglog", 0), ("conttune:model=loglog", 1), ("oracle", 0),
    ]  # fmt: skip
    bounds = {seed: {run.bound for run in found if run.seed == seed} for seed in (0, 1)}
    assert all(len(same) == 1 for same in bounds.values())
    assert bounds[0] != bounds[1]
    assert all(run.cost >= run.bound for run in found)
    assert found[0].changes_per_day == 0
    assert found[2].changes_per_day > 0
    # The numbers of `rheostat compare --ground skewed --interval 120`.
    trial = make_config({**SHORT.values, "interval_s": 120.0}).trial((0, 1))
    (row,) = compare(Simulated(), trial, ["ds2"], [0, 1]).rows
    assert row.cost == pytest.approx((found[2].cost + found[3].cost) / 2)
    assert row.windows_short == (found[2].windows_short + found[3].windows_short) / 2


def test_the_suite_runs_from_its_parts_to_its_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every policy on one ground, for half an hour."""
    monkeypatch.setattr(runs, "GROUNDS", {"skewed": SHORT})
    claims = [claim for claim in SUITE.claims if "skewed" in claim.sentence]
    suite = replace(SUITE, quick=replace(TINY, oracle_seeds=1), claims=claims)
    (result,) = campaign.reproduce([suite], "quick", lambda *_: None, lambda tasks: map(run_part, tasks))
    assert isinstance(result, Result)
    over = {row.policy: row.cost_over_oracle for row in ground_rows(result)}
    assert list(over) == [*PUBLISHED, *OURS, "oracle"]
    assert min(over.values()) >= 1.0
    assert over["oracle"] < 1.5
    assert set(result.verdicts().values()) == {UNKNOWN}  # one run tells nothing
    assert len({row["table"] for row in result.rows() if "claim" not in row}) == 8 + len(OURS)


def test_a_policy_that_fails_on_a_ground_fails_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "breaks.py"
    file.write_text(BREAKS)
    monkeypatch.setattr(runs, "PUBLISHED", ("static", str(file)))
    monkeypatch.setattr(runs, "OURS", ())
    monkeypatch.setattr(runs, "GROUNDS", {"skewed": SHORT})
    ended = run_part(("skewed, seed 0", run_ground, ("skewed", TINY, (0,))))
    assert isinstance(ended.result, PolicyError)
    assert str(ended.result).startswith(f"skewed, seed 0: {file} on skewed, seed 0: breaks failed: KeyError")


def test_a_cost_below_the_bound_is_an_error() -> None:
    trial = make_config({**GROUNDS["skewed"].values, "duration_s": 300.0}).trial()
    (run,) = compare(Simulated(), trial, ["static"]).runs
    assert run.bound is not None
    low = replace(run, bound=Bound(run.bound.cost, 2 * read_run("skewed", run).cost))
    with pytest.raises(BelowBound, match=r"^static on skewed, seed 0 costs 0\.5000 of the least cost"):
        read_run("skewed", low)


def test_every_ground_and_seed_is_in_one_part(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    for ground in GROUNDS.values():
        if ground.trace:
            (tmp_path / "traces" / f"{ground.trace}.csv").touch()
    monkeypatch.setenv("RHEOSTAT_DATA", str(tmp_path))
    size = SUITE.full
    assert size.seeds >= 20
    by_ground: dict[str, list[int]] = {}
    for _, _, (name, own, seeds) in parts(size):
        assert isinstance(seeds, tuple)
        assert own == size
        by_ground.setdefault(str(name), []).extend(seeds)
    assert by_ground == {
        name: list(range(size.trace_seeds if ground.trace else size.seeds)) for name, ground in GROUNDS.items()
    }


def test_standings_and_verdicts_follow_from_paired_costs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RHEOSTAT_DATA", str(tmp_path))
    size = replace(TINY, seeds=4)
    scatter = (1.0, 1.2, 1.1, 1.3)
    costs = {name: [200.0 * s for s in scatter] for name in (*PUBLISHED, *OURS)}
    costs["anticipate"] = [120.0 * s + d for s, d in zip(scatter, (0, 1, -1, 0), strict=True)]
    costs["autrascale:model=decomposed"] = [200.0 * s + d for s, d in zip(scatter, (30, -30, 20, -20), strict=True)]
    costs["conttune:model=loglog"] = [210.0 * s + d for s, d in zip(scatter, (0, 1, -1, 0), strict=True)]
    done = {
        name: [played(policy, seed, cost) for policy, own in costs.items() for seed, cost in enumerate(own)]
        for name, _, _ in parts(size)
    }
    result = SUITE.result(gather(size, done))
    rows = [row for row in ground_rows(result) if row.ground == "diamond"]
    assert [row.policy for row in rows] == [*PUBLISHED, *OURS]
    assert (rows[0].seeds, rows[0].changes_per_day, rows[0].over_min, rows[0].windows_short) == (4, 48.0, 2.5, 3.0)
    assert rows[0].cost_over_oracle == pytest.approx(2.3)
    by_pair = {(s.ours, s.policy): s for s in standings(result) if s.ground == "diamond"}
    assert {by_pair["anticipate", policy].verdict for policy in PUBLISHED} == {BETTER}
    assert {by_pair["conttune:model=loglog", policy].verdict for policy in PUBLISHED} == {WORSE}
    assert {by_pair["autrascale:model=decomposed", policy].verdict for policy in PUBLISHED} == {UNKNOWN}
    assert by_pair["anticipate", "ds2"].ratio == pytest.approx(0.6)
    on = {j.claim.sentence.partition(" ")[0]: j.verdict for j in result.judgements if "diamond" in j.claim.sentence}
    assert on == dict(zip(OURS, (HOLDS, FAILS, UNKNOWN), strict=True))
    assert any(note.startswith("No alibaba: ") for note in result.notes)


def test_too_few_seeds_tell_nothing() -> None:
    assert Standing("rough", "anticipate", "ds2", 0.5, None, None).verdict == UNKNOWN
