"""The page about claims lists what was fitted, as the suites have it, and the recorded verdicts."""

import re

import pytest
from project import ROOT

from rheostat.lab.papers import registry
from rheostat.lab.papers.claim import FAILS, HOLDS, UNKNOWN
from rheostat.lab.papers.verdicts import read_verdicts, verdict_file

PAGE = (ROOT / "docs" / "claims.md").read_text()


@pytest.mark.parametrize("name", registry.SUITES)
def test_every_fit_is_on_the_page(name: str) -> None:
    for fit in registry.suite(name).fits:
        assert f"| {name} | {fit.what} | {fit.data} | {fit.cells} |" in PAGE


@pytest.mark.parametrize("size", ["quick", "full"])
def test_the_table_of_a_size_has_the_recorded_verdicts(size: str) -> None:
    section = PAGE.partition(f"<!-- recorded: {size} -->")[2].partition("<!-- /recorded -->")[0]
    rows = re.findall(r"^\| (\w+) \| (\d+) \| (\d+) \(\d+\) \| (\d+) \(\d+\) \| (\d+) \(\d+\) \|$", section, re.M)
    stored = {name: list(claims.values()) for name, claims in read_verdicts(verdict_file(size)).items()}
    assert set(stored) == set(registry.SUITES)
    assert {name: tuple(map(int, counts)) for name, *counts in rows} == {
        name: (len(verdicts), *(verdicts.count(verdict) for verdict in (HOLDS, FAILS, UNKNOWN)))
        for name, verdicts in stored.items()
    }
