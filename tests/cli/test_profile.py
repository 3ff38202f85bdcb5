from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Command

QUICKLY = ("--rate-step", "40000", "--smallest", "2", "--largest", "8", "--deployments", "3")


def test_a_profile_is_made_kept_and_gone_on_with(rheostat: Command, tmp_path: Path) -> None:
    journal, file = tmp_path / "profile.db", tmp_path / "profile.json"
    ended = rheostat("profile", "phoebe-ysb", *QUICKLY, "--journal", journal, "--json", file)
    assert ended.code == 0, ended.err
    assert "profile 8 at 40000/s: 40,000/s processed, latency" in ended.out
    found = json.loads(file.read_text())
    able = {row["scale_out"]: row["most_per_s"] for row in found["profile"]}
    assert list(able) == [2, 5, 8]
    assert able[2] < able[5] < able[8]
    again = rheostat("profile", "phoebe-ysb", *QUICKLY, "--journal", journal)
    assert f"the journal already has {len(found['measurements'])} measurements of phoebe-ysb" in again.out
    assert "processed, latency" not in again.out
    policy = "phoebe:smallest=2:largest=8:deployments=3:rate_step_per_s=40000"
    ran = rheostat(
        "simulate", "--job", "phoebe-ysb", "--load", "constant:value=50000", "--duration", "900", "--policy", policy,
        "--journal", journal,
    )  # fmt: skip
    assert ran.code == 0, ran.err
    # The policy begins with this profile and asks for no other.
    assert "profiles" not in ran.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("phoebe-ysb", "--rate-step", "fast"), "--rate-step must be a number, not 'fast'"),
        (
            ("phoebe-ysb", "--rate-step", "10", "--deployments", "2.5"),
            "--deployments must be a whole number, not '2.5'",
        ),
        (("phoebe-ysb", "--rate-step", "10", "--smallest", "9", "--largest", "4"), "largest of a profile"),
        (("phoebe-ysb", "--rate-step", "10", "--engine", "sprak"), "unknown engine"),
    ],
)
def test_what_is_wrong_is_said(rheostat: Command, arguments: tuple[str, ...], message: str) -> None:
    ended = rheostat("profile", *arguments)
    assert ended.code == 2
    assert message in ended.err
