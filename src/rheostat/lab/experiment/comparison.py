"""Several policies on the same job and load, on one ground."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol

from rheostat.lab.experiment.run import Run, Series
from rheostat.lab.experiment.score import Column, Score
from rheostat.lab.experiment.trial import J, Progress, Trial

ORACLE = "oracle"
"""Name of the policy that plays the oracle's schedule."""


class Ground(Protocol[J]):
    """Where trials run, the columns of their rows, and the text of their page."""

    @property
    def name(self) -> str:
        """The engine's name in `--engine` and in a row."""

    @property
    def lead(self) -> str:
        """The sentence at the top of the page."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of a row in a JSON file."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of tables."""

    def run(self, trials: Sequence[Trial[J]], progress: Progress) -> tuple[Run[J], ...]:
        """Run these trials, and the predictions beside them."""

    def score(self, ways: Sequence[str], runs: Sequence[Run[J]]) -> tuple[Score, ...]:
        """Return a row per way, and one per prediction."""

    def subject(self, trial: Trial[J]) -> str:
        """Return job and ground, for a title."""

    def facts(self, trial: Trial[J]) -> Mapping[str, str]:
        """Return the facts about the job for a page."""

    def notes(self, comparison: Comparison[J]) -> Sequence[str]:
        """Return the notes below the table of a page."""

    def series(self, run: Run[J]) -> Sequence[Series]:
        """Return the panels of a page: the load first, then the one with the legend."""


@dataclass(frozen=True)
class Comparison(Generic[J]):
    """All runs, and a row per policy."""

    ground: Ground[J]
    trial: Trial[J]
    """The trial that all runs share, but for way and seed."""
    runs: tuple[Run[J], ...]
    rows: tuple[Score, ...]

    @property
    def title(self) -> str:
        """Job, ground and policies."""
        return f"{self.ground.subject(self.trial)}: {', '.join(dict.fromkeys(row.policy for row in self.rows))}"

    @property
    def yardstick(self) -> str | None:
        """The label under which the oracle's schedule ran; None where it did not."""
        return next((run.policy for run in self.measured_runs if run.policy == ORACLE), None)

    @property
    def judged(self) -> bool:
        """Whether the least cost of every run is known."""
        return all(run.bound is not None for run in self.measured_runs)

    @property
    def failures(self) -> dict[str, str]:
        """The policies whose row failed, each with its first failure; a prediction's failure counts, too."""
        return {row.policy: row.failed for row in self.rows if row.failed}

    @property
    def rivals(self) -> list[Score]:
        """The rows that compete for the best of a column: neither predictions nor failed rows do."""
        return [row for row in self.rows if row.engine == self.ground.name and not row.failed]

    @property
    def lines(self) -> list[Score]:
        """The rows in the order of a table: each policy's measured row, then its prediction."""
        ways = [row.policy for row in self.rows]
        return sorted(self.rows, key=lambda row: (ways.index(row.policy), row.engine != self.ground.name))

    @property
    def measured_runs(self) -> list[Run[J]]:
        """The runs on this ground itself, without predictions."""
        return [run for run in self.runs if run.engine == self.ground.name]

    def run(self, policy: str, seed: int = 0) -> Run[J]:
        """Return one run."""
        return next(run for run in self.measured_runs if (run.policy, run.seed) == (policy, seed))

    def as_dicts(self) -> list[dict[str, Any]]:
        """Return the rows for a JSON file."""
        return [row.as_dict(self.ground.keys) for row in self.rows]


def compare(
    ground: Ground[J],
    trial: Trial[J],
    ways: Sequence[str],
    seeds: Sequence[int] = (0,),
    progress: Progress = lambda _: None,
) -> Comparison[J]:
    """Run the trial once per way and seed."""
    runs = ground.run([replace(trial, way=way, seed=seed) for way in ways for seed in seeds], progress)
    return Comparison(ground, trial, runs, ground.score(ways, runs))
