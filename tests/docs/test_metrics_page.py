"""The page of metrics lists the names that Prometheus gets, and no others."""

from __future__ import annotations

import re

import pytest
from project import ROOT

pytest.importorskip("prometheus_client")

from rheostat.api.exposition import Counts, families
from rheostat.job.allocation import Allocation
from rheostat.job.observation import Latency, Observation, OperatorReading, SourceReading

PAGE = (ROOT / "docs" / "metrics.md").read_text()
WINDOW = Observation(
    at_s=30.0,
    start_s=0.0,
    end_s=30.0,
    sources=(SourceReading("job", 10.0, 5.0, 1.0, files_waiting=3, bytes_waiting=4096, versions_waiting=2),),
    operators=(OperatorReading("job", 1, 10.0, useful_share=0.5, true_rate_per_s=20.0, cpu_share=0.4, state_bytes=7),),
    latency=Latency(1, 2, 3, 1, 2, 3),
    running=Allocation({"job": 1}),
    wanted=None,
    downtime_s=1.0,
)


def test_all_names_are_on_the_page_and_no_others() -> None:
    counts = Counts({"clicks": 3}, executors=1, changes=2, policy_failures=0)
    names = {sample.name for family in families("clicks", WINDOW, counts) for sample in family.samples}
    (table,) = re.findall(r"\| name \|.*?\n\n", PAGE, re.DOTALL)
    assert set(re.findall(r"^\| `(rheostat_\w+)`", table, re.MULTILINE)) == names


def test_labels_are_those_of_the_page() -> None:
    counts = Counts({"clicks": 3}, executors=1, changes=2, policy_failures=0)
    labels = dict(re.findall(r"^\| `(rheostat_\w+)` \| `?(\w*)`? ?\|", PAGE, re.MULTILINE))
    for family in families("clicks", WINDOW, counts):
        for sample in family.samples:
            assert "".join(sample.labels.keys() - {"job"}) == labels[sample.name], sample.name
