"""Nexmark's queries 1, 2, 3, 5, 8 and 11, which the papers use.

Operators are named as in the simulated jobs. Differences from the benchmark:

- Q3 joins a person with the auctions of the following 20 s only: the benchmark's state grows for ever, and Spark drops
  state only with a time bound.
- Q5 returns one hottest auction per window; of several with equally many bids, the newest.
- Q8 is one aggregation over both kinds: a person's id occurs once, so the window join on it is the group of that id and
  window with a person and an auction. It reads the source once and also runs in real-time mode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rheostat.lab.workload.nexmark_events import bids, persons_and_auctions
from rheostat.lab.workload.pipeline import Pipeline, Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WATERMARK = "1 second"
"""Watermark delay: the source is in order by whole seconds; this is slack for files and brokers."""
DOLLAR_IN_EURO = 0.908
SUGGESTION_S = 20
HOT_WINDOW_S, HOT_SLIDE_S = 10, 2
NEW_USER_WINDOW_S = 10
SESSION_GAP_S = 10


def timed_bids(events: DataFrame) -> DataFrame:
    """Return bids, with a watermark."""
    return bids(events).withWatermark("event_time", WATERMARK)


def timed_persons_and_auctions(events: DataFrame) -> DataFrame:
    """Return persons and auctions, with a watermark."""
    return persons_and_auctions(events).withWatermark("event_time", WATERMARK)


def to_euro(bids: DataFrame) -> DataFrame:
    """Q1: convert the price."""
    return bids.selectExpr(
        "value", "auction", "bidder", f"cast(price * {DOLLAR_IN_EURO} as double) as price", "event_time"
    )


def select_auctions(bids: DataFrame) -> DataFrame:
    """Q2: keep the bids of some auctions."""
    return bids.where("auction % 123 = 0").select("value", "auction", "price")


def local_items(events: DataFrame) -> DataFrame:
    """Q3: keep persons of three states and auctions of one category."""
    return events.where("kind = 'person' and state in ('OR', 'ID', 'CA') or kind = 'auction' and category = 10")


def suggest(events: DataFrame) -> DataFrame:
    """Q3: join each person with the auctions that the person opens in the next 20 s."""
    from pyspark.sql.functions import expr

    persons = events.where("kind = 'person'").selectExpr(
        "id as person", "name", "city", "state", "event_time as registered"
    )
    auctions = events.where("kind = 'auction'").selectExpr("id as auction", "seller", "event_time as opened")
    within = f"opened between registered and registered + interval {SUGGESTION_S} seconds"
    return persons.join(auctions, expr(f"seller = person and {within}")).select("name", "city", "state", "auction")


def hot_items(bids: DataFrame) -> DataFrame:
    """Q5: count bids per auction in sliding windows, then take the highest count of each window."""
    from pyspark.sql.functions import col, count, max, struct, window  # noqa: A004 - as Spark names them

    counted = bids.groupBy(window("event_time", f"{HOT_WINDOW_S} seconds", f"{HOT_SLIDE_S} seconds"), "auction").agg(
        count("*").alias("bids")
    )
    hottest = counted.groupBy("window").agg(max(struct(col("bids"), col("auction"))).alias("hot"))
    return hottest.selectExpr("window.start as window_start", "hot.auction as auction", "hot.bids as bids")


def new_users(events: DataFrame) -> DataFrame:
    """Q8: find persons who open auctions in the window of their registration."""
    from pyspark.sql.functions import expr, window

    people = events.selectExpr("event_time", "kind", "coalesce(seller, id) as person", "name")
    joined = people.groupBy(window("event_time", f"{NEW_USER_WINDOW_S} seconds"), "person").agg(
        expr("max(name) as name"), expr("count_if(kind = 'auction') as auctions")
    )
    return joined.where("name is not null and auctions > 0").selectExpr(
        "window.start as window_start", "person", "name", "auctions"
    )


def sessions(bids: DataFrame) -> DataFrame:
    """Q11: count a bidder's bids per session; a session ends after 10 s without a bid."""
    from pyspark.sql.functions import session_window

    counted = bids.groupBy(session_window("event_time", f"{SESSION_GAP_S} seconds"), "bidder").count()
    return counted.selectExpr(
        "bidder", "count as bids", "session_window.start as session_start", "session_window.end as session_end"
    )


