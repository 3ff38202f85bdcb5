from __future__ import annotations

from dataclasses import fields

from project import ROOT

from rheostat import Options
from rheostat.cli.reference import descriptions, page, type_text
from rheostat.config.run_file import RunFile
from rheostat.engine.testbed.loads import LOADS, Steps
from rheostat.job.slo import SLO
from rheostat.lab.experiment.config import Config
from rheostat.policy.registry import POLICIES

PAGE = ROOT / "docs" / "configuration.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make docs`"


def test_every_key_of_a_run_has_a_sentence() -> None:
    assert set(descriptions(Config)) == set(Config.model_fields)


def test_every_key_of_a_live_run_has_a_sentence() -> None:
    for cls in (RunFile, Options):
        assert set(descriptions(cls)) == {field.name for field in fields(cls)}


def test_a_users_own_job_comes_before_the_simulator() -> None:
    text = page()
    places = [text.index(f"\n## {title}\n") for title in ("`rheostat run`", "`rheostat.Options`", "A simulated run")]
    assert places == sorted(places)


def test_sentences_of_a_base_are_read_too() -> None:
    assert set(descriptions(Steps)) == {"levels", "hold_s", "noise"}


def test_types_are_said_in_words() -> None:
    assert type_text(tuple[float, ...]) == "list of number"
    assert type_text(SLO | None) == "[SLO](#slo) or none"


def test_all_policies_and_loads_are_on_the_page() -> None:
    text = page()
    assert all(f"### `{name}`" in text for name in [*POLICIES, "oracle", *LOADS])
