"""The papers' pipelines as stages on Kafka: WordCount, YSB, Top Speed Windowing, Nexmark q1, q2 and q5-like counts.

Records come from `kafka/load.py`: the record's number as text, with its due time as Kafka's timestamp. Stages retain
all columns (`withColumn`, `where`), so that the columns of probes pass through. Real-time mode has no aggregation after
an aggregation, so q5 stops at the counts per window and auction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from zlib import crc32

from rheostat.engine.simulated.curves import Curve
from rheostat.engine.spark.pipeline import SAMPLE, Builder, Slow, Staged, Transform
from rheostat.errors import InvalidValue, nearest
from rheostat.lab.workload.nexmark_events import bids
from rheostat.lab.workload.pacing import paced
from rheostat.lab.workload.ysb import ADS_PER_CAMPAIGN, CAMPAIGNS, WINDOW_S, campaigns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WORDS_PER_LINE = 3
WORDS = 4096
"""Number of different words: enough for an even share per task."""
PAUSE_S = 0.01
"""Seconds of a wait of a paced stage."""
WATERMARK = "5 seconds"
"""Watermark delay: partitions of a topic are not read in step."""
KEY, COUNT, EVENT = "key", "count", "timestamp"
"""Columns of every result: the key, its count so far, and the time of its newest event."""


def numbers(rows: DataFrame) -> DataFrame:
    """Parse the record's number and time."""
    return rows.selectExpr("cast(cast(value as string) as bigint) as value", "timestamp")


def lines(rows: DataFrame) -> DataFrame:
    """Turn every record into a line of words; all words are equally frequent, and so the keyed tasks equally busy."""
    words = ", ".join(f"concat('w', pmod(xxhash64(value, {nth}), {WORDS}))" for nth in range(WORDS_PER_LINE))
    return numbers(rows).selectExpr("value", "timestamp", f"concat_ws(' ', {words}) as line")


def split(rows: DataFrame) -> DataFrame:
    """Cut lines into words."""
    from pyspark.sql.functions import expr

    return rows.withColumn("word", expr("explode(split(line, ' '))")).drop("line")


def word_counts(rows: DataFrame) -> DataFrame:
    """Count every word since the start."""
    return _counts(rows, "word")


def views(rows: DataFrame) -> DataFrame:
    """YSB: keep one event in three, with its advertisement."""
    from pyspark.sql.functions import expr

    only_views = rows.where("pmod(xxhash64(value, 5), 3) = 0")
    return only_views.withColumn("ad_id", expr(f"pmod(xxhash64(value, 3), {CAMPAIGNS * ADS_PER_CAMPAIGN})"))


def join(rows: DataFrame) -> DataFrame:
    """YSB: look up the campaign in a broadcast table."""
    return rows.join(campaigns(rows.sparkSession).hint("broadcast"), "ad_id").drop("ad_id")


def campaign_counts(rows: DataFrame) -> DataFrame:
    """YSB: count views per campaign and window."""
    return _window_counts(rows, f"{WINDOW_S} seconds", None, "campaign_id")


def reports(rows: DataFrame) -> DataFrame:
    """Top Speed: turn every record into a report of one of fifty cars."""
    from pyspark.sql.functions import expr

    car = rows.withColumn("car", expr("pmod(value, 50)"))
    return car.withColumn("speed_kmh", expr("pmod(xxhash64(value, 1), 120) + 1"))


def top_speed(rows: DataFrame) -> DataFrame:
    """Top Speed: return the highest speed per car and window, in `count`."""
    from pyspark.sql import functions as sql

    timed = rows.withWatermark(EVENT, WATERMARK)
    fastest = timed.groupBy(sql.window(EVENT, f"{WINDOW_S} seconds"), "car").agg(
        sql.max("speed_kmh").alias(COUNT), sql.max(EVENT).alias(EVENT)
    )
    return fastest.selectExpr(f"concat(unix_seconds(window.start), ' ', car) as {KEY}", COUNT, EVENT)


def timed_bids(rows: DataFrame) -> DataFrame:
    """Nexmark: return the bids, which are 92 % of the events."""
    return bids(numbers(rows)).withColumnRenamed("event_time", EVENT)


def to_euro(rows: DataFrame) -> DataFrame:
    """Q1: convert the price."""
    from pyspark.sql.functions import expr

    return rows.withColumn("price", expr("cast(price * 0.908 as double)"))


def some_auctions(rows: DataFrame) -> DataFrame:
    """Q2: keep the bids of some auctions."""
    return rows.where("auction % 123 = 0")


def hot_counts(rows: DataFrame) -> DataFrame:
    """Q5: count bids per auction in sliding windows."""
    return _window_counts(rows, "10 seconds", "2 seconds", "auction")


