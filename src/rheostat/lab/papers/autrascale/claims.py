"""The paper's claims about our numbers, our own goals, and what was fitted."""

from __future__ import annotations

from collections.abc import Iterator

from rheostat.lab.papers.autrascale import paper
from rheostat.lab.papers.autrascale.runs import STARTS, transfers
from rheostat.lab.papers.autrascale.tables import ROWS_11
from rheostat.lab.papers.claim import Ablation, Claim, Comparison, at_least, at_most, columns, less, not_more
from rheostat.lab.papers.result import Fit
from rheostat.lab.papers.table import Cell, Place, places

MOST_ITERATIONS, MOST_TASKS = 2.5, 1.3
"""Goals of our latency model: iterations, and tasks relative to exhaustive search."""
SERVED = 98.5
"""Per cent of the load that counts as all of it: windows are noisy."""
AS_OFTEN = 10.0
"""Per cent of cells by which two methods may differ and still be in time as often."""
COMMAND = "rheostat reproduce autrascale"

FITS = (
    Fit(
        "curves of WordCount, Q5 and Q11",
        "Figure 7's sizes; WordCount's iterations in Figure 7",
        "Figure 7, and its tasks: TO on WordCount, Q5 and Q11",
    ),
    Fit("limit of Yahoo's store (36.5K/s)", "Figure 7's Yahoo run", "Figure 7, IV and Figure 10: Yahoo"),
    Fit("latency law of all jobs", "the shape of Figure 5", "IV and Figure 10"),
    Fit("base latencies of Q5 and Q11", "Table V: its targets need a few more tasks", "Figure 10: Q5 and Q11"),
    Fit("alpha = 0.8", "three published scores of Table IV", "IV, score"),
    Fit("the job of Figure 11", "Figure 11: its hardest cell is just out of reach", "Figure 11"),
)


def _throughput() -> Iterator[Claim]:
    yield Claim(
        "Figure 7", "TO ends after at most four iterations on the mean of the jobs",
        (Comparison(places("Figure 7", [paper.TO], paper.WORKLOADS), "at most", 4.0, 0.5),),
    )  # fmt: skip
    free = (name for name in paper.WORKLOADS if name != "Yahoo")
    yield Claim(
        "Figure 7", "TO serves the load where nothing outside limits it",
        at_least(SERVED, *places("Figure 7, load served", [paper.TO], free)),
    )  # fmt: skip
    looks: Place = ("Figure 7", paper.TO, "Yahoo")
    ours, linear = places("Figure 7, tasks", (paper.TO, paper.DS2), ["Yahoo"])
    yield Claim(
        "Figure 7", "limited from outside, TO ends within 20 iterations, and with no more tasks than DS2",
        (Comparison((looks,), "below", 20.0), not_more(ours, linear)),
    )  # fmt: skip


def _latency() -> Iterator[Claim]:
    def cells(table: str, row: str) -> tuple[Place, ...]:
        return places(f"IV, {table}", [row], paper.TESTS)

    yield Claim(
        "IV", "AuTraScale+ holds fewer tasks than DRS with observed rates",
        tuple(less(a, b) for a, b in columns("IV, tasks", paper.PLO, paper.DRS_OBSERVED, paper.TESTS)),
    )  # fmt: skip
    met = cells("meets QoS", paper.PLO)
    yield Claim("IV", "AuTraScale+ meets its target in 80 % of all runs", (Comparison(met, "at least", 100.0, 20.0),))
    misses, meets = (("IV, meets QoS", paper.DRS_TRUE, test) for test in ("WC Up", "Yahoo Up"))
    yield Claim("IV", "DRS with true rates misses its target on WC Up", (Comparison((misses,), "below", 50.0),))
    yield Claim("IV", "DRS with true rates meets its target on Yahoo Up", (Comparison((meets,), "above", 50.0),))
    yield Claim("IV", "AuTraScale+ needs at most three iterations", at_most(3.0, *cells("iterations", paper.PLO)))
    yield Claim(
        "IV", f"ours: at most {MOST_ITERATIONS} iterations and {MOST_TASKS}x the tasks of exhaustive search, no trials",
        (
            *at_most(MOST_ITERATIONS, *cells("iterations", paper.OURS)),
            *at_most(MOST_TASKS, *cells("tasks over exhaustive", paper.OURS)),
            *at_most(0.0, *cells("bootstrap runs", paper.OURS)),
        ),
        goal=True,
    )  # fmt: skip
    pairs = columns("IV, tasks over exhaustive", paper.OURS, paper.PLO, paper.TESTS)
    yield Claim(
        "IV", "ours: no more tasks than the joint model's", tuple(not_more(a, b, 0.02) for a, b in pairs), goal=True
    )


def _transfer() -> Iterator[Claim]:
    # The paper's own light transfer takes an iteration more on two workloads.
    for what, slack, tail in (("tasks", 0.5, ""), ("iterations", 1.0, ", or one more")):
        pairs = columns(f"Figure 10, {what}", paper.LIGHT, paper.TRADITIONAL, transfers())
        yield Claim(
            "Figure 10",
            f"lightweight transfer needs no more {what} than the traditional one{tail}",
            tuple(not_more(light, old, slack) for light, old in pairs),
        )


def _saves(start: str) -> tuple[Comparison, ...]:
    cells = places("Figure 11, AuTraScale+ saves", paper.SAVED, [f"{start} start"])
    return tuple(Comparison((cell,), "above", 0.0) for cell in cells)


def _backlog() -> Iterator[Claim]:
    for start in STARTS:
        elo, exponent, proportion = places(
            "Figure 11, in time", (paper.ELO, paper.EXPONENT, paper.PROPORTION), [f"{start} start"]
        )
        yield Claim(
            "Figure 11", f"{start} start: AuTraScale+ is in time as often as Exponent, and Proportion is not",
            (
                Comparison((elo,), "at least", 0.0, AS_OFTEN, to=(exponent,), measure="difference"),
                Comparison((proportion,), "below", -AS_OFTEN, to=(exponent,), measure="difference"),
            ),
        )  # fmt: skip
        yield Claim(
            "Figure 11", f"{start} start: AuTraScale+ saves tasks against Exponent, Proportion and Max", _saves(start),
            ablation=Ablation(f"the {start} start", _saves(STARTS[1]), COMMAND) if start == STARTS[0] else None,
        )  # fmt: skip
    said = places("Figure 11, out of reach", ROWS_11, (f"said so, {start} start" for start in STARTS))
    yield Claim("Figure 11", "every method reports the cells that cannot be met", at_least(99.0, *said))


CLAIMS = (*_throughput(), *_latency(), *_transfer(), *_backlog())
"""The paper's claims, and our own goals."""


def comparable(cell: Cell) -> bool:
    """Return whether a cell is listed if it differs; Table VI is CPU time of another machine."""
    return cell.table != "VI"
