"""`rheostat run` refuses what cannot be run before it starts a Spark; how it runs is in tests/spark/test_run.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Command


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a module of the user's."""
    (tmp_path / "pages.py").write_text("SIZE = 3\n\ndef start(allocation):\n    raise RuntimeError('not yet')\n")
    (tmp_path / "pages.yaml").write_text("pipeline: pages:start\npolcy: ds2\n")
    (tmp_path / "needy.py").write_text("import no_such_library\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["pages"], ["'pages'", "pages:start"]),
        (["folder/pages.py:start"], ["folder.pages:start"]),
        (["page:start"], ["'page'", "did you mean 'pages'"]),
        (["pages:strat"], ["'strat'", "did you mean 'start'"]),
        (["pages:SIZE"], ["pages:SIZE is a int"]),
        (["needy:start"], ["'no_such_library'"]),
        (["nowhere.yaml"], ["'nowhere.yaml'", "No such file"]),
        (["pages.yaml"], ["unknown key 'polcy'", "did you mean 'policy'"]),
        (["pages:start", "--max-executors", "many"], ["max_executors", "'many'"]),
        (["pages:start", "--min-executors", "3", "--max-executors", "2"], ["3", "2"]),
        (["pages:start", "--mode", "continuous"], ["mode", "'continuous'"]),
        (["pages:start", "--set", "guards.frozen"], ["--set", "'guards.frozen'", "KEY=VALUE"]),
        (["pages:start", "--set", "guards.cooldown=3"], ["guards.cooldown", "did you mean"]),
        (["pages:start", "--option", "topic=clicks"], ["topic", "rheostat.pipeline"]),
        (["pages:start", "--policy", "conttune:bgi=1"], ["bgi", "did you mean 'big'"]),
        (["pages:start", "--policy", "ds3"], ["'ds3'", "'ds2'"]),
        (["pages:start", "--headroom", "x"], ["slo.headroom", "'x'"]),
        (["pages:start", "--interval", "soon"], ["interval_s", "'soon'"]),
        (["pages:start", "--seconds", "0"], ["seconds", "0"]),
        (["pages:start", "--conf", "shuffle=3"], ["'shuffle'", "spark."]),
        (["pages:start", "--cores", "0"], ["cores", "0"]),
        (["pages:start", "--master", "local[2]"], ["local[2]"]),
        (["pages:start", "--html", "nowhere/page.html"], ["'nowhere'"]),
    ],
)
def test_what_cannot_run_is_refused(rheostat: Command, arguments: list[str], words: list[str]) -> None:
    ended = rheostat("run", *arguments)
    assert ended.code == 2
    assert all(word in ended.err for word in words), ended.err
    assert "Traceback" not in ended.err