def expected_q1(events: DataFrame) -> DataFrame:
    """Convert the price in SQL."""
    return events.sparkSession.sql(
        "select value, auction, bidder, double(908 * price / 1000) as price, event_time from {bids}", bids=bids(events)
    )


def expected_q2(events: DataFrame) -> DataFrame:
    """Keep the bids whose auction is a multiple of 123, by a semi-join with the multiples."""
    return events.sparkSession.sql(
        "with multiples as (select explode(sequence(0, (select max(auction) from {bids}), 123)) as auction) "
        "select value, auction, price from {bids} left semi join multiples using (auction)",
        bids=bids(events),
    )


def expected_q3(events: DataFrame) -> DataFrame:
    """Join in SQL, on microseconds."""
    return events.sparkSession.sql(
        "select p.name, p.city, p.state, a.id as auction from {rows} p join {rows} a on a.seller = p.id "
        "where p.kind = 'person' and a.kind = 'auction' and p.state in ('OR', 'ID', 'CA') and a.category = 10 "
        "and unix_micros(a.event_time) - unix_micros(p.event_time) between 0 and {bound_us}",
        rows=persons_and_auctions(events),
        bound_us=SUGGESTION_S * 1_000_000,
    )


def expected_q5(events: DataFrame) -> DataFrame:
    """Assign every bid to its five windows in SQL, and rank."""
    return events.sparkSession.sql(
        "with placed as (select auction, unix_micros(event_time) div {slide_us} as last, explode(sequence(0, {more})) "
        "as back from {bids}), "
        "counted as (select last - back as slide, auction, count(*) as bids from placed group by all), "
        "ranked as (select *, row_number() over (partition by slide order by bids desc, auction desc) as rank "
        "from counted) select timestamp_seconds(slide * {slide_s}) as window_start, auction, bids from ranked "
        "where rank = 1",
        bids=bids(events),
        slide_s=HOT_SLIDE_S,
        slide_us=HOT_SLIDE_S * 1_000_000,
        more=HOT_WINDOW_S // HOT_SLIDE_S - 1,
    )


def expected_q8(events: DataFrame) -> DataFrame:
    """Join persons and auctions of the same window."""
    return events.sparkSession.sql(
        "with sliced as (select *, unix_micros(event_time) div {window_us} as slice from {rows}) "
        "select timestamp_seconds(p.slice * {window_s}) as window_start, p.id as person, p.name, count(*) as auctions "
        "from sliced p join sliced a on a.seller = p.id and a.slice = p.slice "
        "where p.kind = 'person' and a.kind = 'auction' group by all",
        rows=persons_and_auctions(events),
        window_s=NEW_USER_WINDOW_S,
        window_us=NEW_USER_WINDOW_S * 1_000_000,
    )


def expected_q11(events: DataFrame) -> DataFrame:
    """Number the sessions by the gaps between bids."""
    return events.sparkSession.sql(
        "with gaps as (select bidder, event_time, coalesce(unix_micros(event_time) - unix_micros(lag(event_time) over "
        "(partition by bidder order by event_time)) > {gap_us}, true) as opens from {bids}), "
        "numbered as (select *, count_if(opens) over (partition by bidder order by event_time) as session from gaps) "
        "select bidder, count(*) as bids, min(event_time) as session_start, "
        "timestamp_micros(unix_micros(max(event_time)) + {gap_us}) as session_end from numbered "
        "group by bidder, session",
        bids=bids(events),
        gap_us=SESSION_GAP_S * 1_000_000,
    )


QUERIES = (
    Pipeline("q1", 700, (Step("bids", bids), Step("mapper", to_euro)), expected_q1),
    Pipeline("q2", 900, (Step("bids", bids), Step("filter", select_auctions)), expected_q2),
    Pipeline(
        "q3",
        240,
        (
            Step("events", timed_persons_and_auctions),
            Step("filter", local_items),
            Step("join", suggest, narrow=False),
        ),
        expected_q3,
    ),
    Pipeline("q5", 80, (Step("bids", timed_bids), Step("window", hot_items, narrow=False)), expected_q5),
    Pipeline(
        "q8",
        160,
        (Step("events", timed_persons_and_auctions), Step("window_join", new_users, narrow=False)),
        expected_q8,
    ),
    Pipeline("q11", 100, (Step("bids", timed_bids), Step("session_group", sessions, narrow=False)), expected_q11),
)
