"""The page about claims lists what was fitted, as the suites have it."""

import pytest
from project import ROOT

from rheostat.lab.papers import registry


@pytest.mark.parametrize("name", registry.SUITES)
def test_every_fit_is_on_the_page(name: str) -> None:
    text = (ROOT / "docs" / "claims.md").read_text()
    for fit in registry.suite(name).fits:
        assert f"| {name} | {fit.what} | {fit.data} | {fit.cells} |" in text
