"""Nexmark's persons, auctions and bids, derived from the number of the event as in the benchmark's own generator.

Of every 50 events the first is a person, three are auctions and 46 are bids. Half of the bids go to one hot auction,
three quarters come from one hot bidder, three quarters of the auctions from one hot seller; the hot ones change with
every hundredth id. All others are drawn from the last 100 auctions and the last 1,000 persons.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FIRST_ID = 1000
"""Id of the first person and of the first auction."""
IN_FLIGHT_AUCTIONS = 100
ACTIVE_PERSONS = 1000
HOT_EVERY = 100
FIRST_CATEGORY, CATEGORIES = 10, 5
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES = (
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
)
FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")

LAST_PERSON = "value div 50"
"""SQL for the newest person at the time of an event, counted from 0."""
LAST_AUCTION = "greatest(value div 50 * 3 + least(pmod(value, 50), 3) - 1, 0)"


def bids(events: DataFrame) -> DataFrame:
    """Return the bids: auction, bidder, price in cents, event time."""
    return events.where("pmod(value, 50) > 3").selectExpr(
        "value",
        f"{_hot_or(LAST_AUCTION, 2, IN_FLIGHT_AUCTIONS, draw=1)} as auction",
        f"{_hot_or(LAST_PERSON, 4, ACTIVE_PERSONS, draw=3)} + 1 as bidder",
        # 1 to 1,000,000 dollars, even in the logarithm.
        "cast(round(pow(10, pmod(xxhash64(value, 5), 1000000) / 1000000 * 6) * 100) as bigint) as price",
        "timestamp as event_time",
    )


def persons_and_auctions(events: DataFrame) -> DataFrame:
    """Return both in one table with their `kind`; columns of the other kind are null."""
    person = "pmod(value, 50) = 0"
    return (
        events.where("pmod(value, 50) <= 3")
        .selectExpr("*", f"if({person}, 'person', 'auction') as kind")
        .selectExpr(
            "value",
            "timestamp as event_time",
            "kind",
            f"{FIRST_ID} + if(kind = 'person', {LAST_PERSON}, {LAST_AUCTION}) as id",
            f"if(kind = 'person', concat({_pick(FIRST_NAMES, 6)}, ' ', {_pick(LAST_NAMES, 7)}), null) as name",
            f"if(kind = 'person', {_pick(CITIES, 8)}, null) as city",
            f"if(kind = 'person', {_pick(STATES, 9)}, null) as state",
            f"if(kind = 'auction', {_hot_or(LAST_PERSON, 4, ACTIVE_PERSONS, draw=10)}, null) as seller",
            f"if(kind = 'auction', {FIRST_CATEGORY} + pmod(xxhash64(value, 12), {CATEGORIES}), null) as category",
            "if(kind = 'auction', pmod(xxhash64(value, 13), 1000000) + 1, null) as initial_bid",
            "if(kind = 'auction', timestamp + make_dt_interval(0, 0, 0, 1 + pmod(xxhash64(value, 14), 20)), null) "
            "as expires",
        )
    )


def _hot_or(last: str, ratio: int, recent: int, draw: int) -> str:
    """Return SQL for the hot id in all but one of `ratio` cases, else for one of the last `recent` ids."""
    return (
        f"({FIRST_ID} + if(pmod(xxhash64(value, {draw}), {ratio}) > 0, {last} div {HOT_EVERY} * {HOT_EVERY}, "
        f"greatest({last} - pmod(xxhash64(value, {draw + 1}), {recent}), 0)))"
    )


def _pick(words: Sequence[str], draw: int) -> str:
    items = ", ".join(f"'{word}'" for word in words)
    return f"element_at(array({items}), cast(pmod(xxhash64(value, {draw}), {len(words)}) as int) + 1)"
