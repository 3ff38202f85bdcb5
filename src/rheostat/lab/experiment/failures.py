"""Failures of a policy in an experiment: what a row says about them, and how a run ends with one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rheostat.control.controller import Step
from rheostat.errors import PolicyError, RheostatError

if TYPE_CHECKING:
    from rheostat.api.scaler import Scaler


def first_line(error: object) -> str:
    """Return the first line of an error's message."""
    return next(iter(str(error).splitlines()), type(error).__name__)


@contextmanager
def policy_errors(policy: str) -> Iterator[None]:
    """Raise whatever the policy raises outside a step as a PolicyError; refused values stay what they are."""
    try:
        yield
    except RheostatError:
        raise
    except Exception as error:
        raise PolicyError(f"{policy} failed: {type(error).__name__}: {error}") from error


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


def scaler_failure(scaler: Scaler) -> PolicyError | None:
    """Return the error that ended a live scaler; None while it works."""
    status = scaler.status
    return PolicyError(f"the scaler ended: {status}") if status.startswith("failed") else None
