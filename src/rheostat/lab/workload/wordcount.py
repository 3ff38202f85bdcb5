"""WordCount: lines of ten words, split and counted since the start; ContTune's first query.

Words are drawn from a small vocabulary whose first words are the frequent ones (the product of two uniform draws), as
in a text. Counts have no window: the state is the vocabulary, and the output mode is `update`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rheostat.lab.workload.pipeline import Pipeline, Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WORDS_PER_LINE = 10
VOCABULARY = (
    "the of and to in is it that was he for on are with as his they at be this from have or by one had not but what "
    "all were when we there can an your which their said if do will each about how up out them then she many some so "
    "these would other into has more her two like him see time could no make than first been its who now people my "
    "made over did down only way find use may water long little very after words called just where most know"
)
SIZE = len(VOCABULARY.split())
PLACES = tuple(
    f"cast(pmod(xxhash64(value, {2 * nth}), {SIZE}) * pmod(xxhash64(value, {2 * nth + 1}), {SIZE}) div {SIZE} as int)"
    for nth in range(WORDS_PER_LINE)
)
"""SQL for the positions of a record's words in the vocabulary, from 0."""


def lines(events: DataFrame) -> DataFrame:
    """Turn every record into a line of ten words."""
    words = ", ".join(f"element_at(split('{VOCABULARY}', ' '), {place} + 1)" for place in PLACES)
    return events.selectExpr("value", f"concat_ws(' ', {words}) as line")


def split(lines: DataFrame) -> DataFrame:
    """Split lines into words."""
    return lines.selectExpr("value", "explode(split(line, ' ')) as word")


def count(words: DataFrame) -> DataFrame:
    """Count every word since the start."""
    return words.groupBy("word").count()


def expected(events: DataFrame) -> DataFrame:
    """Count positions in the vocabulary, without making or splitting lines."""
    counted = events.selectExpr(f"explode(array({', '.join(PLACES)})) as place").groupBy("place").count()
    return counted.selectExpr(f"element_at(split('{VOCABULARY}', ' '), place + 1) as word", "count")


WORDCOUNT = Pipeline(
    "wordcount",
    100,
    (Step("lines", lines), Step("splitter", split), Step("count", count, narrow=False)),
    expected,
    output_mode="update",
)
