"""What an allocation means for a query: its shuffle partitions, the partitions of its state, its stops."""

from __future__ import annotations

from typing import Protocol

from rheostat.engine.spark.lifecycle.application import Query
from rheostat.engine.spark.lifecycle.checkpoint import StateStore
from rheostat.job.allocation import Allocation

JOB = "job"
"""The one operator of a micro-batch application."""
TASKS_PER_SLOT = 2
"""Tasks per slot at a start: the slots can double before the next restart, and a long task delays a stage half as
much."""
BATCH_S = 60.0
"""Seconds that a stop waits for the end of a batch. Then it interrupts the batch, which is repeated with more slots."""


class Shape(Protocol):
    """The meaning of an allocation for a query: shuffle partitions, state partitions, stops."""

    exactly_once: bool
    """Whether state may be repartitioned only after a whole batch has reached the sink."""

    def stop_wait_s(self) -> float:
        """Return the seconds to wait for the end of a batch before a stop interrupts it."""

    def shuffle_partitions(self, allocation: Allocation) -> int:
        """Return the number of shuffle partitions, which is also that of a new state."""

    def state_partitions(self, allocation: Allocation, state: StateStore) -> int:
        """Return the number of partitions that an existing state should have."""

    def with_state_partitions(self, allocation: Allocation, partitions: int) -> Allocation:
        """Return the allocation that fits a state with this number of partitions."""

    def is_processing(self, query: Query) -> bool:
        """Whether a query that has just started processes data."""


class MicroBatch:
    """All stages share the slots: each has several tasks per slot, and the state only gets more partitions."""

    exactly_once = True

    def stop_wait_s(self) -> float:
        """Return a minute: batches can take long just when more slots are needed."""
        return BATCH_S

    def shuffle_partitions(self, allocation: Allocation) -> int:
        """Return twice the slots."""
        return TASKS_PER_SLOT * allocation.slots

    def state_partitions(self, allocation: Allocation, state: StateStore) -> int:
        """Return twice the slots, or the present number if that is larger."""
        return max(state.partitions, TASKS_PER_SLOT * allocation.slots)

    def with_state_partitions(self, allocation: Allocation, partitions: int) -> Allocation:
        """Return the allocation unchanged: stages without state can use its slots."""
        return allocation

    def is_processing(self, query: Query) -> bool:
        """Return whether the first progress event has arrived, even one without a batch."""
        return query.lastProgress is not None
