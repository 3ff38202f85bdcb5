"""The demo's job on Spark: the Yahoo streaming benchmark in micro-batches, paced to a known capacity per slot.

Origin: `lab/demo/microbatch.py` (pace, partitions, trigger, executors) and SPARK.md (how executors come and go). What a
batch costs besides its records depends on the machine. Here it is as in one run of the demo's query on two cores
that others used too, one to six executors: 0.3 to 0.6 s around the tasks, and 0.2 s for every wave (of which the stage
behind the shuffle is a part) on one to three slots, more on six.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rheostat.engine.simulated.curves import Linear
from rheostat.engine.simulated.microbatch.discipline import MicroBatch
from rheostat.engine.simulated.plant import Metrics, Plant, PlantOperator
from rheostat.job.graph import Graph

ORIGIN = "`rheostat demo`: pace, partitions, trigger and executors as set there, costs and waits as measured once"


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
