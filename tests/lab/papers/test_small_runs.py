"""Every paper's suite, made small: real runs on the simulator from the parts to the verdicts."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rheostat.errors import InvalidValue
from rheostat.job.frozen import to_json
from rheostat.lab.data import data_folder
from rheostat.lab.papers import campaign, registry
from rheostat.lab.papers.claim import HOLDS, UNKNOWN, VERDICTS
from rheostat.lab.papers.parallel import run_in_processes
from rheostat.lab.papers.result import Result
from rheostat.lab.papers.suite import Suite
from rheostat.lab.papers.verdicts import find_regressions

SMALL: dict[str, tuple[str, tuple[Any, ...]]] = {
    "conttune": ("quick", (1, 1, 1, 4, 1)),
    "dragster": ("quick", (1, 1, 1, 40, 10)),
    "autrascale": ("quick", (1, 1, 1)),
    "phoebe": ("full", (1, True, 1)),
    "streambed": ("quick", (1, 1, 1, False)),
}
"""One run of everything; of the full sizes only Phoebe's has parts that the quick one lacks."""


def has_data() -> bool:
    try:
        return (Path(data_folder()) / "phoebe").is_dir()
    except InvalidValue:
        return False


@pytest.mark.skipif(not has_data(), reason="the papers' measured data are not here (see $RHEOSTAT_DATA)")
@pytest.mark.parametrize("name", SMALL)
def test_a_suite_runs_from_its_parts_to_its_verdicts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Most of the time of a level nothing new happens.
    monkeypatch.setattr("rheostat.lab.papers.conttune.paper.HOLD_S", 240)
    paper, done = registry.suite(name), dict[str, Any]()
    size, values = SMALL[name]

    def gather(own: Any, results: Mapping[str, Any]) -> Any:
        done.update(results)
        return paper.gather(own, results)

    suite = replace(paper, **{size: type(paper.size(size))(*values)}, gather=gather)
    (result,) = campaign.reproduce([suite], size, lambda *_: None, lambda tasks: run_in_processes(tasks, 1))
    assert isinstance(result, Result)
    check_result(suite, result)
    if name == "phoebe":
        # The quick size has the same parts, without the ablations and the priors.
        quick = paper.result(paper.gather(type(paper.quick)(1, False), done))
        assert len(quick.cells) < len(result.cells)
        check_result(suite, quick, whole=False)


def check_result(suite: Suite[Any, Any], result: Result, whole: bool = True) -> None:
    """Check that every claim has a verdict that its runs allow, and a row; optional ones only in a whole run."""
    assert set(result.verdicts()) == {claim.key for claim in suite.claims if whole or not claim.optional}
    assert set(result.verdicts().values()) <= set(VERDICTS)
    assert not list(find_regressions({suite.name: result.verdicts()}, result))
    for judgement in result.judgements:
        # One run tells nothing: what holds is exact, or a difference of exact numbers.
        if not math.isfinite(judgement.estimate.high - judgement.estimate.low):
            assert judgement.verdict == UNKNOWN
        if judgement.verdict == HOLDS:
            assert judgement.estimate.low <= judgement.estimate.value <= judgement.estimate.high
    rows = json.loads(to_json(result.rows()))
    assert len([row for row in rows if "claim" in row]) == len(result.judgements)
