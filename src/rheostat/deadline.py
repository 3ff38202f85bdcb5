"""Calls with a deadline: an engine that hangs must not hang the loop."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from rheostat.errors import EngineLate

T = TypeVar("T")


class Deadline:
    """Runs calls one at a time and gives up waiting after `seconds`; None waits for ever, on the caller's thread.

    A thread cannot be killed: the late call goes on, its answer is dropped, and until it returns further
    calls are refused at once, so that hanging calls never pile up.
    """

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self._late: threading.Thread | None = None
        self._late_what = ""

    def call(self, what: str, function: Callable[[], T]) -> T:
        """Return what the function returns, raise what it raises, or raise EngineLate."""
        if self.seconds is None:
            return function()
        if self._late is not None and self._late.is_alive():
            raise EngineLate(f"{what}: waiting for an earlier {self._late_what} that has not returned")
        answers: list[T] = []
        errors: list[BaseException] = []

        def work() -> None:
            try:
                answers.append(function())
            except BaseException as error:  # noqa: BLE001 - carried over to the caller's thread below
                errors.append(error)

        thread = threading.Thread(target=work, name=f"rheostat-{what}", daemon=True)
        thread.start()
        thread.join(self.seconds)
        if thread.is_alive():
            self._late, self._late_what = thread, what
            raise EngineLate(f"{what} did not return within {self.seconds:g} s")
        if errors:
            raise errors[0]
        return answers[0]
