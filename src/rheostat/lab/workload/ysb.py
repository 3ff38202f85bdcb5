"""Yahoo's streaming benchmark: views of advertisements, counted per campaign in windows of 10 s.

An event arrives as a line of JSON, is parsed, filtered (one in three is a view), projected, joined with the table
advertisement -> campaign (1,000 rows, ten per campaign; a static table here, Redis in the original) and counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rheostat.lab.workload.pipeline import Pipeline, Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CAMPAIGNS = 100
ADS_PER_CAMPAIGN = 10
WINDOW_S = 10
SCHEMA = "user_id bigint, page_id bigint, ad_id bigint, ad_type string, event_type string, event_us bigint"


def events(records: DataFrame) -> DataFrame:
    """Turn every record into a line of JSON."""
    return records.selectExpr(
        "value",
        "to_json(named_struct("
        "'user_id', pmod(xxhash64(value, 1), 100000), 'page_id', pmod(xxhash64(value, 2), 100), "
        f"'ad_id', pmod(xxhash64(value, 3), {CAMPAIGNS * ADS_PER_CAMPAIGN}), "
        "'ad_type', element_at(array('banner', 'modal', 'sponsored-search', 'mail', 'mobile'), "
        "cast(pmod(xxhash64(value, 4), 5) as int) + 1), "
        "'event_type', element_at(array('view', 'click', 'purchase'), cast(pmod(xxhash64(value, 5), 3) as int) + 1), "
        "'event_us', unix_micros(timestamp))) as line",
    )


def deserialize(lines: DataFrame) -> DataFrame:
    """Parse the JSON."""
    return lines.selectExpr("value", f"from_json(line, '{SCHEMA}') as event").select("value", "event.*")


def only_views(parsed: DataFrame) -> DataFrame:
    """Keep the views."""
    return parsed.where("event_type = 'view'")


def project(views: DataFrame) -> DataFrame:
    """Keep the advertisement and the event time, with a watermark."""
    return views.selectExpr("value", "ad_id", "timestamp_micros(event_us) as event_time").withWatermark(
        "event_time", "1 second"
    )


def campaigns(spark: SparkSession) -> DataFrame:
    """Return the table advertisement -> campaign."""
    return spark.range(0, CAMPAIGNS * ADS_PER_CAMPAIGN, 1, 1).selectExpr(
        "id as ad_id", f"id div {ADS_PER_CAMPAIGN} as campaign_id"
    )


def join(views: DataFrame) -> DataFrame:
    """Look up the campaign of every view in a broadcast table, without a shuffle."""
    return views.join(campaigns(views.sparkSession).hint("broadcast"), "ad_id")


def count(views: DataFrame) -> DataFrame:
    """Count views per campaign and window."""
    from pyspark.sql.functions import window

    counted = views.groupBy(window("event_time", f"{WINDOW_S} seconds"), "campaign_id").count()
    return counted.selectExpr("window.start as window_start", "campaign_id", "count")


def expected(records: DataFrame) -> DataFrame:
    """Compute the counts from the record numbers, without JSON, join or windows."""
    return records.sparkSession.sql(
        f"select timestamp_seconds(unix_micros(timestamp) div {WINDOW_S * 1_000_000} * {WINDOW_S}) as window_start, "
        f"pmod(xxhash64(value, 3), {CAMPAIGNS * ADS_PER_CAMPAIGN}) div {ADS_PER_CAMPAIGN} as campaign_id, "
        "count(*) as count from {records} where pmod(xxhash64(value, 5), 3) = 0 group by all",
        records=records,
    )


YSB = Pipeline(
    "ysb",
    100,
    (
        Step("events", events),
        Step("deserialize", deserialize),
        Step("filter", only_views),
        Step("project", project),
        Step("join", join),
        Step("window_count", count, narrow=False),
    ),
    expected,
)
