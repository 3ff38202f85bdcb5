"""Which of the paper's conclusions hold in our numbers, and every place where ours differ, with the cause."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rheostat.lab.papers.phoebe import paper
from rheostat.lab.papers.phoebe.runs import PROMISE
from rheostat.lab.papers.phoebe.tables import COLUMNS, SHOWN, SUITE
from rheostat.lab.papers.result import Cell, Check, Finding

WITHIN = 0.1
COMPARABLE = 1.25
"""Phoebe's recovery times are comparable with static 24's up to this ratio, on the mean."""
MOSTLY = 5
"""Of eight failures."""
OVER_CLAIRVOYANT, PREDICTION = 1.08, 5.0
"""Our own goals: slot-seconds over the clairvoyant with as many changes, and per cent of error."""

At = Mapping[tuple[str, str, str], Cell]

DISPLAY = "a shown recovery time contains a display lag of a minute, and when a job resumes is random (sd 8 s)"
UNSTUCK = (
    "Flink's reactive jobs in the recordings get stuck in restarts; the simulated job always restarts in time, and "
    "what CPU means at saturation was chosen (0.42 of the useful time)"
)
D_DIFFERS = "D is not disclosed and decides what Phoebe saves and how its jobs recover; see the table of its D"
PROFILE_COST = (
    "eight deployments with 7 minutes per rate until each is full are 550,000 slot-seconds, more than static 24 uses "
    "in six hours (518,400); the paper's figures would be 23 and 31 % of that, which its own settings do not give"
)
TWRES_WORD = "TWRES is described in one paragraph; without a thought of recovery one worker more or less decides"
CAUSES: Mapping[tuple[str, str], str] = {
    (SHOWN, paper.S24): DISPLAY,
    (SHOWN, paper.S12): DISPLAY,
    (SHOWN, paper.PHOEBE): D_DIFFERS,
    (SHOWN, paper.REACTIVE): UNSTUCK,
    (SHOWN, paper.TWRES): TWRES_WORD,
    ("changes", paper.PHOEBE): D_DIFFERS,
    ("changes", paper.REACTIVE): UNSTUCK,
    ("changes", paper.TWRES): TWRES_WORD,
    ("latency", paper.REACTIVE): UNSTUCK,
    ("latency", paper.TWRES): TWRES_WORD,
    ("resources saved against static 24", paper.PHOEBE): f"{D_DIFFERS}; with profiling: {PROFILE_COST}",
    ("prediction error of recovery", f"{paper.PHOEBE}, as displayed"): (
        "what the paper's error is of is not said; logged decisions of its recorded runs are 10 to 43 % off one by one"
    ),
}
UNKNOWN = "not explained"


def checks(cells: Sequence[Cell]) -> Iterator[Check]:
    """Yield the paper's conclusions, and our own goals, experiment by experiment."""
    at: At = {(cell.table, cell.row, cell.column): cell for cell in cells}
    for name in paper.EXPERIMENTS:
        title = paper.TITLES[name]
        yield from _recovery(at, name, title)
        yield from _cost(at, name, title)
        yield from _ours(at, title, name)


def _row(at: At, table: str, row: str) -> list[float]:
    return [at[table, row, column].ours for column in COLUMNS]


def _recovery(at: At, name: str, title: str) -> Iterator[Check]:
    table = f"II {title}, {SHOWN}"
    ours, all24 = _row(at, table, paper.PHOEBE), _row(at, table, paper.S24)
    ratio = sum(ours) / sum(all24)
    told = f"{ratio:.2f} times static 24's on the mean"
    sentence = "Phoebe recovers at any load, comparably with 24 fixed workers"
    cause = "an evaluation just before a rise, at a small D, leaves it short once"
    yield Check(table, sentence, ratio <= COMPARABLE and max(ours) < paper.LONG_S, told, cause)
    for row in (paper.S4, paper.REACTIVE, paper.TWRES):
        late = sum(value >= paper.LONG_S for value in _row(at, table, row))
        told = f"{late} of 8 failures take six minutes or more"
        yield Check(table, f"{row} is short of resources and recovers poorly", late >= MOSTLY, told, UNSTUCK)
    late = sum(value >= paper.LONG_S for value in _row(at, table, paper.S12))
    yield Check(table, f"{paper.S12} fails above a certain load only", 0 < late < MOSTLY, f"{late} of 8")
    table = f"{title}, latency"
    shares = {row: at[table, row, "% near the best"].ours for row in paper.ROWS}
    best = sorted((row for row in shares if row != paper.OURS), key=lambda row: -shares[row])
    told = ", ".join(f"{row} {shares[row]:.0f} %" for row in best[:3])
    holds = best[:2] == [paper.S24, paper.PHOEBE]
    yield Check(table, "static 24 has the best latencies, Phoebe the second best", holds, told)


