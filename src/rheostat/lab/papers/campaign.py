"""Several suites as one set of parts: all cores stay busy, and a suite that fails does not stop the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rheostat.errors import InvalidValue, first_line
from rheostat.lab.papers.parallel import Outcome, Progress, Runner, Task, run_part
from rheostat.lab.papers.result import Result
from rheostat.lab.papers.suite import Suite

SEPARATOR = ": "
"""Between a suite's name and that of its part."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A suite that ended without a result."""

    suite: str
    error: str


def reproduce(suites: Sequence[Suite[Any, Any]], size: str, progress: Progress, run: Runner) -> list[Result | Failed]:
    """Run all suites and return their results, or the first error of each that failed."""
    parts: list[Task] = [_of(suite, task) for suite in suites for task in suite.parts(suite.size(size))]
    alone: list[Task] = [_of(suite, task) for suite in suites for task in suite.alone(suite.size(size))]
    results: dict[str, Any] = {}
    errors: dict[str, Exception] = {}
    ended = 0

    def note(outcome: Outcome) -> None:
        nonlocal ended
        ended += 1
        if isinstance(outcome.result, Exception):
            # A mistake of the user, and the failure of the only suite, end everything at once.
            if isinstance(outcome.result, InvalidValue) or len(suites) == 1:
                raise outcome.result
            errors.setdefault(outcome.name.partition(SEPARATOR)[0], outcome.result)
        results[outcome.name] = outcome.result
        progress(f"{outcome.name} ({outcome.cpu_s:.1f} s)", ended / (len(parts) + len(alone)))

    for outcome in run(parts):
        note(outcome)
    for task in alone:
        if task[0].partition(SEPARATOR)[0] not in errors:
            note(run_part(task))
    return [_result(suite, size, results, errors.get(suite.name)) for suite in suites]


def _of(suite: Suite[Any, Any], task: Task) -> Task:
    return (suite.name + SEPARATOR + task[0], *task[1:])


def _result(suite: Suite[Any, Any], size: str, results: dict[str, Any], error: Exception | None) -> Result | Failed:
    if error is not None:
        return Failed(suite.name, first_line(error))
    start = suite.name + SEPARATOR
    own = {name.removeprefix(start): result for name, result in results.items() if name.startswith(start)}
    return suite.result(suite.gather(suite.size(size), own))
