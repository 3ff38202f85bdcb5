"""The accuracy and the cost of sight in real-time mode.

Accuracy: a paced pipeline with fixed tasks under rising loads; every stage's true rate in its windows against its pace.
Sight: a query under a steady load, watched with the defaults in every second stretch of batches; the CPU time per line
is compared. Its tasks run in a process of their own, which separates the driver's CPU time from theirs. Cost: the same
query without anything, with latencies, and with latencies and probes, at the same time on the same records; the CPU
times of their tasks are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rheostat.clock import WallClock
from rheostat.engine.simulated.plant import Plant
from rheostat.engine.spark.session.log4j import quiet
from rheostat.engine.testbed.loads import Constant, Steps
from rheostat.engine.testbed.schedule import Schedule
from rheostat.errors import EngineError
from rheostat.job.allocation import Allocation
from rheostat.kafka.broker import Broker
from rheostat.kafka.jars import connector_jars
from rheostat.kafka.load import start_load
from rheostat.lab.bench.measure import Measure
from rheostat.lab.experiment.processes import in_own_process
from rheostat.lab.experiment.realtime_run import SOURCE, local_session, open_topics, pipeline_on, run_realtime
from rheostat.lab.experiment.run import Run, run_apart
from rheostat.lab.experiment.trial import Progress, Trial
from rheostat.lab.jobs.realtime import word_count
from rheostat.lab.sight.cost import PAIRS, QUICK_PAIRS, Ratios, Spending, alternate, last_batch, unpaused
from rheostat.lab.workload.counting import fill

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from rheostat.engine.batches.progress import Batch
    from rheostat.engine.spark.telemetry.stages import Stages

TASKS = {"split": 2, "count": 3}
BUSY = (0.2, 0.4, 0.6, 0.8, 0.95)
"""Busy shares of the busiest stage."""
HOLD_S, SETTLE_S = 40, 8.0
"""Seconds of a level, and of its beginning, which windows must not overlap."""
WARM_RECORDS, RECORDS = 50_000, 200_000
SLOTS, SIZE = 12, {"split": 2, "count": 2}
LINES_PER_S = 1500.0
"""Load of a watched query: about half a core."""
BATCHES = 4
"""Batches of a stretch: four steps of the scaler or so."""
INTERVAL_S = 5.0
PATIENCE_S = 400.0


def accuracy(quick: bool, progress: Progress) -> list[Measure]:
    """Measure the error of true rates."""
    shares = BUSY[::4] if quick else BUSY
    usable = [reading for reading in readings(_accuracy_run(shares, progress)) if 0.2 <= reading.busy <= 0.95]
    off = sorted(abs(reading.ratio - 1.0) for reading in usable)
    by_stage = ", ".join(
        f"{stage} {median(r.ratio for r in usable if r.stage == stage):.3f}"
        for stage in TASKS
        if any(r.stage == stage for r in usable)
    )
    note = (
        f"{len(off)} windows at {min(shares):.0%} to {max(shares):.0%} load; median of measured over paced: {by_stage}"
    )
    value = median(off) if off else float("nan")
    return [
        Measure("probes", "true_rate_error", value, "share", "<= 0.03", "lower", note),
        Measure("probes", "true_rate_error_worst", off[-1] if off else float("nan"), "share", "<= 0.05", "lower"),
    ]


def sight(quick: bool, progress: Progress) -> list[Measure]:
    """Measure the CPU cost of a scaler with its defaults."""
    pairs = QUICK_PAIRS if quick else PAIRS
    progress(f"{pairs} pairs of {BATCHES} batches with a scaler and {BATCHES} without")
    ratios = in_own_process(watched_ratio, pairs)
    note = f"upper end; {ratios.text}; without: {ratios.without_us:.0f} us of CPU per line"
    return [Measure("probes", "realtime_cpu_ratio", ratios.interval[1], "", "<= 1.03", "lower", note)]


def cost(quick: bool, progress: Progress) -> list[Measure]:
    """Measure the CPU cost of latencies and probes, which are opt-in."""
    progress("an unpaced query without anything, with latencies, and with probes")
    bare_us, latencies, probes = in_own_process(probe_ratios, WARM_RECORDS, RECORDS // 4 if quick else RECORDS)
    note = f"of the tasks, over a query without; without: {bare_us:.1f} us per line"
    return [
        Measure("probes", "latency_cpu_ratio", latencies, "", "", "lower", f"one row in 8 has an age; {note}"),
        Measure("probes", "probe_cpu_ratio", probes, "", "", "lower", f"and split is timed, one row in 64; {note}"),
    ]


@dataclass(frozen=True)
class Reading:
    """One stage in one window."""

    stage: str
    busy: float
    """Its demand over its capacity."""
    ratio: float
    """The measured true rate over the stage's pace."""


def _accuracy_run(shares: Sequence[float], progress: Progress) -> Run[Plant]:
    plant = word_count()
    [unit] = plant.unit_per_s.values()
    capacity_per_s = min(_lines_per_s().values())
    levels = tuple(share * capacity_per_s / unit for share in shares)
    load, start = Steps(levels, HOLD_S), Allocation(TASKS)
    trial = Trial(plant, load, len(levels) * HOLD_S, INTERVAL_S, start=start, window_s=10.0, way="static")
    [run] = run_apart(run_realtime, [trial], progress)
    run.raise_failure()
    return run


