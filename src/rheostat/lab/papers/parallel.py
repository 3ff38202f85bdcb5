"""Parts of suites in parallel, one process per core."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import Any

from rheostat.errors import PolicyError, RheostatError

Progress = Callable[[str, float], None]
"""Takes the name of a finished part, and the share of all work that is done."""
Task = tuple[str, Callable[..., Any], tuple[object, ...]]
"""Name, module-level function and its arguments."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A part that has ended."""

    name: str
    result: Any
    """Its result, or the error that it raised."""
    cpu_s: float = field(default=0.0, compare=False)
    """CPU seconds that it took."""


Runner = Callable[[Sequence[Task]], Iterator[Outcome]]
"""Runs parts and yields each as it ends."""


class PartFailed(RheostatError):  # noqa: N818
    """A part raised an exception: the suite ends without a result."""


def run_tasks(tasks: Sequence[Task], progress: Progress, workers: int | None = None) -> dict[str, Any]:
    """Return the results of all tasks by name; the first failure ends them all."""
    results: dict[str, Any] = {}
    for outcome in run_in_processes(tasks, workers):
        if isinstance(outcome.result, Exception):
            raise outcome.result
        results[outcome.name] = outcome.result
        progress(outcome.name, len(results) / len(tasks))
    return results


def run_in_processes(tasks: Sequence[Task], workers: int | None = None) -> Iterator[Outcome]:
    """Yield every task as it ends; with one worker they run in this process."""
    workers = workers or os.cpu_count() or 1
    if workers == 1:
        for task in tasks:
            yield run_part(task)
        return
    # A new interpreter per worker with one BLAS thread: the matrices are small, and forking threads is unsafe.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_prepare_worker) as pool:
        waiting: list[Future[Outcome]] = [pool.submit(run_part, task) for task in tasks]
        try:
            for future in as_completed(waiting):
                yield future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def run_part(task: Task) -> Outcome:
    """Run a part and time it."""
    started = time.process_time()
    result = _result(task)
    return Outcome(task[0], result, time.process_time() - started)


def _result(task: Task) -> Any:
    """Return a part's result, or its error with its name and the first line; a mistake of the user stays as it is."""
    name, work, arguments = task
    try:
        return work(*arguments)
    except PolicyError as error:
        return PolicyError(f"{name}: {error}")
    except RheostatError as error:
        return error
    except Exception as error:  # noqa: BLE001 - it fails the suite, by name
        first = next(iter(str(error).splitlines()), "")
        failure = PartFailed(f"{name} failed: {type(error).__name__}: {first}")
        failure.__cause__ = error
        return failure


def _prepare_worker() -> None:
    """End this worker when its parent dies, so that a killed suite leaves no process behind; collect garbage rarely.

    The records of all runs stay until a part ends: looking through them often takes a twentieth of the time.
    """
    gc.set_threshold(50_000, 20, 100)
    parent = parent_process()
    assert parent is not None

    def end() -> None:
        parent.join()
        os._exit(1)

    Thread(target=end, daemon=True).start()
