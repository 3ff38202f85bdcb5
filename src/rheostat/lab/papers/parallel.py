"""Runs of a suite on as many processes as there are cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Any

Progress = Callable[[str, float], None]
"""Told what is done, and the share of all work."""
Task = tuple[str, Callable[..., Any], tuple[object, ...]]
"""A name, a function of a module, and its arguments."""


def run_tasks(tasks: Sequence[Task], progress: Progress, workers: int | None = None) -> dict[str, Any]:
    """Return what every task came to, by name."""
    found: dict[str, Any] = {}
    workers = workers or os.cpu_count() or 1
    if workers == 1:
        for name, work, arguments in tasks:
            found[name] = work(*arguments)
            progress(name, len(found) / len(tasks))
        return found
    # A new interpreter per worker, with one thread each: the matrices are small, and forks of threads are trouble.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        waiting: dict[Future[Any], str] = {pool.submit(work, *rest): name for name, work, rest in tasks}
        for future in as_completed(waiting):
            found[waiting[future]] = future.result()
            progress(waiting[future], len(found) / len(tasks))
    return found
