from __future__ import annotations

import math
from typing import Any

import pytest

from rheostat.config import parse_named
from rheostat.config.named import label, named
from rheostat.errors import InvalidValue


@pytest.mark.parametrize(
    ("text", "name", "options"),
    [
        ("ds2", "ds2", {}),
        ("ds2:activation_windows=3:scaling_factor=0.1", "ds2", {"activation_windows": 3, "scaling_factor": 0.1}),
        ("steps:levels=1+5+10:hold_s=300", "steps", {"levels": [1, 5, 10], "hold_s": 300}),
        ("steps:levels=5+", "steps", {"levels": [5]}),
        ("trace:file=data/a.b.csv:scale=1e-3", "trace", {"file": "data/a.b.csv", "scale": 0.001}),
        ("./dir/steady.py:option=1", "./dir/steady.py", {"option": 1}),
        ("ds2:target_rate_ratio=Infinity", "ds2", {"target_rate_ratio": math.inf}),
        ("ds2:ignore_single_decrease=false", "ds2", {"ignore_single_decrease": False}),
        ("dhalion:idle_below=none", "dhalion", {"idle_below": None}),
        ("x:text=a+b:sum=1e+3", "x", {"text": "a+b", "sum": 1000.0}),
    ],
)
def test_the_short_form_is_read(text: str, name: str, options: dict[str, Any]) -> None:
    assert parse_named(text) == (name, options)


@pytest.mark.parametrize("text", ["", ":a=1", "ds2:windows", "ds2:=3", "ds2:a=1:a=2", "ds2:a={"])
def test_what_cannot_be_read_is_named(text: str) -> None:
    with pytest.raises(InvalidValue):
        parse_named(text)


def test_a_mapping_says_the_same() -> None:
    assert named({"shape": "sine", "mean": 2}, "shape", "load") == named("sine:mean=2", "shape", "load")


@pytest.mark.parametrize("value", [{"mean": 2}, {"shape": 3}, 7])
def test_a_mapping_needs_a_name(value: Any) -> None:
    with pytest.raises(InvalidValue, match="load"):
        named(value, "shape", "load")


def test_a_label_reads_back() -> None:
    text = "steps:levels=1+5:hold_s=300"
    assert label(*parse_named(text)) == text
