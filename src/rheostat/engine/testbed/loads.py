"""Load shapes: the input rate over time, as a multiple of the job's unit rate.

A shape is a frozen dataclass whose fields are its parameters. `level` is exact and repeatable; the source or the
simulator adds the noise, from a seeded generator.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rheostat.errors import InvalidValue
from rheostat.job.frozen import check_number

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Load:
    """The base of all shapes. `noise` 0.1 means +-10 %, drawn evenly every second."""

    name: ClassVar[str] = ""
    noise: float = field(default=0.0, kw_only=True)
    """Share by which the rate scatters evenly around the shape, drawn every second."""

    def __post_init__(self) -> None:
        check_number(f"{self.name}.noise", self.noise, most=1.0)

    def level(self, t_s: Floats) -> Floats:
        """Return the level at these seconds, before noise."""
        raise NotImplementedError

    def peak(self, start_s: float, end_s: float) -> float:
        """Return the highest level between two moments, noise included."""
        return float(self.level(np.arange(start_s, max(end_s, start_s + 1.0))).max()) * (1.0 + self.noise)


@dataclass(frozen=True)
class Constant(Load):
    """A constant level."""

    name: ClassVar[str] = "constant"
    value: float = 1.0
    """The level."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("constant.value", self.value)

    def level(self, t_s: Floats) -> Floats:
        """Return the value."""
        return np.full(len(t_s), float(self.value))


