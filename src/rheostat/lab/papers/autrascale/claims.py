"""The paper's claims about our numbers, our own goals, and what was fitted."""

from __future__ import annotations

from collections.abc import Iterator

from rheostat.lab.papers.autrascale import paper
from rheostat.lab.papers.autrascale.other_laws import LAWS
from rheostat.lab.papers.autrascale.runs import RECALLED, STARTS, transfers
from rheostat.lab.papers.autrascale.tables import ROWS_11, ROWS_RECALL, SIMULATED, UNROUNDED_10, suffix
from rheostat.lab.papers.claim import (
    Ablation,
    Claim,
    Comparison,
    at_least,
    at_most,
    columns,
    less,
    near_paper,
    not_more,
    ratio,
)
from rheostat.lab.papers.result import Fit
from rheostat.lab.papers.table import Cell, Place, places

MOST_ITERATIONS, MOST_TASKS = 2.5, 1.3
"""Goals of our latency model: iterations, and tasks relative to exhaustive search."""
SERVED = 98.5
"""Per cent of the load that counts as all of it: windows are noisy."""
AS_OFTEN = 10.0
"""Per cent of cells by which two methods may differ and still be in time as often."""
WITHIN = 10.0
"""Percentage points by which a saving may be smaller than the abstract's."""
GOAL_MS = 10.0
"""Goal for a decision with ten operators."""
ONE_PROCESS = "one process profiles the throughput of all operators; the capacities of single operators show which grow"
"""The factor that our row changes in ELO."""
ROUNDED = "Eq 3 takes the rounded tasks of the upstream"
COMMAND = "rheostat reproduce autrascale"

FITS = (
    Fit(
        "curves of WordCount, Q5 and Q11",
        "Figure 7's sizes; WordCount's iterations in Figure 7",
        "Figure 7, and its tasks: both TO rows on WordCount, Q5 and Q11",
    ),
    Fit(
        "curves and base latency of the job of Figures 4 and 5",
        "Figure 5: throughput with one and two tasks each, latency with five",
        "Figure 5 with one and two tasks, latency with five; Figure 4: throughput at 300K/s",
    ),
    Fit("limit of Yahoo's store (36.5K/s)", "Figure 7's Yahoo run", "Figure 7 and 7(b), IV and Figure 10: Yahoo"),
    Fit("latency law of all jobs", "the shape of Figure 5", "IV and Figure 10"),
    Fit("base latencies of Q5 and Q11", "Table V: its targets need a few more tasks", "Figure 10: Q5 and Q11"),
    Fit("alpha = 0.8", "three published scores of Table IV", "IV, score"),
    Fit("the job of Figure 11", "Figure 11: its hardest cell is just out of reach", "Figure 11"),
)


def _cases() -> Iterator[Claim]:
    def two(table: str, high: str, low: str) -> tuple[Place, Place]:
        return (table, SIMULATED, high), (table, SIMULATED, low)

    yield Claim(
        "Figure 4", "observation 1: beyond the capacity data lag and both latencies grow",
        tuple(
            Comparison((high,), "above", 0.0, to=(low,), measure="difference")
            for high, low in (
                two(f"Figure 4(b), {what}", "300k/s", "200k/s")
                for what in ("data lag", "processing latency", "event-time latency")
            )
        ),
    )  # fmt: skip
    yield Claim(
        "Figure 5", "observation 2.1: three tasks each do not reach 300K/s, as with 275K/s in the paper",
        (near_paper(("Figure 5(a)", SIMULATED, "p = 3"), 0.05),),
    )  # fmt: skip
    more, fewer = two("Figure 5(b), processing latency", "p = 6", "p = 5")
    yield Claim(
        "Figure 5", "observation 2.3: six tasks each are slower than five, 125 ms after 100 ms",
        (Comparison((more,), "above", 0.0, to=(fewer,), measure="difference"), near_paper(more, 0.05)),
    )  # fmt: skip


