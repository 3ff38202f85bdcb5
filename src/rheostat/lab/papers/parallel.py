"""Parts of a suite on as many processes as there are cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import Any

from rheostat.errors import RheostatError

Progress = Callable[[str, float], None]
"""Gets what is done, and the share of all work."""
Task = tuple[str, Callable[..., Any], tuple[object, ...]]
"""A name, a function of a module, and its arguments."""


class PartFailed(RheostatError):  # noqa: N818
    """A part raised: nothing is made of the others."""


def run_tasks(tasks: Sequence[Task], progress: Progress, workers: int | None = None) -> dict[str, Any]:
    """Return what every task came to, by name."""
    found: dict[str, Any] = {}
    workers = workers or os.cpu_count() or 1
    if workers == 1:
        for task in tasks:
            found[task[0]] = _run(*task)
            progress(task[0], len(found) / len(tasks))
        return found
    # A new interpreter per worker, with one thread each: the matrices are small, and forks of threads are trouble.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_end_with_parent) as pool:
        waiting: dict[Future[Any], str] = {pool.submit(_run, *task): task[0] for task in tasks}
        try:
            for future in as_completed(waiting):
                found[waiting[future]] = future.result()
                progress(waiting[future], len(found) / len(tasks))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return found


def _run(name: str, work: Callable[..., Any], arguments: tuple[object, ...]) -> Any:
    """Do a part; where it raises, say which one it is, with the first line of what it said."""
    try:
        return work(*arguments)
    except RheostatError:
        raise
    except Exception as error:
        first = next(iter(str(error).splitlines()), "")
        raise PartFailed(f"{name} failed: {type(error).__name__}: {first}") from error


def _end_with_parent() -> None:
    """End this worker when its parent is gone: a suite that is killed leaves no process behind."""
    parent = parent_process()
    assert parent is not None

    def end() -> None:
        parent.join()
        os._exit(1)

    Thread(target=end, daemon=True).start()
