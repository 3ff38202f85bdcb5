"""Which of the paper's conclusions hold in our numbers, and every place where ours differ, with the cause."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rheostat.lab.papers.conttune import paper
from rheostat.lab.papers.conttune.methods import STOPS
from rheostat.lab.papers.conttune.tables import titled
from rheostat.lab.papers.result import Cell, Check, Finding

ORDER = (
    (paper.RANDOM, paper.DHALION),
    (paper.DHALION, paper.DS2),
    (paper.DHALION, paper.BIG_DS2),
    (paper.DS2, paper.ALPHA_0),
    (paper.BIG_DS2, paper.ALPHA_0),
    (paper.ALPHA_0, paper.ALPHA_3),
)
"""Table 4a: the first needs more reconfigurations than the second."""
ORDERED = "Random > Dhalion > DS2, Big + DS2 > alpha=0 > alpha=3"
WITHIN = 0.1

CAUSES: Mapping[tuple[str, str, str], str] = {
    ("4a", paper.DHALION, "+"): "two operators are tuned, one at a time; with the smaller one pinned it needs 3.7 on "
    "WordCount and 3.9 on Q3, so the paper's seems to have tuned one",
    ("4a", paper.DHALION, "-"): "Dhalion's own rule grows by the share of time in back pressure, at most x2 in a "
    "step; the sizes in the paper's Table 4b speak for steps of about x1.2, with which it needs 4.6 to 4.9",
    (
        "4a",
        paper.DRAGSTER,
        "+",
    ): "its model of a rate that comes for the first time is empty, so it tries sizes from both "
    "ends; the paper's counts are 0.55 x 5, 7 or 9 on every query, as if a first visit took 5, 7 or 9 changes and a "
    "second a tenth of that",
    ("4a", paper.BIG_DS2, "+"): "Big lifts every operator to p_max, and DS2 has to bring all of them down again (even "
    "without noise 1.56 against 1.38 on WordCount); that the paper's is not above its DS2 is not reproduced",
    ("4a", paper.ALPHA_0, "-"): "with noise of 8 to 10 % the smallest size that was ever seen to suffice is often "
    "too large, and it is found at once: fewer changes, more cores (see the table of cores over the fewest)",
    ("4a", paper.ALPHA_3, "+"): "the published GP knows no noise and follows it to sizes that turn out too small: "
    "without noise it needs 1.11 on WordCount, and our model 1.12 with it",
    ("4a", paper.RANDOM, "+"): "the expected tries among 32 sizes are 21.8 for Q3's two tuned operators, where the "
    "paper's 16.2 fits one, and 16.5 for Q5's one, whatever the load",
    ("4a", paper.RANDOM, "-"): "the expected tries among 32 sizes are 16.5 for Q1's one tuned operator; the paper's "
    "22.7 fits two",
    ("4b", paper.ALPHA_0, "-"): "the demand is given to it, so it never lifts to p_max; with Big, in `4b, Big "
    "counted`, it comes to the paper's 16 and 32",
    ("4b", paper.ALPHA_3, "-"): "as alpha=0",
    ("4b", paper.DHALION, "+"): "steps of up to x2 overshoot further than the paper's",
    ("4b", paper.DS2, "+"): "on Q8 the first step up a super-linear curve overshoots",
    ("4e", paper.DHALION, "-"): "steps of up to x2 end back pressure sooner than the paper's",
    ("4f", paper.DHALION, "+"): "it overshoots by up to x2 and is content from 70 % useful time on; the paper's "
    "Dhalion holds the fewest cores",
    ("6", paper.DHALION, "-"): "over-provisioned by its steps of up to x2, it works off what waits within a level",
}
"""(table, row, ours is more or less) -> why."""
LENIENT = "who stops at the first look without back pressure stops with too many cores: see cores over the fewest"
LINEAR_AT_10 = (
    "a fixed point of DS2 can be a size that is a little too small in every second window; ContTune keeps what sufficed"
)
OVERLAP, UNKNOWN = "their 95 % intervals overlap", "not explained"
INSIDE = "the paper's value lies within our 95 % interval"
ELSEWHERE = "an absolute number of another cluster: the order is what counts"


def index(cells: Sequence[Cell]) -> dict[tuple[str, str, str], Cell]:
    """Return cells by table, row and column."""
    return {(cell.table, cell.row, cell.column): cell for cell in cells}


def checks(cells: Sequence[Cell]) -> Iterator[Check]:
    """Yield the paper's conclusions."""
    at = index(cells)

    def ours(table: str, row: str, column: str = "mean") -> float:
        return at[table, row, column].ours

    for big in (False, True):
        for stop in STOPS:
            name = titled("4a", stop, big)
            failed = [
                f"{a} {ours(name, a):.2f}, {b} {ours(name, b):.2f}"
                for a, b in ORDER
                if not ours(name, a) > ours(name, b)
            ]
            told = f"not: {'; '.join(failed)}" if failed else _values(at, name, [paper.RANDOM, *paper.MEANS])
            yield Check(name, ORDERED, not failed, told, LENIENT if stop == STOPS[2] else UNKNOWN)
    for row, known in paper.MEANS.items():
        value = ours("4a", row)
        told = f"{value:.2f}, paper {known:.2f}" + (" (fitted)" if at["4a", row, "mean"].fitted else "")
        yield Check("4a", f"{row}: the mean is within 10 % of the paper's", abs(value / known - 1) <= WITHIN, told)
    for big in (False, True):
        yield from _gains(at, big)
    yield from _others(at)


