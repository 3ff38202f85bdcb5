"""Records of Delta and Iceberg tables before an offset."""

from __future__ import annotations

import json

from rheostat.engine.batches.present import Waiting, add_waiting
from rheostat.engine.batches.tables import (
    RETAINED,
    Added,
    DeltaCounter,
    IcebergCounter,
    VersionLog,
    parse_commit,
    parse_summary,
)


def commit(*counts: int | None, **more: object) -> str:
    stats = [None if count is None else json.dumps({"numRecords": count}) for count in counts]
    adds = [
        {"path": f"{k}.parquet", "size": 100, "dataChange": True, "stats": one, **more} for k, one in enumerate(stats)
    ]
    return "\n".join(json.dumps(action) for action in ({"commitInfo": {}}, *({"add": add} for add in adds)))


def offset(version: int, index: int = -1, first: bool = False) -> dict[str, object]:
    return {"sourceVersion": 1, "reservoirVersion": version, "index": index, "isStartingVersion": first}


def test_a_commit_counts_the_records_of_its_new_files() -> None:
    assert parse_commit(commit(10, 5)) == Added(2, 200, (0.0, 10.0, 15.0))
    assert parse_commit(commit(10, 5, dataChange=False)) == Added(0, 0, (0.0,))  # compaction moves what was there
    assert parse_commit('{"remove": {"path": "a"}}\n') == Added(0, 0, (0.0,))
    assert parse_commit("") == Added(0, 0, (0.0,))


def test_files_without_statistics_have_the_records_of_their_bytes() -> None:
    assert parse_commit(commit(10, None)).records == (0.0, 10.0, 20.0)
    assert parse_commit(commit(None, None)).records == (0.0, 0.0, 0.0)
    assert parse_commit('{"add": {"path": "a", "size": 7, "stats": "not json"}}').records == (0.0, 0.0)


def test_an_offset_of_delta_counts_versions_and_files() -> None:
    counter = DeltaCounter()
    assert counter.records(offset(4)) is None
    for version, text in ((4, commit(10, 5)), (5, commit()), (6, commit(20))):
        counter.enter(version, parse_commit(text))
    assert [counter.records(offset(4, index)) for index in (-100, -1, 0, 1, 2**62)] == [0, 0, 10, 15, 15]
    assert [counter.records(offset(version)) for version in (5, 6, 7)] == [15, 15, 35]
    assert counter.records(json.dumps(offset(6, 0))) == 35
    assert (counter.records(offset(8)), counter.records(offset(3)), counter.records(None)) == (None, None, None)
    assert counter.records(offset(4, 1, first=True)) is None
    assert counter.ahead(offset(7), 1.0) is None
    assert counter.behind(4, 1) == Waiting(2, 200, 3)  # a file of version 4, all of 5 and 6
    assert counter.behind(4, 2) == Waiting(1, 100, 2)
    assert counter.behind(6, 1) == Waiting(0, 0, 0)
    assert counter.behind(7, 0) == Waiting(0, 0, 0)  # the next version is not there yet


def test_an_offset_of_iceberg_counts_snapshots_and_positions() -> None:
    counter = IcebergCounter()
    append = {"operation": "append", "added-data-files": "4", "added-records": "100", "added-files-size": "4000"}
    counter.enter(11, parse_summary(append))
    counter.enter(12, parse_summary({**append, "operation": "replace"}))
    counter.enter(13, parse_summary(append))
    at = [(11, 0), (11, 1), (11, 4), (12, 0), (13, 2), (13, 4), (14, 0)]
    found = [counter.records({"version": 1, "snapshot_id": one, "position": place}) for one, place in at]
    assert found == [0, 25, 100, 100, 150, 200, None]
    assert counter.records({"snapshot_id": 11, "position": 0, "scan_all_files": True}) is None
    assert counter.behind(13, 1) == Waiting(3, 3000, 1)
    assert counter.behind(11, 4) == Waiting(4, 4000, 2)


def test_what_waits_at_several_sources_is_added_up() -> None:
    assert add_waiting([Waiting(1, 10), Waiting(2, 20)]) == Waiting(3, 30)
    assert add_waiting([Waiting(1, 10), Waiting(2, 20, 3)]) == Waiting(3, 30, 3)


def test_the_log_is_bounded() -> None:
    log = VersionLog()
    for version in range(RETAINED + 10):
        log.enter(version, Added(1, 1, (0.0, 1.0)))
    assert len(log) == RETAINED
    assert log.before(9, 0) is None
    assert log.before(10, 1) == 11
