"""Top Speed Windowing, one of Phoebe's jobs: the highest speed of every car.

Flink's example retains the last 10 s of a car and fires whenever it has moved by 50 m. Spark has no windows by
distance, so this is the highest speed per car in tumbling windows of 10 s: same input, same keys, same state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rheostat.lab.workload.pipeline import Pipeline, Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CARS = 50
WINDOW_S = 10


def cars(events: DataFrame) -> DataFrame:
    """Turn every record into a report of one car: its speed in km/h and its distance in metres."""
    return events.selectExpr(
        "value",
        f"pmod(value, {CARS}) as car",
        "pmod(xxhash64(value, 1), 120) + 1 as speed_kmh",
        f"value div {CARS} * 20 as distance_m",
        "timestamp as event_time",
    ).withWatermark("event_time", "1 second")


def top_speed(reports: DataFrame) -> DataFrame:
    """Return the highest speed and the number of reports per car and window."""
    from pyspark.sql.functions import count, max, window  # noqa: A004 - as Spark names them

    highest = reports.groupBy(window("event_time", f"{WINDOW_S} seconds"), "car").agg(
        max("speed_kmh").alias("top_speed_kmh"), max("distance_m").alias("distance_m"), count("*").alias("reports")
    )
    return highest.selectExpr("window.start as window_start", "car", "top_speed_kmh", "distance_m", "reports")


def expected(events: DataFrame) -> DataFrame:
    """Sort the reports of each car and window, and take the first."""
    return events.sparkSession.sql(
        "with reports as (select *, unix_micros(event_time) div {window_us} as slice from {cars}), "
        "ranked as (select *, row_number() over (partition by slice, car order by speed_kmh desc) as rank, "
        "max(distance_m) over (partition by slice, car) as furthest_m, "
        "count(*) over (partition by slice, car) as reports from reports) "
        "select timestamp_seconds(slice * {window_s}) as window_start, car, speed_kmh as top_speed_kmh, "
        "furthest_m as distance_m, reports from ranked where rank = 1",
        cars=cars(events),
        window_s=WINDOW_S,
        window_us=WINDOW_S * 1_000_000,
    )


TOPSPEED = Pipeline("topspeed", 100, (Step("cars", cars), Step("window_max", top_speed, narrow=False)), expected)
