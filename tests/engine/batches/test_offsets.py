"""Spark's text of the offsets of all sources is split into the offsets of each."""

from typing import Any

import pytest

from rheostat.engine.batches.offsets import FileCounter, split_offsets


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


def test_files_are_counted_by_rows_that_were_read_and_bytes_that_wait() -> None:
    files = FileCounter()
    files.enter_listing({"logOffset": 0, "taken": 1000, "waiting": 500})
    assert files.records({"logOffset": 0, "waiting": 500}) is None  # no batch has shown yet what a byte holds
    files.enter_batch({"logOffset": 0}, 10)
    files.enter_listing({"logOffset": 2, "taken": 3000, "waiting": 0})
    files.enter_batch({"logOffset": 1}, 5)
    files.enter_batch('{"logOffset": 1}', 5)  # the same once more
    files.enter_batch({"logOffset": 2}, 15)
    assert [files.records({"logOffset": number}) for number in range(4)] == [10.0, 15.0, 30.0, None]
    # 20 rows in 2000 bytes: what waits, and what the running batch has taken.
    assert files.records({"logOffset": 2, "taken": 3000, "waiting": 700}) == 37.0
    files.enter_listing({"logOffset": 3, "taken": 3400, "waiting": 300})
    assert files.records({"logOffset": 3}) == 34.0
    assert files.records({"logOffset": 3, "waiting": 300}) == 37.0
    assert files.records(None) is files.records(7) is None
    # Files that were read and deleted take nothing away.
    files.enter_listing({"logOffset": 4, "taken": 100, "waiting": 300})
    assert files.records({"logOffset": 4, "waiting": 300}) == 33.0
