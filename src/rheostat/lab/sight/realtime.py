"""One run of the sight bench in real-time mode: a paced WordCount, a load with known counts, a scaler with defaults.

The truth comes from the producer's own count and from the output topic, whose broker notes when each result came.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from rheostat.clock import WallClock
from rheostat.engine.spark.session.log4j import quiet
from rheostat.engine.testbed.loads import Steps
from rheostat.engine.testbed.schedule import Schedule
from rheostat.job.allocation import Allocation
from rheostat.kafka.broker import Broker
from rheostat.kafka.load import start_load
from rheostat.kafka.output import Output
from rheostat.lab.experiment.realtime_run import (
    SOURCE,
    await_first_batch,
    await_output,
    expected_counts,
    local_session,
    open_topics,
    paces_of,
    pipeline_on,
)
from rheostat.lab.jobs.realtime import PARTITIONS, SLOTS, WORDS_PER_LINE, word_count
from rheostat.lab.sight.comparison import over_lag_s
from rheostat.lab.sight.place import Place
from rheostat.lab.sight.run import LATE_S, Recording
from rheostat.lab.sight.truth import Truth
from rheostat.lab.sight.windows import read_windows

BASE_PER_S, SPIKE_PER_S = 80.0, 320.0
"""Lines/s before and after the spike, and in it."""
LEVELS_PER_S = (BASE_PER_S, SPIKE_PER_S, BASE_PER_S)
HOLD_S = 60
START = {"split": 2, "count": 2}


def spike_in_real_time() -> Recording:
    """Let the load rise fourfold for a minute, in this process, which must not have a SparkSession yet."""
    import rheostat

    clock = WallClock()
    schedule = Schedule(Steps(LEVELS_PER_S, HOLD_S), 1.0, HOLD_S * len(LEVELS_PER_S))
    with TemporaryDirectory(prefix="rheostat-sight-") as folder, Broker() as broker:
        place = Place(Path(folder))
        open_topics(broker, PARTITIONS)
        spark = local_session(SLOTS, quiet(place.folder))
        try:
            staged = pipeline_on(broker, "wordcount", f"{folder}/checkpoint", paces=paces_of(word_count()))
            with rheostat.start(
                staged, mode="realtime", initial=Allocation(START), journal=str(place.journal)
            ) as scaler:
                await_first_batch(scaler, clock)
                with start_load(
                    broker.bootstrap, SOURCE, schedule, last_s=schedule.seconds, acknowledged=place.arrived
                ) as load:
                    scaler.resume()
                    start_s = load.wait().start_s
                end_s = clock.now()
            outputs = await_output(broker.bootstrap, expected_counts(spark, staged), clock)
            for query in scaler.queries:
                query.stop()
        finally:
            spark.stop()
        truth = truth_of(place, outputs)
        windows = tuple(window for window in read_windows(place.journal) if start_s <= window.at_s <= end_s)
    spans = ((window.running or 0, later.at_s - window.at_s) for window, later in pairwise(windows))
    return Recording(
        start_s,
        end_s,
        truth,
        windows,
        sum(slots * seconds for slots, seconds in spans),
        over_lag_s(truth, start_s, end_s, LATE_S),
        0,
    )


def truth_of(place: Place, outputs: Iterable[Output]) -> Truth:
    """Return what happened to the lines: one is done when as many words as it has came out for the first time."""
    first_ms: dict[tuple[str, int], int] = {}
    for output in outputs:
        result = output.key, output.number
        first_ms[result] = min(output.at_ms, first_ms.get(result, output.at_ms))
    done_s = np.sort(np.array(list(first_ms.values()), dtype=float))[WORDS_PER_LINE - 1 :: WORDS_PER_LINE] / 1e3
    return place.truth_by(done_s, done_s)


def right_slots() -> int:
    """Return the fewest slots of all stages that serve the spike.

    Without headroom: a policy knows the time per record at its present size, and tasks of these stages slow each other.
    """
    plant = word_count()
    demand = plant.graph.demand_per_s(dict.fromkeys(plant.graph.sources, SPIKE_PER_S))
    return sum(
        next(tasks for tasks in range(1, SLOTS) if stage.curve.capacity_per_s(tasks) >= demand[stage.name])
        for stage in plant.operators
        if stage.pinned_tasks is None
    )
