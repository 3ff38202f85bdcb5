"""Which of the paper's conclusions hold in our numbers, and every place where ours differ, with the cause."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from rheostat.lab.papers.autrascale import paper
from rheostat.lab.papers.autrascale.runs import STARTS, transfers
from rheostat.lab.papers.autrascale.tables import optimum
from rheostat.lab.papers.result import Cell, Check, Finding

WITHIN = 0.1
MOST_ITERATIONS, MOST_TASKS = 2.5, 1.3
"""What our latency model aims at: iterations, and tasks relative to exhaustive search."""

At = Mapping[tuple[str, str, str], Cell]

CAUSES: Mapping[tuple[str, str, str], str] = {
    (
        "Figure 7",
        paper.TO,
        "+",
    ): "a look counts as an iteration, and a noisy true rate makes Eq 3 ask for a task more or "
    "less once or twice before it ends",
    ("Figure 7", paper.TO, "-"): "on some seeds the noise of the first windows leads to the final size sooner",
    (
        "Figure 7, tasks",
        paper.TO,
        "+",
    ): "the paper's selected configuration is one that a smaller rate than 60k/s needs; "
    "ours asks for what 60k/s need wherever nothing limits it",
    (
        "IV, iterations",
        paper.PLO,
        "+",
    ): "all operators of this latency law queue at π^t; the joint model has to find out which of them matter",
    ("IV, iterations", paper.PLO, "-"): "the bootstrapping samples around π^t show at once which operator queues",
    (
        "IV, iterations",
        paper.DRS_OBSERVED,
        "-",
    ): "every task seems to be full, so it grows everywhere at once and is soon beyond what is needed",
    ("IV, iterations", paper.DRS_OBSERVED, "+"): "as above: it goes on growing until the latency is met",
    (
        "IV, iterations",
        paper.DRS_TRUE,
        "+",
    ): "its queueing model expects a millisecond, so it only repairs what true rates lack, a task at a time",
    ("IV, iterations", paper.DRS_TRUE, "-"): "its queueing model is content with what the true rates need",
    (
        "IV, tasks",
        paper.DRS_OBSERVED,
        "-",
    ): "in our jobs only the operators that really lack tasks are slow, so it stops earlier than the paper's",
    ("IV, tasks", paper.DRS_OBSERVED, "+"): "from a start at P_max it cannot see that tasks are idle",
    ("IV, tasks", paper.DRS_TRUE, "-"): "with true rates it takes what keeps up; why the paper's takes 33 tasks for "
    "operators that need one is not explained by its method",
    ("IV, tasks", paper.DRS_TRUE, "+"): "the paper's does not keep up with the load",
    (
        "IV, tasks",
        paper.PLO,
        "+",
    ): "a score of 0.9 lets 100 % too many tasks pass, and which of the many such allocations "
    "is met first depends on the samples",
    ("IV, tasks", paper.PLO, "-"): "as above",
    (
        "IV, bootstrap runs",
        paper.PLO,
        "-",
    ): "between π^t and P_max = 40 there are no 35 different uniform samples: each is measured once",
}
ELSEWHERE = "the absolute value is that of another cluster"
CHANCE = "within what the seeds scatter"
UNKNOWN = "not explained"


def index(cells: Sequence[Cell]) -> At:
    """Return the cells by table, row and column."""
    return {(cell.table, cell.row, cell.column): cell for cell in cells}


def checks(cells: Sequence[Cell]) -> Iterator[Check]:
    """Yield every conclusion with the numbers behind it."""
    at = index(cells)
    yield from _throughput(at)
    yield from _latency(at)
    yield from _transfer(at)
    yield from _backlog(at)


def _throughput(at: At) -> Iterator[Check]:
    looks = {name: at["Figure 7", paper.TO, name].ours for name in paper.WORKLOADS}
    told = ", ".join(f"{name} {count:.1f}" for name, count in looks.items())
    sentence = "TO ends after at most four iterations on the mean of the jobs"
    yield Check(
        "Figure 7", sentence, float(np.mean(list(looks.values()))) <= 4.5, told, CAUSES["Figure 7", paper.TO, "+"]
    )
    served = [at["Figure 7, load served", paper.TO, name].ours for name in paper.WORKLOADS if name != "Yahoo"]
    yield Check(
        "Figure 7", "TO serves the load where nothing outside limits it", min(served) >= 98.5, f"{min(served):.1f} %"
    )
    share, tasks = at["Figure 7, load served", paper.TO, "Yahoo"].ours, at["Figure 7, tasks", paper.TO, "Yahoo"].ours
    told = f"{share:.0f} % of the load with {tasks:.0f} tasks, DS2 {at['Figure 7, tasks', paper.DS2, 'Yahoo'].ours:.0f}"
    ends = looks["Yahoo"] < 20 and tasks <= at["Figure 7, tasks", paper.DS2, "Yahoo"].ours + 1e-9
    yield Check("Figure 7", "limited from outside, TO ends, and with no more tasks than DS2", ends, told)


def _latency(at: At) -> Iterator[Check]:
    def values(table: str, row: str) -> dict[str, float]:
        return {test: at[f"IV, {table}", row, test].ours for test in paper.TESTS}

    plo, observed = values("tasks", paper.PLO), values("tasks", paper.DRS_OBSERVED)
    told = ", ".join(f"{test} {plo[test]:.0f} against {observed[test]:.0f}" for test in paper.TESTS)
    fewer = [test for test in paper.TESTS if plo[test] < observed[test]]
    cause = f"only on {', '.join(fewer) or 'none'}; {CAUSES['IV, tasks', paper.PLO, '+']}"
    yield Check("IV", "AuTraScale+ holds fewer tasks than DRS with observed rates", len(fewer) == 4, told, cause)
    met = values("meets QoS", paper.PLO)
    told = ", ".join(f"{test} {share:.0f} %" for test, share in met.items())
    cause = "a size that was below the target in one look is above it in a later one: latency near saturation is noisy"
    yield Check("IV", "AuTraScale+ meets its target", float(np.mean(list(met.values()))) >= 80.0, told, cause)
    true = values("meets QoS", paper.DRS_TRUE)
    misses = [test for test in paper.TESTS if true[test] < 50.0]
    told = ", ".join(f"{test} {share:.0f} %" for test, share in true.items())
    yield Check(
        "IV", "DRS with true rates misses its target when it scales up", {"WC Up", "Yahoo Up"} <= set(misses), told
    )
    steps = values("iterations", paper.PLO)
    told = ", ".join(f"{test} {count:.1f}" for test, count in steps.items())
    cause = CAUSES["IV, iterations", paper.PLO, "+"]
    yield Check("IV", "AuTraScale+ needs at most three iterations", max(steps.values()) <= 3.0, told, cause)
    ours = values("iterations", paper.OURS)
    over = {test: at["IV, tasks over exhaustive", paper.OURS, test].ours for test in paper.TESTS}
    told = ", ".join(f"{test} {ours[test]:.1f} and {over[test]:.2f}x" for test in paper.TESTS)
    sentence = f"ours: at most {MOST_ITERATIONS} iterations and {MOST_TASKS}x the tasks of exhaustive search, no trials"
    good = max(ours.values()) <= MOST_ITERATIONS and max(over.values()) <= MOST_TASKS
    yield Check("IV", sentence, good, told)
    joint = {test: at["IV, tasks over exhaustive", paper.PLO, test].ours for test in paper.TESTS}
    told = ", ".join(f"{test} {over[test]:.2f}x against {joint[test]:.2f}x" for test in paper.TESTS)
    better = all(over[test] <= joint[test] + 0.02 for test in paper.TESTS)
    yield Check("IV", "ours: no more tasks than the joint model's", better, told)


def _transfer(at: At) -> Iterator[Check]:
    for what in ("tasks", "iterations"):
        light, old = (
            {name: at[f"Figure 10, {what}", row, name].ours for name in transfers()}
            for row in (paper.LIGHT, paper.TRADITIONAL)
        )
        told = ", ".join(f"{name} {old[name]:.1f} -> {light[name]:.1f}" for name in light)
        # The paper's own light transfer takes an iteration more on two workloads.
        slack = 0.5 if what == "tasks" else 1.0
        good = all(light[name] <= old[name] + slack for name in light)
        sentence = f"lightweight transfer needs no more {what} than the traditional one"
        sentence += "" if what == "tasks" else ", or one more"
        cause = (
            "where it needs more iterations it ends with far fewer tasks: the traditional one takes a wide allocation "
        )
        cause += "that its estimates of the bootstrapping set speak for"
        yield Check("Figure 10", sentence, good, told, cause)
    unmet = [name for name, (w, target_s) in transfers().items() if optimum(w.job, w.new * 1e3, target_s) is None]
    if unmet:
        met = [at["Figure 10, target met", row, name].ours for row in (paper.LIGHT, paper.OURS) for name in unmet]
        told = f"{', '.join(unmet)}: met in {max(met):.0f} % of the runs"
        yield Check("Figure 10", "a target below the floor is met by nobody", max(met) <= 50.0, told)


def _backlog(at: At) -> Iterator[Check]:
    for start in STARTS:
        column = f"{start} start"
        share = {
            row: at["Figure 11, in time", row, column].ours for row in (paper.MAX, paper.PROPORTION, paper.EXPONENT)
        }
        elo, ours = at["Figure 11, in time", paper.ELO, column].ours, at["Figure 11, in time", paper.OURS, column].ours
        told = ", ".join(f"{row} {value:.0f} %" for row, value in {**share, paper.ELO: elo, paper.OURS: ours}.items())
        cause = "a profile of 100 s is a few per cent off, and a target of 250 ms leaves no room for that"
        sentence = f"{start} start: AuTraScale+ is in time as often as Exponent, and Proportion is not"
        yield Check("Figure 11", sentence, elo >= share[paper.EXPONENT] - 10.0 > share[paper.PROPORTION], told, cause)
        saved = {row: at["Figure 11, AuTraScale+ saves", row, column].ours for row in paper.SAVED}
        told = ", ".join(f"{row} {value:.0f} %" for row, value in saved.items())
        cause = (
            "Eq 13 has no term for resources: any allocation with that throughput passes, and the first that is met "
        )
        cause += "is one of the uniform samples; Proportion and Exponent grow from a start that wastes nothing"
        sentence = f"{start} start: AuTraScale+ saves tasks against Exponent, Proportion and Max"
        yield Check("Figure 11", sentence, min(saved.values()) > 0, told, cause)
    said = {
        (row, start): at["Figure 11, out of reach", row, f"said so, {start} start"].ours
        for row in (paper.MAX, paper.PROPORTION, paper.EXPONENT, paper.ELO, paper.OURS)
        for start in STARTS
    }
    told = ", ".join(f"{row} ({start}) {value:.0f} %" for (row, start), value in said.items())
    cause = "a method that comes within two per cent of the time does not notice"
    yield Check(
        "Figure 11", "every method says so where nobody can be in time", min(said.values()) >= 99.0, told, cause
    )


def findings(cells: Sequence[Cell]) -> Iterator[Finding]:
    """Yield the cells with a number of the paper's that ours are off by over a tenth, Table VI's apart."""
    for cell in cells:
        if cell.table != "VI" and cell.off(WITHIN):
            yield Finding(cell.table, cell.beside(), _cause(cell))


def _cause(cell: Cell) -> str:
    assert cell.paper is not None
    known = CAUSES.get((cell.table, cell.row, "+" if cell.ours > cell.paper else "-"))
    if known:
        return known
    if cell.inside:
        return CHANCE
    if cell.table.startswith(("IV, latency", "IV, throughput", "IV, score", "IV, meets")):
        return ELSEWHERE
    if cell.table.startswith("Figure 11"):
        return "Eq 13 has no term for resources; what is saved depends on the start, which the paper does not tell"
    if cell.table.startswith("Figure 10"):
        return "what is saved depends on how many operators queue at π^t, which the paper does not tell"
    return UNKNOWN
