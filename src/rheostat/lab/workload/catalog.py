"""Pipelines by name."""

from __future__ import annotations

from collections.abc import Mapping

from rheostat.errors import InvalidValue, nearest
from rheostat.lab.workload import nexmark, topspeed, wordcount, ysb
from rheostat.lab.workload.pipeline import Pipeline

PIPELINES: Mapping[str, Pipeline] = {
    pipeline.name: pipeline for pipeline in (*nexmark.QUERIES, wordcount.WORDCOUNT, ysb.YSB, topspeed.TOPSPEED)
}
"""Name -> pipeline; pyspark is imported when one is built."""


def pipeline_named(name: str) -> Pipeline:
    """Return a pipeline; the error for an unknown name suggests another."""
    if name not in PIPELINES:
        raise InvalidValue(f"unknown pipeline {name!r}, {nearest(name, PIPELINES)}")
    return PIPELINES[name]
