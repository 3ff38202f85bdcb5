"""Named grounds: a job, a load and objectives on which every policy is compared, `rheostat compare --ground NAME`.

A ground is what a configuration file could say, so that a run on it can be recreated from its journal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rheostat.errors import InvalidValue, nearest
from rheostat.lab.data import data_folder, missing_data
from rheostat.lab.jobs.hard import LENGTH_S

SEEDS, QUICK_SEEDS = 20, 3
"""Seeds of a ground, full and quick."""
DAY_S = 86_400.0
PUBLISHED = (
    "static", "hpa", "dhalion", "ds2", "big-ds2", "conttune", "dragster", "autrascale", "drs", "phoebe", "twres",
)  # fmt: skip
"""A size for the peak, and the published policies."""
OURS = ("anticipate", "conttune:model=loglog", "autrascale:model=decomposed")
"""Policies with models of ours."""
POLICIES = ",".join((*PUBLISHED, *OURS, "oracle"))
"""Policies that are compared on a ground unless --policy names others."""
WAVE = "sine:mean=5:amplitude=3:period_s=7200:noise=0.05"
"""Load of the hard cases: two waves between level 2 and 8."""


@dataclass(frozen=True)
class Ground:
    """A named ground."""

    name: str
    sentence: str
    values: Mapping[str, Any] = field(default_factory=dict)
    """Keys of a configuration file."""
    seeds: int = SEEDS
    quick_seeds: int = QUICK_SEEDS
    trace: str = ""
    """Recorded trace that it needs; "" if none."""

    @property
    def missing(self) -> str:
        """The reason why it cannot run here, or ""."""
        if not self.trace:
            return ""
        if missing := missing_data():
            return missing
        file = data_folder() / "traces" / f"{self.trace}.csv"
        return "" if file.is_file() else f"there is no trace {self.trace!r} in the folder of measured data"


def _hard(name: str, sentence: str, **rest: Any) -> Ground:
    return Ground(name, sentence, {"job": name, "load": WAVE, "duration_s": LENGTH_S, **rest})


def _trace(name: str, job: str, trace: str, days: float = 2.0) -> Ground:
    values = {"job": job, "load": f"trace:file={trace}:top=10:noise=0.02", "duration_s": days * DAY_S}
    sentence = f"{days:g} days of the recorded trace {trace} on {job}; level 10 is its highest rate"
    return Ground(name, sentence, values, seeds=4, quick_seeds=1, trace=trace)


_ALL: Sequence[Ground] = (
    _hard("drift-down", "the capacity of count falls by 15 % after two hours"),
    _hard("drift-up", "the capacity of count rises by 20 % after two hours"),
    _hard("drift-ramp", "the capacity of count falls by 25 % within an hour"),
    _hard("rough", "capacities scatter by 8 % from size to size"),
    _hard("alternating", "the selectivity of parse alternates between 1.2 and 2.8 every 20 minutes"),
    _hard("skewed", "the hottest task of count gets 60 % more than its share"),
    _hard(
        "steep-latency",
        "queueing grows with the square of rho / (1 - rho), with an objective of 1 s",
        slo={"max_latency_s": 1.0},
    ),
    _hard("growing-state", "the downtime of a change grows with the state, to about a minute"),
    _hard("diamond", "lines go two ways and meet again"),
    _hard("two-sources", "a join of two sources, one of which is cleaned first"),
    _trace("alibaba", "q3", "alibaba_5min"),
    _trace("wiki", "q1", "wiki_en_5min"),
    _trace("taxi", "wordcount", "taxi_5min"),
    _trace("iot", "q5", "iot_5min"),
)
GROUNDS: Mapping[str, Ground] = {ground.name: ground for ground in _ALL}


def find_grounds(names: str) -> list[Ground]:
    """Return the grounds of a list with commas; `all` are all."""
    if names == "all":
        return list(GROUNDS.values())
    found = []
    for name in names.split(","):
        if name not in GROUNDS:
            raise InvalidValue(f"unknown ground {name!r}, {nearest(name, GROUNDS)}")
        found.append(GROUNDS[name])
    return found
