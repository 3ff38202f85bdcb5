"""Parts of a suite in parallel, one process per core."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import Any

from rheostat.errors import RheostatError

Progress = Callable[[str, float], None]
"""Takes the name of a finished part, and the share of all work that is done."""
Task = tuple[str, Callable[..., Any], tuple[object, ...]]
"""Name, module-level function and its arguments."""


class PartFailed(RheostatError):  # noqa: N818
    """A part raised an exception: the suite ends without a result."""


def run_tasks(tasks: Sequence[Task], progress: Progress, workers: int | None = None) -> dict[str, Any]:
    """Return the results of all tasks by name."""
    results: dict[str, Any] = {}
    workers = workers or os.cpu_count() or 1
    if workers == 1:
        for task in tasks:
            results[task[0]] = _run(*task)
            progress(task[0], len(results) / len(tasks))
        return results
    # A new interpreter per worker with one BLAS thread: the matrices are small, and forking threads is unsafe.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_end_with_parent) as pool:
        waiting: dict[Future[Any], str] = {pool.submit(_run, *task): task[0] for task in tasks}
        try:
            for future in as_completed(waiting):
                results[waiting[future]] = future.result()
                progress(waiting[future], len(results) / len(tasks))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return results


def _run(name: str, work: Callable[..., Any], arguments: tuple[object, ...]) -> Any:
    """Run a part; raise its exception with the part's name and the first line."""
    try:
        return work(*arguments)
    except RheostatError:
        raise
    except Exception as error:
        first = next(iter(str(error).splitlines()), "")
        raise PartFailed(f"{name} failed: {type(error).__name__}: {first}") from error


def _end_with_parent() -> None:
    """End this worker when its parent dies, so that a killed suite leaves no process behind."""
    parent = parent_process()
    assert parent is not None

    def end() -> None:
        parent.join()
        os._exit(1)

    Thread(target=end, daemon=True).start()
