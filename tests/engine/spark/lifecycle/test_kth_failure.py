"""Whichever call of a pipeline fails, and however: a query runs again, and every record is counted once.

Each case tries every fifth call, with an offset and a state format of its own. `RHEOSTAT_EVERY_K=1` tries every call
with every format.
"""

import json
import os
import subprocess
import sys
from itertools import product

import kth_failure
import pytest

EVERY = bool(os.environ.get("RHEOSTAT_EVERY_K"))
STRIDE = 5
HOWS = ("raise", "lost", "kill")
FORMATS = (("1", "true"), ("1", "false"), ("2", "false"))
"""Version of the state format, and whether it has changelogs."""
CALLS = {
    "begin": 20,
    "stop": 4,
    "restart": 20,
    "move": 30,
    "move-without-exactly-once": 30,
    "refused-move": 30,
    "refused-move-without-exactly-once": 30,
    "repair": 20,
    "repair-without-exactly-once": 20,
}
"""Least number of calls of a scenario, by which a scenario that has become empty is seen."""
GOES_ON = ("restart", "move", "refused-move")
"""Beginnings of the scenarios in which a driver that lives never ends without a query."""


def cases() -> list[tuple[str, str, str, str, int, int]]:
    pairs = list(enumerate(product(CALLS, HOWS)))
    if EVERY:
        return [(scenario, how, *written, 1, 0) for _, (scenario, how) in pairs for written in FORMATS]
    return [(scenario, how, *FORMATS[(n + n // 3) % 3], STRIDE, n % STRIDE) for n, (scenario, how) in pairs]


def test_the_cases_cover_every_scenario_format_and_offset() -> None:
    assert set(CALLS) == set(kth_failure.SCENARIOS)
    tried = cases()
    assert {case[:2] for case in tried} == set(product(CALLS, HOWS))
    stride = tried[0][4]
    assert {(*case[2:4], case[5]) for case in tried} == {(*each, n) for each in FORMATS for n in range(stride)}
    assert {(case[0], *case[2:4]) for case in tried} == {(each, *written) for each in CALLS for written in FORMATS}


@pytest.mark.parametrize(("scenario", "how", "version", "changelog", "stride", "offset"), cases())
def test_whichever_call_fails_every_record_is_counted_once(
    scenario: str, how: str, version: str, changelog: str, stride: int, offset: int
) -> None:
    command = [sys.executable, kth_failure.__file__, scenario, how, version, changelog, str(stride), str(offset)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    story = json.loads(done.stdout)
    assert story["wrong"] == []
    assert story["tried"] >= (CALLS[scenario] - offset) // stride
    if how != "kill" and scenario.startswith(GOES_ON):
        assert story["went_on"] == story["tried"]
