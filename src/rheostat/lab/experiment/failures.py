"""A policy that raises in an experiment: the end of a run, or the text of a failed row."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rheostat.control.controller import Controller, Step
from rheostat.errors import PolicyError, RheostatError, first_line

if TYPE_CHECKING:
    from rheostat.api.scaler import Scaler


@contextmanager
def policy_errors(policy: str) -> Iterator[None]:
    """Turn an exception that a policy raises outside a step into a PolicyError; errors of Rheostat pass."""
    try:
        yield
    except RheostatError:
        raise
    except Exception as error:
        raise PolicyError(f"{policy} failed: {type(error).__name__}: {error}") from error


def _is_about_something_else(record: logging.LogRecord) -> bool:
    arguments = record.args if isinstance(record.args, tuple) else ()
    about_policy = any(isinstance(argument, PolicyError) for argument in arguments)
    return not about_policy and not (record.levelno == logging.DEBUG and record.exc_info)


@contextmanager
def unlogged_failures() -> Iterator[None]:
    """Keep failures of policies out of the log: here each becomes a failed row, or the exception that ends the run."""
    logger = logging.getLogger(Controller.__module__)
    logger.addFilter(_is_about_something_else)
    try:
        yield
    finally:
        logger.removeFilter(_is_about_something_else)


def raise_failure(steps: Iterable[Step]) -> None:
    """Raise the first failure of a policy among these steps, with its step and moment."""
    for step in steps:
        if step.policy_failure is not None:
            raise located(step.policy_failure, f"step {step.number}, at {step.observation.at_s:.0f} s")


def located(failure: PolicyError, where: str) -> PolicyError:
    """Return the failure in one line that ends with where it happened; the cause stays the policy's exception."""
    error = PolicyError(f"{first_line(failure)} ({where})")
    error.__cause__ = failure.__cause__
    return error


def scaler_failure(scaler: Scaler) -> str:
    """Return the first line of the error that ended a live scaler or its query; "" while both run."""
    return first_line(scaler.status) if scaler.status.startswith("failed") else ""