@dataclass(frozen=True)
class Steps(Load):
    """One level after another, each held for `hold_s`; the last one stays."""

    name: ClassVar[str] = "steps"
    levels: tuple[float, ...] = (1.0, 5.0, 10.0, 3.0)
    """The levels, in order."""
    hold_s: float = 600.0
    """Seconds per level."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.levels:
            raise InvalidValue(f"{self.name}.levels must not be empty")
        for value in self.levels:
            check_number(f"{self.name}.levels", value)
        check_number(f"{self.name}.hold_s", self.hold_s, least=1.0)

    def level(self, t_s: Floats) -> Floats:
        """Return the level of each second's step."""
        index = np.clip((t_s // self.hold_s).astype(int), 0, len(self.levels) - 1)
        levels: Floats = np.asarray(self.levels, dtype=float)[index]
        return levels


@dataclass(frozen=True)
class Permutation(Load):
    """ContTune's load (section 7.1): the levels 1 to `top` in random order, `repeats` times, `hold_s` each."""

    name: ClassVar[str] = "permutation"
    seed: int = 0
    """Seed of the order."""
    top: int = 10
    """The highest level."""
    repeats: int = 2
    """Number of times the permutation runs."""
    hold_s: float = 600.0
    """Seconds per level."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("permutation.top", self.top, least=1)
        check_number("permutation.repeats", self.repeats, least=1)
        check_number("permutation.hold_s", self.hold_s, least=1.0)

    @cached_property
    def steps(self) -> Steps:
        """The permutation as steps."""
        order = np.random.default_rng([self.seed, 10]).permutation(self.top) + 1
        return Steps(tuple(float(v) for v in np.tile(order, self.repeats)), self.hold_s)

    def level(self, t_s: Floats) -> Floats:
        """Return the level of each second's step."""
        return self.steps.level(t_s)


@dataclass(frozen=True)
class Square(Load):
    """Alternates between low and high, half a period each; Dragster's Table 2 switches every 200 minutes."""

    name: ClassVar[str] = "square"
    low: float = 2.0
    """Level of the first half of a period."""
    high: float = 8.0
    """Level of the second half."""
    period_s: float = 3600.0
    """Seconds per period, low and high together."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("square.low", self.low)
        check_number("square.high", self.high)
        check_number("square.period_s", self.period_s, least=2.0)

    def level(self, t_s: Floats) -> Floats:
        """Return low in the first half of each period, high in the second."""
        return np.where(t_s % self.period_s < self.period_s / 2, float(self.low), float(self.high))


@dataclass(frozen=True)
class Sine(Load):
    """A sine wave; Phoebe's YSB load is mean 100000, amplitude 100000, period 7200 s, noise 0.1 (in records/s)."""

    name: ClassVar[str] = "sine"
    mean: float = 5.0
    """Mean level of the wave."""
    amplitude: float = 4.0
    """Amplitude of the wave; levels below zero are cut to zero."""
    period_s: float = 7200.0
    """Seconds per wave."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("sine.mean", self.mean)
        check_number("sine.amplitude", self.amplitude)
        check_number("sine.period_s", self.period_s, least=2.0)

    def level(self, t_s: Floats) -> Floats:
        """Return mean + amplitude * sin, at least zero."""
        return np.maximum(self.mean + self.amplitude * np.sin(2 * np.pi * t_s / self.period_s), 0.0)


@dataclass(frozen=True)
class Spikes(Load):
    """A base level with a short burst at the end of every `every_s`."""

    name: ClassVar[str] = "spikes"
    base: float = 3.0
    """Level between two bursts."""
    peak_level: float = 9.0
    """Level of a burst."""
    every_s: float = 1800.0
    """Seconds from burst to burst."""
    length_s: float = 120.0
    """Seconds per burst."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("spikes.base", self.base)
        check_number("spikes.peak_level", self.peak_level)
        check_number("spikes.every_s", self.every_s, least=1.0)
        check_number("spikes.length_s", self.length_s, most=self.every_s)

    def level(self, t_s: Floats) -> Floats:
        """Return the burst in the last `length_s` of every period."""
        between = t_s % self.every_s < self.every_s - self.length_s
        return np.where(between, float(self.base), float(self.peak_level))


@dataclass(frozen=True)
class Trace(Load):
    """A recorded load: a CSV file with a header, time in the first column, the rate in the second.

    Time is in seconds or a date. The rate is interpolated between two rows; after the last row the trace repeats.
    """

    name: ClassVar[str] = "trace"
    file: str = ""
    """Path of the CSV file."""
    scale: float = 1.0
    """Factor on every rate."""
    top: float | None = None
    """The highest level: every rate is scaled to it. Not together with `scale`."""
    speed: float = 1.0
    """Seconds of the trace per second of the run: 60 runs an hour in a minute."""
    delay_s: float = 0.0
    """Seconds before the trace starts; until then its first rate holds."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("trace.scale", self.scale)
        check_number("trace.top", self.top, least=1e-12)
        if self.top is not None and self.scale != 1.0:
            raise InvalidValue(
                f"trace.scale {self.scale:g} and trace.top {self.top:g} contradict each other: remove one"
            )
        check_number("trace.speed", self.speed, least=1e-9)
        check_number("trace.delay_s", self.delay_s)
        _ = self.rows

    @cached_property
    def rows(self) -> tuple[Floats, Floats]:
        """The seconds and the rates of the file."""
        if not self.file:
            raise InvalidValue("trace.file is not set: name a CSV file with time and rate in its first two columns")
        seconds: list[float] = []
        rates: list[float] = []
        number = 0
        try:
            with Path(self.file).open(newline="", encoding="utf-8") as lines:
                for number, row in enumerate(csv.reader(lines), start=1):
                    if number > 1:
                        seconds.append(_seconds(row[0]))
                        rates.append(float(row[1]))
                        check_number("its rate", rates[-1])
        except OSError as error:
            raise InvalidValue(f"cannot read trace {self.file!r}: {error.strerror}") from error
        except (ValueError, IndexError, csv.Error) as error:
            raise InvalidValue(f"trace {self.file!r}, line {number}: {error}") from error
        at = np.asarray(seconds)
        if len(at) < 2 or not np.all(np.diff(at) > 0):
            raise InvalidValue(f"trace {self.file!r} needs at least two rows, with rising times")
        return at - at[0], np.asarray(rates)

    @property
    def _factor(self) -> float:
        highest = float(self.rows[1].max())
        return self.scale if self.top is None or not highest else self.top / highest

    @property
    def length_s(self) -> float:
        """Seconds of the run before the trace repeats."""
        return float(self.rows[0][-1]) / self.speed

    def level(self, t_s: Floats) -> Floats:
        """Return the interpolated, scaled rate."""
        at, rates = self.rows
        moment = np.maximum(t_s - self.delay_s, 0.0) * self.speed
        levels: Floats = np.interp(moment % (at[-1] + (at[1] - at[0])), at, rates) * self._factor
        return levels


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return datetime.fromisoformat(text).timestamp()


LOADS: Mapping[str, type[Load]] = {
    shape.name: shape for shape in (Constant, Steps, Permutation, Square, Sine, Spikes, Trace)
}