def _throughput() -> Iterator[Claim]:
    yield Claim(
        "Figure 7", "TO ends after at most four iterations on the mean of the jobs",
        (Comparison(places("Figure 7", [paper.TO], paper.WORKLOADS), "at most", 4.0, 0.5),),
    )  # fmt: skip
    sizes = [name for name in paper.WORKLOADS if name != "Yahoo"]

    def near(row: str) -> tuple[Comparison, ...]:
        return tuple(near_paper(place, 0.1) for place in places("Figure 7, tasks", [row], sizes))

    yield Claim(
        "Figure 7", "TO ends with the published tasks", near(paper.TO),
        ablation=Ablation(ROUNDED, near(paper.UNROUNDED), COMMAND),
    )  # fmt: skip
    selected, *larger = (
        ("Figure 7(b), throughput", SIMULATED, f"{name} ({', '.join(map(str, size))})")
        for name, size in paper.SIZES_7B.items()
    )
    yield Claim(
        "Figure 7(b)", "no larger size is faster than the selected (4, 2, 1, 1, 34)",
        tuple(ratio(size, selected, "at most", 1.0, 0.01) for size in larger),
    )  # fmt: skip
    free = (name for name in paper.WORKLOADS if name != "Yahoo")
    yield Claim(
        "Figure 7", "TO serves the load where nothing outside limits it",
        at_least(SERVED, *places("Figure 7, load served", [paper.TO], free)),
    )  # fmt: skip
    looks: Place = ("Figure 7", paper.TO, "Yahoo")
    ours, linear = places("Figure 7, tasks", (paper.TO, paper.DS2), ["Yahoo"])
    (unrounded,) = places("Figure 7, tasks", [paper.UNROUNDED], ["Yahoo"])
    yield Claim(
        "Figure 7", "limited from outside, TO ends within 20 iterations, and with no more tasks than DS2",
        (Comparison((looks,), "below", 20.0), not_more(ours, linear)),
        ablation=Ablation(ROUNDED, (not_more(unrounded, linear),), COMMAND),
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
    calibrated: Place = ("IV, meets QoS", paper.CALIBRATED, "Yahoo Up")
    yield Claim(
        "IV", "DRS with true rates meets its target on Yahoo Up", (Comparison((meets,), "above", 50.0),),
        ablation=Ablation(
            "DRS ends when its queues expect the target to be met, whatever was measured",
            (Comparison((calibrated,), "above", 50.0),), COMMAND,
        ),
    )  # fmt: skip
    scale_up, scale_down = places("Headline, tasks saved", [paper.PLO], paper.SAVED_AGAINST_DRS)
    yield Claim(
        "Abstract", "against DRS it saves 36.7 % in scaling up and 66.6 % in scaling down",
        (
            Comparison((scale_up,), "at least", paper.SAVED_AGAINST_DRS["scale-up"], WITHIN),
            Comparison((scale_down,), "at least", paper.SAVED_AGAINST_DRS["scale-down"], WITHIN),
        ),
    )  # fmt: skip
    yield Claim(
        "Abstract", "against DRS it saves tasks in both directions",
        tuple(Comparison((cell,), "above", 0.0) for cell in (scale_up, scale_down)),
    )  # fmt: skip
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
    pairs = columns("IV, tasks over exhaustive", paper.OURS, paper.PLO_UNROUNDED, paper.TESTS)
    yield Claim(
        "IV", "ours: no more tasks than the joint model's", tuple(not_more(a, b, 0.02) for a, b in pairs), goal=True
    )


def _laws() -> Iterator[Claim]:
    """Our model's advantage, law by law: on its own family it is no surprise."""
    for law in LAWS:
        where = "its own law" if law == "its own" else f"a law outside its family: {law}"
        ours, joint = places("Other laws, tasks over exhaustive", (paper.OURS, paper.PLO_UNROUNDED), [law])
        (met,) = places("Other laws, meets QoS", [paper.OURS], [law])
        yield Claim(
            "Other laws", f"ours on {where}: no more tasks than the joint model, and the target is met in most runs",
            (not_more(ours, joint, 0.02), Comparison((met,), "above", 50.0)), goal=True,
        )  # fmt: skip


def _transfer() -> Iterator[Claim]:
    # The paper's own light transfer takes an iteration more on two workloads.
    rows = ((paper.TRADITIONAL, paper.LIGHT, ""), (*UNROUNDED_10, "Eq 3 unrounded: "))
    for old, light, head in rows:
        for what, slack, tail in (("tasks", 0.5, ""), ("iterations", 1.0, ", or one more")):
            yield Claim(
                "Figure 10",
                f"{head}lightweight transfer needs no more {what} than the traditional one{tail}",
                tuple(not_more(a, b, slack) for a, b in columns(f"Figure 10, {what}", light, old, transfers())),
            )
    steps = places("Figure 10, iterations", [paper.TRADITIONAL], transfers())
    more = places("Figure 10, iterations", [paper.TRADITIONAL_UNROUNDED], transfers())
    yield Claim(
        "Figure 10", "there is something to transfer: π^t does not meet the target on the mean of the jobs",
        (Comparison(steps, "above", 0.5),),
        ablation=Ablation(ROUNDED, (Comparison(more, "above", 0.5),), COMMAND),
    )  # fmt: skip
    low, high = paper.SPEEDUP
    speedups = places(
        "Figure 10(b), speedup per iteration", [paper.LIGHT],
        (f"{name} ({operators} operators)" for name, operators in paper.TRANSFER_OPERATORS.items()),
    )  # fmt: skip
    yield Claim(
        "Figure 10(b)", "an iteration of lightweight transfer is 1.17 to 1.9 times as fast",
        (Comparison(speedups, "within", (low + high) / 2, (high - low) / 2),),
    )  # fmt: skip
    for row in ROWS_RECALL:
        trials = places("Recall, trials", [row], (f"{name}, again" for name in RECALLED))
        yield Claim(
            "Recall", f"{row}: a rate that returns gets no more tasks than before in most runs, without trials",
            (
                *(Comparison((cell,), "above", 50.0) for cell in places("Recall, no more tasks", [row], RECALLED)),
                *at_most(0.0, *trials),
            ),
            goal=True,
        )  # fmt: skip


def _saves(start: str, row: str) -> tuple[Comparison, ...]:
    cells = places(f"Figure 11, {row} saves", paper.SAVED, [f"{start} start"])
    return tuple(Comparison((cell,), "above", 0.0) for cell in cells)


def _on_average(row: str, start: str) -> Comparison:
    return Comparison(places("Headline, tasks saved", [row], [f"event-time, {start} start"]), "above", 0.0)


def _backlog() -> Iterator[Claim]:
    for start in STARTS:
        elo, bound, exponent, proportion = places(
            "Figure 11, in time", (paper.ELO, paper.BOUND, paper.EXPONENT, paper.PROPORTION), [f"{start} start"]
        )

        def often(row: Place, than: Place = exponent) -> Comparison:
            return Comparison((row,), "at least", 0.0, AS_OFTEN, to=(than,), measure="difference")

        yield Claim(
            "Figure 11", f"{start} start: AuTraScale+ is in time as often as Exponent", (often(elo),),
            ablation=Ablation("Algorithm 3 accepts a throughput below V_t", (often(bound),), COMMAND),
        )  # fmt: skip
        yield Claim(
            "Figure 11", f"{start} start: Proportion is in time less often than Exponent",
            (Comparison((proportion,), "below", -AS_OFTEN, to=(exponent,), measure="difference"),),
        )  # fmt: skip
        yield Claim(
            "Figure 11", f"{start} start: AuTraScale+ saves tasks against Exponent, Proportion and Max",
            _saves(start, paper.ELO),
            ablation=Ablation(ONE_PROCESS, _saves(start, paper.OURS), COMMAND),
        )  # fmt: skip
        thrift, published = places("Figure 11(b)" + suffix(start), (paper.THRIFT, paper.ELO), ["mean"])
        yield Claim(
            "Figure 11", f"ours, {start} start: a tie-break by tasks gives ELO fewer tasks", (less(thrift, published),),
            goal=True,
        )  # fmt: skip
        yield Claim(
            "Abstract", f"{start} start: it saves tasks on average over the three methods (26.9 %)",
            (_on_average(paper.ELO, start),),
            ablation=Ablation(ONE_PROCESS, (_on_average(paper.OURS, start),), COMMAND),
        )  # fmt: skip
    said = places("Figure 11, out of reach", ROWS_11, (f"said so, {start} start" for start in STARTS))
    yield Claim("Figure 11", "every method reports the cells that cannot be met", at_least(99.0, *said))


def _overhead() -> Iterator[Claim]:
    names = [f"{operators} operators" for operators in paper.OPERATORS]
    yield Claim(
        "VI", "no decision takes more than 90 ms of CPU time for ten operators",
        at_most(90.0, *places("VI", paper.OVERHEAD_MS, names[-1:])),
    )  # fmt: skip
    yield Claim(
        "VI", "the overhead grows at most linearly with the operators",
        tuple(
            ratio(("VI", row, names[-1]), ("VI", row, names[0]), "at most", paper.OPERATORS[-1] / paper.OPERATORS[0])
            for row in paper.OVERHEAD_MS
        ),
    )  # fmt: skip
    yield Claim(
        "VI", "Algorithm 2 takes less time than the traditional transfer, on the mean of 2 to 10 operators",
        (
            Comparison(
                places("VI", ["Algorithm 2"], names), "below", 0.0,
                to=places("VI", ["Traditional"], names), measure="difference",
            ),
        ),
    )  # fmt: skip
    yield Claim(
        "VI", f"ours: every decision takes at most {GOAL_MS:g} ms for ten operators",
        at_most(GOAL_MS, *places("VI", (*paper.OVERHEAD_MS, paper.OURS), names[-1:])), goal=True,
    )  # fmt: skip


CLAIMS = (
    *_cases(), *_throughput(), *_latency(), *_laws(), *_transfer(), *_backlog(), *_overhead(),
)  # fmt: skip
"""The paper's claims, and our own goals."""


def comparable(cell: Cell) -> bool:
    """Return whether a cell is listed if it differs; Table VI is CPU time of another machine."""
    return cell.table != "VI"
