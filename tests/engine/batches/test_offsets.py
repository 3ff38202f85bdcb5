"""Spark's text of the offsets of all sources is split into the offsets of each."""

from typing import Any

import pytest

from rheostat.engine.batches.offsets import split_offsets


@pytest.mark.parametrize(
    ("text", "offsets"),
    [
        ('[{"offset":40000,"timestamp":1000}]', ({"offset": 40000, "timestamp": 1000},)),
        ("[-]", (None,)),
        ("[5]", (5,)),
        ("[-5]", (-5,)),
        ("[any, text]", ("any, text",)),
        ('[-, {"logOffset":0}]', (None, {"logOffset": 0})),
        ('[{"a, b":{"0":5}}, -]', ({"a, b": {"0": 5}}, None)),
        ("[-1, -, 7]", (-1, None, 7)),
        ("[]", ()),
    ],
)
def test_offsets_are_split(text: str, offsets: tuple[Any, ...]) -> None:
    assert split_offsets(text, len(offsets)) == offsets


@pytest.mark.parametrize(("text", "count"), [("[any, text]", 2), ("[1, 2]", 3)])
def test_offsets_that_cannot_be_split_are_refused(text: str, count: int) -> None:
    with pytest.raises(ValueError, match=r".+"):
        split_offsets(text, count)