def _gains(at: Mapping[tuple[str, str, str], Cell], big: bool) -> Iterator[Check]:
    for stop in STOPS:
        name = titled("4a", stop, big)
        linear, cbo = at[name, paper.DS2, "mean"].ours, at[name, paper.ALPHA_3, "mean"].ours
        saved = 100 * (1 - cbo / linear)
        told = f"{abs(saved):.0f} % {'fewer' if saved >= 0 else 'more'}" + (
            ", paper 46 % fewer" if name == "4a" else ""
        )
        cause = (
            "Big is one more change per rise, and DS2 that stops early hardly needs more than one" if big else UNKNOWN
        )
        yield Check(name, "alpha=3 needs fewer reconfigurations than DS2", cbo < linear, told, cause)


def _others(at: Mapping[tuple[str, str, str], Cell]) -> Iterator[Check]:
    def less(table: str, few: str, many: str, sentence: str, column: str = "mean") -> Check:
        a, b = at[table, few, column].ours, at[table, many, column].ours
        cause = CAUSES.get((table, many, "-")) or CAUSES.get((table, few, "+")) or UNKNOWN
        return Check(table, sentence, a < b, f"{a:,.4g} against {b:,.4g}", cause)

    big = titled("4b", big=True)
    yield less(big, paper.DS2, paper.ALPHA_3, "Big asks for more cores at the most than DS2 does")
    for table, what in (
        ("4c", "running time"),
        ("4d", "tuning time"),
        ("4e", "backlogged data"),
        ("6", "buffered data"),
    ):
        yield less(table, paper.ALPHA_3, paper.DS2, f"alpha=3 has less {what} than DS2")
        yield less(table, paper.ALPHA_3, paper.DHALION, f"alpha=3 has less {what} than Dhalion")
    costs = [at["4f", row, "mean"].ours for row in (paper.ALPHA_3, paper.DS2)]
    told = f"{100 * (costs[0] / costs[1] - 1):+.1f} %, paper -0.2 %"
    yield Check("4f", "alpha=3 costs hardly more than DS2 (at most 3 %)", costs[0] <= 1.03 * costs[1], told)
    yield less("4f", paper.DHALION, paper.DS2, "Dhalion holds fewer core-seconds than DS2")
    fewer = [q for q in paper.QUERIES if at["5", paper.ALPHA_3, q].ours <= at["5", paper.DS2, q].ours]
    sentence, holds = "alpha=3 holds no more cores than DS2 at 10 W_u", len(fewer) == len(paper.QUERIES)
    yield Check("5", sentence, holds, _held(at), LINEAR_AT_10)
    yield less("7", paper.ALPHA_3, paper.DS2, "ContTune ends back pressure with fewer changes than DS2", "mean θ")
    yield less("8", "CBO (AF 5)", "CBO (AF 4)", "Eq 5 needs fewer changes than Eq 4", "sum")
    yield less("8", "CBO (AF 4)", paper.DS2, "Eq 4 needs fewer changes than DS2", "sum")
    for trace in [column for table, row, column in at if table == "Figure 7" and row == paper.DS2]:
        cbo = at["Figure 7", paper.ALPHA_3, trace]
        for other in (at["Figure 7", paper.DS2, trace], at["Figure 7", paper.ALPHA_0, trace]):
            told = f"{cbo.ours:.1f} against {other.ours:.1f}"
            sentence = f"{trace}: alpha=3 makes fewer changes than {other.row}"
            yield Check("Figure 7", sentence, cbo.ours < other.ours, told, OVERLAP if _overlap(cbo, other) else UNKNOWN)


def _overlap(a: Cell, b: Cell) -> bool:
    """Whether two intervals overlap; where there are none, nothing can be told apart."""
    if a.low is None or a.high is None or b.low is None or b.high is None:
        return True
    return a.low <= b.high and b.low <= a.high


def _values(at: Mapping[tuple[str, str, str], Cell], table: str, rows: Sequence[str]) -> str:
    return ", ".join(
        f"{row} {at[table, row, 'mean'].ours:.2f}" for row in dict.fromkeys(rows) if (table, row, "mean") in at
    )


def _held(at: Mapping[tuple[str, str, str], Cell]) -> str:
    return ", ".join(
        f"{q} {at['5', paper.ALPHA_3, q].ours:.1f} against {at['5', paper.DS2, q].ours:.1f}" for q in paper.QUERIES
    )


def findings(cells: Sequence[Cell]) -> Iterator[Finding]:
    """Yield where Table 4a's order fails on a query, cells of it off by over 10 %, and means of the other tables."""
    at = index(cells)
    for query in paper.QUERIES:
        for more, fewer in ORDER:
            a, b = at["4a", more, query], at["4a", fewer, query]
            if not a.ours > b.ours:
                cause = OVERLAP if _overlap(a, b) else CAUSES.get(("4a", more, "-"), UNKNOWN)
                yield Finding("4a", f"{query}: {more} {a.ours:.2f} is not above {fewer} {b.ours:.2f}", cause)
    for cell in cells:
        single = cell.table == "4a" and cell.column != "mean"
        told = single or (cell.table in ("4b", "4c", "4d", "4e", "4f", "5", "6") and cell.column == "mean")
        if told and cell.off(WITHIN):
            yield Finding(cell.table, cell.beside(), _cause(cell))


def _cause(cell: Cell) -> str:
    assert cell.paper is not None
    known = CAUSES.get((cell.table, cell.row, "+" if cell.ours > cell.paper else "-"))
    return known or (INSIDE if cell.inside else UNKNOWN if cell.table == "4a" else ELSEWHERE)
