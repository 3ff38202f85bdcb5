"""A run on micro-batches by second: latency, backlog, work and size, from Spark's own batches. Pure."""

from __future__ import annotations

import numpy as np

from rheostat.engine.batches.progress import Batch
from rheostat.lab.experiment.microbatch_job import MicroBatchJob
from rheostat.lab.experiment.run import Floats, Run

BatchRun = Run[MicroBatchJob]


def due_by_second(run: BatchRun) -> Floats:
    """Return the records due before every second, and at the end."""
    due = run.trial.schedule.due
    return np.array([due(second) for second in range(int(run.end_s) + 1)], dtype=float)


def records_of(run: BatchRun, batch: Batch) -> int:
    """Return the records of a batch."""
    due, source = run.trial.schedule.due, batch.sources[0]
    return due(int(source.end_offset)) - due(int(source.start_offset or 0))


def latencies(run: BatchRun) -> tuple[Floats, Floats, Floats]:
    """Return, for every second of the run, its number, the latency of its results, and its records.

    A second's records arrive in its middle, on average. The latency of records without a result is their age at the
    end.
    """
    seconds = np.arange(int(run.end_s))
    finished = np.full(len(seconds), run.end_s)
    for batch in run.batches:
        start, end = (int(batch.sources[0].start_offset or 0), int(batch.sources[0].end_offset))
        finished[start:end] = batch.end_s - run.start_s
    return seconds.astype(float), finished - (seconds + 0.5), np.diff(due_by_second(run))


def backlog(run: BatchRun) -> Floats:
    """Return the records without a result at the end of every second."""
    due = due_by_second(run)
    done = np.zeros(int(run.end_s))
    for batch in run.batches:
        done[max(0, int(np.ceil(batch.end_s - run.start_s)) - 1) :] = due[
            min(len(due) - 1, int(batch.sources[0].end_offset))
        ]
    return np.maximum(due[1:] - done, 0.0)


def worked(run: BatchRun) -> Floats:
    """Return the records that tasks had worked off by the end of every second.

    A task works evenly from its launch to its end. A batch whose tasks Spark has forgotten works evenly, too.
    """
    tasks = tasks_by_batch(run)
    ends_s = run.start_s + np.arange(1, int(run.end_s) + 1)
    total = np.zeros(len(ends_s))
    for batch in run.batches:
        for start_s, seconds, share in tasks.get(batch.number, [(batch.start_s, batch.seconds, 1.0)]):
            total += records_of(run, batch) * share * np.clip((ends_s - start_s) / max(seconds, 1e-9), 0.0, 1.0)
    return total


def tasks_by_batch(run: BatchRun) -> dict[int, list[tuple[float, float, float]]]:
    """Return the start, the seconds and the share of the records of every batch's tasks."""
    tasks: dict[int, list[tuple[float, float, float]]] = {}
    for number, start_s, seconds, share in run.tasks:
        tasks.setdefault(number, []).append((start_s, seconds, share))
    return tasks


def size_by_second(run: BatchRun) -> Floats:
    """Return the executors in the middle of every second."""
    moments = np.array([moment for moment, _ in run.sizes])
    counts = np.array([size for _, size in run.sizes], dtype=float)
    at = np.searchsorted(moments, np.arange(int(run.end_s)) + 0.5, side="right") - 1
    return counts[np.clip(at, 0, None)]
