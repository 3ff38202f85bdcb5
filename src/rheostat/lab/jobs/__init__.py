"""Simulated jobs: one file per paper whose comparison they reproduce, and Spark's.

| file | what |
|---|---|
| `conttune.py`, `streambed.py`, `dragster.py`, `autrascale.py`, `phoebe.py` | the papers' jobs |
| `hard.py` | jobs that break a policy's assumptions: drift, skew, state, graphs that are no chains |
| `spark.py`, `realtime.py` | the demo's job in micro-batches; WordCount and YSB in real-time mode |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rheostat.engine.simulated.plant import Plant
from rheostat.errors import InvalidValue, nearest
from rheostat.lab.jobs import autrascale, conttune, dragster, hard, phoebe, realtime, spark, streambed

JOBS: Mapping[str, Callable[[], Plant]] = {
    **conttune.JOBS,
    **streambed.JOBS,
    **phoebe.JOBS,
    **dragster.JOBS,
    **autrascale.JOBS,
    **spark.JOBS,
    **realtime.JOBS,
    **hard.JOBS,
}


def job(name: str) -> Plant:
    """Return a job by name."""
    if name not in JOBS:
        raise InvalidValue(f"unknown job {name!r}, {nearest(name, JOBS)}")
    return JOBS[name]()
