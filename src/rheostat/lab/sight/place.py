"""The folder of a run: where the job and the producer leave their accounts, and what these say."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rheostat.lab.sight.truth import Floats, Truth
from rheostat.lab.sight.work import read_done


@dataclass(frozen=True)
class Place:
    """A run's folder."""

    folder: Path

    @property
    def journal(self) -> Path:
        """The scaler's journal."""
        return self.folder / "journal.db"

    @property
    def log(self) -> Path:
        """Output of the job's process."""
        return self.folder / "job.log"

    @property
    def arrived(self) -> Path:
        """The producer's account: a moment, and the records that had arrived by then."""
        return self.folder / "arrived"

    @property
    def finished(self) -> Path:
        """The job's account of its batches: the moment of each end, and the batch's number."""
        return self.folder / "finished"

    @property
    def executors(self) -> Path:
        """Samples of the job's size: a moment, and the executors' processes at it."""
        return self.folder / "executors"

    @property
    def attached(self) -> Path:
        """Sign that the scaler is attached."""
        return self.folder / "attached"

    @property
    def drops(self) -> Path:
        """Folder of the files that the job reads."""
        return self.folder / "drops"

    @property
    def work(self) -> Path:
        """Folder of the workers' accounts."""
        return self.folder / "work"

    def truth(self) -> Truth:
        """Return what happened to the records."""
        arrived, finished, done = read_lines(self.arrived), read_lines(self.finished), read_done(self.work)
        total = int(arrived[-1, 1]) if len(arrived) else 0
        processed_s = np.full(max(total, int(done["number"].max(initial=-1)) + 1), np.inf)
        # A repeated task works on its records again: the first time counts.
        np.minimum.at(processed_s, done["number"], done["done_s"])
        return self.truth_by(processed_s, np.sort(finished[:, 0]))

    def truth_by(self, processed_s: Floats, finished_s: Floats) -> Truth:
        """Return what happened to the records, by the producer's account and these moments."""
        arrived = read_lines(self.arrived)
        return Truth(arrived[:, 0], arrived[:, 1], processed_s, finished_s)

    def repeated(self) -> int:
        """Return how many records were worked on again, because their task was repeated."""
        numbers = read_done(self.work)["number"]
        return len(numbers) - len(np.unique(numbers))


def note(file: Path, count: int) -> None:
    """Add a line: this moment, and a count."""
    with file.open("a") as lines:
        lines.write(f"{time.time():.4f} {count}\n")


def read_lines(file: Path) -> Floats:
    """Return the lines of a file as rows of moment and count; a line that is being written is left out."""
    text = file.read_text().rpartition("\n")[0] if file.exists() else ""
    return np.array([line.split() for line in text.splitlines()], dtype=float).reshape(-1, 2)
