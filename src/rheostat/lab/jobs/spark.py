"""The demo's job on Spark: the Yahoo streaming benchmark in micro-batches, paced to a known capacity per slot.

Pace, partitions, trigger and executors are those of `lab/demo/microbatch.py`; start and stop of executors follow the
defaults of the `microbatch` discipline, measured on Spark 4.3. The fixed cost of a batch depends on the machine. Here
it is that of one run of the demo on two shared cores with one to six executors: 0.3 to 0.6 s around the tasks, and 0.2
s for every wave (including the stage behind the shuffle) on one to three slots, more on six.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rheostat.engine.simulated.curves import Linear
from rheostat.engine.simulated.microbatch.discipline import MicroBatch
from rheostat.engine.simulated.plant import Metrics, Plant, PlantOperator
from rheostat.job.graph import Graph

ORIGIN = "`rheostat demo`: its pace, partitions, trigger and executors; batch costs of one measured run"


def ysb() -> Plant:
    """Return the demo's query on one to six executors of one slot."""
    return Plant(
        "spark-ysb",
        Graph(("job",), (), ("job",)),
        (PlantOperator("job", Linear(400.0), max_tasks=6),),
        {"job": 100.0},
        ORIGIN,
        metrics=Metrics(window_s=15.0, min_window_s=1.0, settle_s=0.0),
        discipline=MicroBatch(trigger_s=2.0, fixed_s=0.4, partitions=12, task_s=0.2),
    )


JOBS: Mapping[str, Callable[[], Plant]] = {"spark-ysb": ysb}