def _counts(rows: DataFrame, by: str) -> DataFrame:
    from pyspark.sql import functions as sql

    counts = rows.groupBy(by).agg(sql.count("*").alias(COUNT), sql.max(EVENT).alias(EVENT))
    return counts.withColumnRenamed(by, KEY)


def _window_counts(rows: DataFrame, length: str, slide: str | None, by: str) -> DataFrame:
    from pyspark.sql import functions as sql

    timed = rows.withWatermark(EVENT, WATERMARK)
    counts = timed.groupBy(sql.window(EVENT, length, slide), by).agg(
        sql.count("*").alias(COUNT), sql.max(EVENT).alias(EVENT)
    )
    return counts.selectExpr(f"concat(unix_seconds(window.start), ' ', {by}) as {KEY}", COUNT, EVENT)


def record(rows: DataFrame) -> DataFrame:
    """Write a result: the key, and as text the count and the newest event's milliseconds."""
    return rows.selectExpr(f"cast({KEY} as string) as key", f"concat({COUNT}, ' ', unix_millis({EVENT})) as value")


def bid_record(rows: DataFrame) -> DataFrame:
    """Write a bid: its number, the price and the event's milliseconds."""
    return rows.selectExpr(
        "cast(value as string) as key", f"concat(cast(price * 1000 as bigint), ' ', unix_millis({EVENT})) as value"
    )


@dataclass(frozen=True)
class Recipe:
    """A pipeline without its topics."""

    source: str
    parse: Transform
    stages: tuple[tuple[str, Transform], ...]
    keyed: tuple[str, Transform] | None = None
    write: Transform = record


RECIPES: Mapping[str, Recipe] = {
    "wordcount": Recipe("lines", lines, (("split", split),), ("count", word_counts)),
    "ysb": Recipe("events", numbers, (("filter", views), ("join", join)), ("count", campaign_counts)),
    "topspeed": Recipe("cars", numbers, (("report", reports),), ("window_max", top_speed)),
    "q1": Recipe("bids", timed_bids, (("mapper", to_euro),), write=bid_record),
    "q2": Recipe("bids", timed_bids, (("filter", some_auctions),), write=bid_record),
    "q5": Recipe("bids", timed_bids, (("select", lambda rows: rows),), ("window_count", hot_counts)),
}
"""Name -> pipeline; pyspark is imported when one is built."""


@dataclass(frozen=True)
class StagePace:
    """The pace of a stage: a capacity curve over its tasks, and the noise of each wait."""

    curve: Curve
    noise: float = 0.0


def realtime_pipeline(
    name: str,
    *,
    servers: str,
    source: str,
    sink: str,
    checkpoint: str,
    paces: Mapping[str, StagePace] | None = None,
    seed: int = 0,
    timed: bool = False,
    latencies: bool = True,
) -> Staged:
    """Return a pipeline between two topics; with paces, every record is timed. `timed` times the stateless stages."""
    if name not in RECIPES:
        raise InvalidValue(f"unknown real-time pipeline {name!r}, {nearest(name, RECIPES)}")
    recipe, builder, paced_stages = RECIPES[name], Builder(name), paces or {}
    stages = [stage for stage, _ in (*recipe.stages, *((recipe.keyed,) if recipe.keyed else ()))]
    for stage in paced_stages:
        if stage not in stages:
            raise InvalidValue(f"pipeline {name!r} has no stage {stage!r} to pace, {nearest(stage, stages)}")
    builder.kafka(
        recipe.source, servers=servers, topic=source, parse=recipe.parse, options={"startingOffsets": "earliest"}
    )
    for stage, apply in recipe.stages:
        slow = _slow(paced_stages[stage], stage, seed, "value") if stage in paced_stages else None
        builder.stage(stage, apply, slow=slow, timed=timed)
    if recipe.keyed is not None:
        stage, apply = recipe.keyed
        number = f"xxhash64({KEY}, {COUNT})"  # rows of a result have no number
        slow = _slow(paced_stages[stage], stage, seed, number) if stage in paced_stages else None
        builder.keyed(stage, apply, slow=slow)
    builder.to_kafka(
        "results",
        servers=servers,
        topic=sink,
        columns=recipe.write,
        checkpoint=checkpoint,
        event_time=EVENT if latencies else None,
        sample=1 if paced_stages else SAMPLE,
    )
    return builder.built


def _slow(pace: StagePace, stage: str, seed: int, number: str) -> Slow:
    own = crc32(stage.encode()) + seed

    def at(tasks: int) -> Transform:
        rate_per_s = pace.curve.capacity_per_s(tasks) / tasks

        def slowed(rows: DataFrame) -> DataFrame:
            from pyspark.sql.functions import expr

            columns = rows.columns
            numbered = rows.withColumn("value", expr(number))
            slow = paced(numbered, rate_per_s, tasks=tasks, noise=pace.noise, seed=own, pause_s=PAUSE_S)
            return slow if "value" in columns else slow.drop("value")

        return slowed

    return at