def _lines_per_s() -> dict[str, float]:
    """Return the capacity of every stage in lines/s."""
    plant = word_count()
    demand = plant.graph.demand_per_s(dict.fromkeys(plant.graph.sources, 1.0))
    return {o.name: o.curve.capacity_per_s(TASKS[o.name]) / demand[o.name] for o in plant.operators if o.name in TASKS}


def readings(run: Run[Plant]) -> Iterator[Reading]:
    """Yield the readings of windows that lie within one level of the load."""
    schedule, capacity_per_s = run.trial.schedule, _lines_per_s()
    paced = {
        o.name: o.curve.capacity_per_s(TASKS[o.name]) / TASKS[o.name] for o in word_count().operators if o.name in TASKS
    }
    for step in run.steps:
        window = step.observation
        start, end = window.start_s - run.start_s, window.end_s - run.start_s
        level = int(start // HOLD_S)
        inside = level * HOLD_S + SETTLE_S <= start and end <= (level + 1) * HOLD_S <= schedule.seconds
        if not window.usable or not inside:
            continue
        sent = (schedule.due((level + 1) * HOLD_S) - schedule.due(level * HOLD_S)) / HOLD_S
        for reading in window.operators:
            if reading.name in paced and reading.true_rate_per_s is not None:
                ratio = reading.true_rate_per_s / paced[reading.name]
                yield Reading(reading.name, sent / capacity_per_s[reading.name], ratio)


def watched_ratio(pairs: int) -> Ratios:
    """Return the CPU time per line with a scaler over that without one, in this process."""
    from rheostat.api.start import start
    from rheostat.engine.spark.session.session import session

    with TemporaryDirectory(prefix="rheostat-probes-") as folder, Broker() as broker:
        open_topics(broker, 2)
        conf = {**quiet(Path(folder)), "spark.jars": ",".join(map(str, connector_jars()))}
        spark = session("rheostat-probes", max_executors=1, cores=SLOTS, memory_mb=1024, conf=conf)
        try:
            staged = pipeline_on(broker, "wordcount", f"{folder}/checkpoint", latencies=False)
            schedule = Schedule(Constant(1.0), LINES_PER_S, 3600)
            with (
                start_load(broker.bootstrap, SOURCE, schedule),
                start(
                    staged,
                    mode="realtime",
                    initial=Allocation(SIZE),
                    max_executors=1,
                    policy="static",
                    journal=f"{folder}/journal.db",
                ) as scaler,
            ):
                scaler.pause()

                def count() -> tuple[int, int]:
                    [query] = scaler.queries
                    batch = last_batch(query)
                    return (0, 0) if batch is None else (batch.number, int(_read(batch)))

                ratios = alternate(pairs, lambda: unpaused(scaler, spark), Spending(count, BATCHES))
            for query in scaler.queries:
                query.stop()
        finally:
            spark.stop()
    return ratios


def probe_ratios(warm: int, records: int) -> tuple[float, float, float]:
    """Return the CPU microseconds per line of a bare query, and what latencies and probes cost over that."""
    from rheostat.engine.spark.lifecycle.application import temporary_settings
    from rheostat.engine.spark.lifecycle.checkpoint import PARTITIONS
    from rheostat.engine.spark.telemetry.stages import Stages

    clock = WallClock()
    with TemporaryDirectory(prefix="rheostat-probes-") as folder, Broker() as broker:
        open_topics(broker, 2)
        spark = local_session(3 * SLOTS, quiet(Path(folder)))
        try:
            pipelines = [
                pipeline_on(broker, "wordcount", f"{folder}/{name}", latencies=latencies, timed=timed)
                for name, latencies, timed in (("bare", False, False), ("late", True, False), ("timed", True, True))
            ]
            stages = Stages(spark.sparkContext)
            fill(broker.bootstrap, SOURCE, warm)
            with temporary_settings(spark, {PARTITIONS: str(SIZE["count"])}):
                queries = [
                    replace(pipeline, name=Path(pipeline.checkpoint).name).start(spark, Allocation(SIZE))
                    for pipeline in pipelines
                ]
            _cpu_s(queries, stages, warm, clock)
            fill(broker.bootstrap, SOURCE, records)
            bare, late, timed = _cpu_s(queries, stages, warm + records, clock)
            for query in queries:
                query.stop()
        finally:
            spark.stop()
    return 1e6 * bare / records, late / bare, timed / bare


def _cpu_s(queries: Sequence[StreamingQuery], stages: Stages, records: int, clock: WallClock) -> list[float]:
    """Wait until all queries have processed these records; return the CPU seconds of each."""
    spent = {str(query.runId): 0.0 for query in queries}
    deadline_s = clock.now() + PATIENCE_S
    while True:
        done = [_read(last_batch(query)) for query in queries]
        for stage in stages.read_finished():
            if stage.run_id in spent:  # not one of the micro-batch that made the checkpoint
                spent[stage.run_id] += stage.cpu_s
        if min(done) >= records:
            return list(spent.values())
        failed = [query.exception() for query in queries if not query.isActive]
        if failed or clock.now() > deadline_s:
            raise EngineError(
                f"{min(done):,} of {records:,} records were processed in {PATIENCE_S:g} s: {failed or 'too slow'}"
            )
        clock.sleep(1.0)


def _read(batch: Batch | None) -> float:
    """Return the topic's records up to a batch's end, including those of the batch that made the checkpoint."""
    from rheostat.engine.batches.offsets import KafkaCounter

    return 0.0 if batch is None or not batch.sources else KafkaCounter().records(batch.sources[0].end_offset) or 0.0
