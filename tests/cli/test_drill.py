from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from .conftest import Command

QUICKLY = ("--rate", "60000", "--size", "12", "--settle", "60")


def test_a_drill_is_journaled_and_a_later_run_begins_with_it(rheostat: Command, tmp_path: Path) -> None:
    journal, file = tmp_path / "drill.db", tmp_path / "drill.json"
    ended = rheostat("drill", "phoebe-ysb", *QUICKLY, "--journal", journal, "--json", file)
    assert ended.code == 0, ended.err
    assert "failure 3: " in ended.out
    downtime = json.loads(file.read_text())["downtime"]
    assert 50.0 < downtime["expected_s"] < downtime["nine_of_ten_s"] < 110.0
    again = rheostat("drill", "phoebe-ysb", *QUICKLY, "--failures", "1", "--journal", journal)
    assert "the journal already has 3 failures of phoebe-ysb" in again.out
    assert "failure 4: " in again.out
    run = ("simulate", "--job", "phoebe-ysb", "--load", "constant:value=60000", "--duration", "600", "--policy", "ds2")
    sizes = {}
    for name, more in (("drilled", ("--journal", journal)), ("unknown", ())):
        ran = rheostat(*run, "--max-recovery", "180", *more)
        assert ran.code == 0, ran.err
        first = re.search(r"job 5 -> (\d+)", ran.out)
        assert first is not None, ran.out
        sizes[name] = int(first.group(1))
    # The cost of not knowing.
    assert sizes["drilled"] < sizes["unknown"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("phoebe-ysb", "--rate", "much", "--size", "4"), "--rate must be a number, not 'much'"),
        (("phoebe-ysb", "--rate", "60000", "--size", "99"), "the drill ended early: job cannot have 99 tasks"),
        (("nothing", "--rate", "60000", "--size", "4"), "unknown job 'nothing'"),
    ],
)
def test_what_is_wrong_is_said(rheostat: Command, arguments: tuple[str, ...], message: str) -> None:
    ended = rheostat("drill", *arguments)
    assert ended.code == 2
    assert message in ended.err
