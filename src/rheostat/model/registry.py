"""Capacity models by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rheostat.model.capacity import CapacityModel, Sample
from rheostat.model.gp import GaussianProcess
from rheostat.model.linear import Linear
from rheostat.model.loglog import LogLog

MODELS: Mapping[str, Callable[[Sequence[Sample]], CapacityModel]] = {
    "linear": Linear.fit,
    "gp": GaussianProcess.fit,
    "loglog": LogLog.fit,
}
