"""Kills over repartitions and over roll-backs, and the drivers that continue on what they leave.

    prepare -> kill over the move -> copy what was left -> kill over the roll-back -> continue -> continue in a new JVM

Every kill hits a driver of its own with a cold JVM. A roll-back begins on a copy of what a killed driver has left. All
places are checked twice, in one new application each: the state is loaded from the checkpoint, the query restarts, and
the second time the state is repartitioned again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from rheostat.errors import EngineError
from rheostat.lab.experiment.processes import Child, in_own_process
from rheostat.lab.experiment.trial import Progress
from rheostat.lab.kills.driver import check, move, prepare, undo
from rheostat.lab.kills.evidence import Left, Stage, Undo
from rheostat.lab.kills.job import Format, Place
from rheostat.lab.kills.moment import Moment, draw_moments
from rheostat.lab.kills.watch import kill_mover, kill_undoer, measure_move

FORMATS = tuple(
    Format(version, changelog, exactly_once)
    for exactly_once in (True, False)
    for version in (1, 2)
    for changelog in (True, False)
)
"""Four formats of state, with and without an unfinished batch."""
QUICK_FORMATS = FORMATS[0], FORMATS[-1]
MOST_TRIES = 2
"""Most kills per kill that must fall inside a repartition or a roll-back."""


@dataclass(frozen=True)
class Kill:
    """One kill, and what it has left."""

    place: Place
    left: Left
    stage: str
    over_move: bool
    hit: bool
    """Whether it fell inside the repartition or the roll-back."""


@dataclass(frozen=True)
class Kills:
    """The result of all kills."""

    move: int
    """Kills inside a repartition."""
    undo: int
    """Kills inside a roll-back."""
    undone: int
    """Checkpoints in which the next driver had to undo a repartition."""
    keys_wrong: int
    stages: Counter[str]
    problems: tuple[str, ...]
    """Queries that did not run, and notes that were not deleted."""


def run_kills(kills: int, formats: Sequence[Format], progress: Progress, seed: int = 0) -> Kills:
    """Kill as many drivers over the move, and as many over the roll-back, and compare every key's count."""
    rng = np.random.default_rng(seed)
    with TemporaryDirectory(prefix="rheostat-kills-", ignore_cleanup_errors=True) as name:
        run = _Run(Path(name), formats, rng, progress)
        run.prepare()
        moved = run.kill_movers(draw_moments(kills, len(formats), rng))
        undone = run.kill_undoers(moved, kills)
        return run.check([*moved, *undone])


class _Run:
    def __init__(self, folder: Path, formats: Sequence[Format], rng: np.random.Generator, progress: Progress) -> None:
        self._folder, self._rng, self._progress = folder, rng, progress
        self._templates = [Place(folder / f"template_{number}", written) for number, written in enumerate(formats)]
        self._drivers, self._usual = 0, dict[bool, float]()

    def prepare(self) -> None:
        """Create a query of every format."""
        self._progress(f"{len(self._templates)} formats of state: create the queries")
        in_own_process(prepare, self._templates, self._scratch())

    def kill_movers(self, moments: Sequence[Moment]) -> list[Kill]:
        """Kill a driver over its repartition at each of these moments, and at others in place of misses."""
        wanted, queue, killed = len(moments), list(moments), list[Kill]()
        while queue:
            number, moment = len(killed), queue.pop(0)
            template = self._templates[number % len(self._templates)]
            usual_s = self._usual_s(template) if moment.stage is None else 0.0
            place = template.copy_to(self._folder / f"move_{number}")
            with Child(move, place, self._scratch()) as driver:
                left = kill_mover(place, driver, moment, usual_s)
            kill = Kill(place, left, f"move: {left.stage}", True, left.stage is not Stage.OVER)
            killed.append(kill)
            self._report(killed, wanted, str(moment))
            if not kill.hit and len(killed) < MOST_TRIES * wanted:
                queue.append(Moment(share=float(self._rng.random())))
        return killed

    def kill_undoers(self, moved: Sequence[Kill], kills: int) -> list[Kill]:
        """Kill a driver while it undoes what a killed driver has left, at a share of the deletions."""
        sources = [kill for kill in moved if kill.left.needs_undo and kill.left.added]
        if not sources:
            raise EngineError("no kill over a repartition has left anything to undo: nothing to test")
        queue = self._rng.permutation((np.arange(kills) + self._rng.random(kills)) / kills).tolist()
        killed: list[Kill] = []
        while queue:
            source = sources[len(killed) % len(sources)]
            place, added = source.place.copy_to(self._folder / f"undo_{len(killed)}"), len(source.left.added)
            with Child(undo, place, self._scratch()) as driver:
                left = kill_undoer(place, driver, source.left, queue.pop(0))
            stage = left.undo_since(source.left)
            kill = Kill(place, left, f"roll-back: {stage}", False, stage not in (Undo.BEGUN, Undo.OVER))
            killed.append(kill)
            self._report(killed, kills, f"{added - len(left.added)} of {added} files deleted")
            if not kill.hit and len(killed) < MOST_TRIES * kills:
                queue.append(float(self._rng.random()))
        return killed

    def check(self, killed: Sequence[Kill]) -> Kills:
        """Continue in all places, twice; return the result."""
        places, wrong, problems = [kill.place for kill in killed], [0] * len(killed), []
        for again in (False, True):
            self._progress(f"{len(places)} checkpoints: continue in a new application{', and move' if again else ''}")
            found = in_own_process(check, places, self._scratch(), again)
            wrong = [max(before, each.keys_wrong) for before, each in zip(wrong, found, strict=True)]
            for kill, each in zip(killed, found, strict=True):
                if each.keys_wrong or each.problem:
                    text = f"{kill.place.format}, {kill.stage}: {each.keys_wrong} keys wrong {each.problem}"
                    problems.append(text)
                    self._progress(text)
        return Kills(
            move=sum(kill.hit for kill in killed if kill.over_move),
            undo=sum(kill.hit for kill in killed if not kill.over_move),
            undone=sum(kill.left.needs_undo for kill in killed),
            keys_wrong=sum(wrong),
            stages=Counter(kill.stage for kill in killed),
            problems=tuple(problems),
        )

    def _usual_s(self, template: Place) -> float:
        """Return the usual seconds of a repartition, measured once with and once without an unfinished batch."""
        shape = template.format.exactly_once
        if shape not in self._usual:
            place = template.copy_to(self._folder / f"usual_{len(self._usual)}")
            with Child(move, place, self._scratch()) as driver:
                self._usual[shape] = measure_move(place, driver)
            self._progress(f"{place.format}: an undisturbed repartition takes {self._usual[shape]:.1f} s")
        return self._usual[shape]

    def _scratch(self) -> Path:
        self._drivers += 1
        return self._folder / f"driver_{self._drivers}"

    def _report(self, killed: Sequence[Kill], wanted: int, moment: str) -> None:
        kill, hits = killed[-1], sum(each.hit for each in killed)
        self._progress(f"{hits} of {wanted} kills; {kill.place.format}, {moment}; {kill.stage}")
