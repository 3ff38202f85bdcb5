"""Load shapes have the levels of their parameters, and invalid parameters are refused."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rheostat.engine.testbed.loads import LOADS, Constant, Load, Permutation, Sine, Spikes, Square, Steps, Trace
from rheostat.errors import InvalidValue


def at(load: Load, *seconds: float) -> list[float]:
    return [float(v) for v in load.level(np.asarray(seconds, dtype=float))]


@pytest.mark.parametrize(
    ("load", "seconds", "levels"),
    [
        (Constant(2.5), (0, 1e6), [2.5, 2.5]),
        (Steps((1.0, 4.0), 10), (0, 9.9, 10, 99), [1, 1, 4, 4]),
        (Square(1.0, 5.0, 100), (0, 49, 50, 99, 100), [1, 1, 5, 5, 1]),
        (Sine(5.0, 4.0, 400), (0, 100, 300), [5, 9, 1]),
        (Sine(1.0, 4.0, 400), (300,), [0]),
        (Spikes(1.0, 9.0, 100, 10), (0, 89, 90, 99, 100), [1, 1, 9, 9, 1]),
    ],
)
def test_shapes(load: Load, seconds: tuple[float, ...], levels: list[float]) -> None:
    assert at(load, *seconds) == pytest.approx(levels)


def test_a_permutation_has_every_level_once_per_repetition() -> None:
    load = Permutation(seed=3, hold_s=10)
    levels = at(load, *range(0, 200, 10))
    assert sorted(levels[:10]) == list(range(1, 11))
    assert levels[:10] == levels[10:]
    assert levels != at(Permutation(seed=4, hold_s=10), *range(0, 200, 10))


def test_peak_includes_noise() -> None:
    assert Steps((1.0, 4.0, 2.0), 10, noise=0.5).peak(0, 15) == 6.0
    assert Steps((1.0, 4.0, 2.0), 10).peak(20, 20) == 2.0


def test_a_trace_is_interpolated_scaled_delayed_and_repeated(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("second,rate\n0,10\n10,20\n20,40\n")
    load = Trace(file=str(path), scale=2.0, delay_s=5.0)
    assert at(load, 0, 5, 10, 20, 25) == [20, 20, 30, 60, 80]
    assert at(Trace(file=str(path)), 30) == [10]
    assert Trace(file=str(path), speed=2.0).length_s == 10.0


def test_a_trace_can_be_scaled_to_its_highest_level(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("second,rate\n0,10\n10,20\n20,40\n")
    assert at(Trace(file=str(path), top=10.0), 0, 10, 20) == [2.5, 5, 10]
    with pytest.raises(InvalidValue, match=r"trace\.scale 2 .*trace\.top 10"):
        Trace(file=str(path), top=10.0, scale=2.0)


def test_a_trace_may_have_dates(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("date,messages\n2020-02-01 00:00:00,100\n2020-02-01 00:05:00,200\n")
    assert at(Trace(file=str(path)), 150) == [150]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("second,rate\n0,10\n", "at least two rows"),
        ("second,rate\n0,10\n0,11\n", "rising times"),
        ("second,rate\n0,10\n5,many\n", "line 3: could not convert"),
        ("second,rate\n0,10\n5,-1\n", "line 3: its rate"),
        ("second,rate\n0,10\n5,nan\n", "line 3: its rate"),
        ("second,rate\n0,10\nsoon,5\n", "line 3: Invalid isoformat"),
        ("second,rate\n0,10\n5\n", "line 3"),
        ("", "at least two rows"),
    ],
)
def test_the_error_of_an_invalid_trace_names_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(text)
    with pytest.raises(InvalidValue, match=message) as caught:
        Trace(file=str(path))
    assert "trace.csv" in str(caught.value)


@pytest.mark.parametrize("file", ["", "no/such/file.csv", "."])
def test_a_trace_needs_a_file(file: str) -> None:
    with pytest.raises(InvalidValue, match="trace"):
        Trace(file=file)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Constant(-1.0),
        lambda: Constant(1.0, noise=2.0),
        lambda: Steps(()),
        lambda: Steps((1.0, float("nan"))),
        lambda: Square(period_s=0),
        lambda: Sine(mean=float("inf")),
        lambda: Spikes(every_s=10, length_s=20),
        lambda: Permutation(top=0),
    ],
)
def test_invalid_loads_are_refused(make: Callable[[], Load]) -> None:
    with pytest.raises(InvalidValue):
        make()


def test_every_shape_has_a_name_and_defaults() -> None:
    for name, shape in LOADS.items():
        assert shape.name == name
        if shape is not Trace:
            assert shape().level(np.arange(3.0)).shape == (3,)