def _cost(at: At, name: str, title: str) -> Iterator[Check]:
    table = f"{title}, resources saved against static 24"
    for row in (paper.PHOEBE, paper.OURS):
        saved, printed = at[table, row, "saved"].ours, paper.SAVING[name]
        told = f"{saved:.1f} %, paper {printed:g} %"
        yield Check(table, f"{row} saves at least what the paper's Phoebe does", saved >= printed, told, D_DIFFERS)
    profiled = at[table, paper.PHOEBE, "with profiling"].ours
    told = f"{profiled:.0f} %, paper {paper.SAVING_PROFILED[name]:g} %"
    yield Check(table, "profiling is bought back within six hours", profiled > 0, told, PROFILE_COST)


def _ours(at: At, title: str, name: str) -> Iterator[Check]:
    table = f"{title}, prediction error of recovery"
    off = at[table, f"{paper.OURS}, by offsets", "median run"].ours
    nobody, best = (at[table, "All known but the downtime drawn", c].ours for c in ("single failures", "median run"))
    single = at[table, f"{paper.OURS}, by offsets", "single failures"].ours
    told = (
        f"{off:.1f} %, who knows all but the downtimes {best:.1f} %; failure by failure {single:.1f} and {nobody:.1f} %"
    )
    sentence = f"{paper.OURS}: predictions before a failure are within {PREDICTION:g} %, in the run in the middle"
    yield Check(table, sentence, off <= PREDICTION, told, "downtimes scatter by an eighth, and few seeds show it")
    table = f"{title}, targets of {paper.TARGET_S:g} s"
    share = at[table, paper.OURS, "missed"].ours
    told = f"{share:.1f} % of all failures that 24 workers would have been done with in time"
    sentence = f"{paper.OURS} misses at most the {100 * (1 - PROMISE):.0f} % that are not promised"
    yield Check(table, sentence, share <= 100 * (1 - PROMISE) + 1e-9, told, "failures that fall into a change")
    table = f"{title}, slot-seconds over the clairvoyant's"
    over = at[table, paper.OURS, "no more changes than the method"].ours
    free = at[table, paper.OURS, "changes at every moment"].ours
    told = f"{over:.3f}; {free:.2f} of one that may change at every moment"
    sentence = (
        f"{paper.OURS} uses at most {OVER_CLAIRVOYANT:g} times the clairvoyant's slot-seconds for as many changes"
    )
    yield Check(table, sentence, over <= OVER_CLAIRVOYANT, told, "it learns downtimes and does not know turning points")
    mine, theirs = (at[f"II {title}, changes", row, "changes"].ours for row in (paper.OURS, paper.PHOEBE))
    told = f"{mine:g}, {paper.PHOEBE} {theirs:g} (printed: {paper.CHANGES[name][paper.PHOEBE]:g})"
    cause = "on a steep wave Phoebe's uptime rule skips changes that keeping the promise needs"
    yield Check(f"II {title}, changes", f"{paper.OURS} changes less often than Phoebe", mine < theirs, told, cause)


def findings(cells: Sequence[Cell]) -> Iterator[Finding]:
    """Yield every cell that is more than 10 % off, with its cause."""
    for cell in cells:
        assert cell.suite == SUITE
        if cell.off(WITHIN):
            what = cell.table.split(", ", 1)[1]
            cause = "within what the seeds differ by" if cell.inside else CAUSES.get((what, cell.row), UNKNOWN)
            yield Finding(cell.table, cell.beside(), cause)
