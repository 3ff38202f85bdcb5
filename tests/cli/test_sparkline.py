from __future__ import annotations

import math

import pytest

from rheostat.cli.display.sparkline import sparkline


@pytest.mark.parametrize(
    ("values", "drawn"),
    [
        ([], ""),
        ([0.0, 0.0], "▁▁"),
        ([0.0, 1.0, 2.0, 4.0], "▁▃▅█"),
        ([math.inf, math.nan, 1.0], "▁▁█"),
        ([-1.0, 1.0], "▁█"),
    ],
)
def test_a_series_is_drawn_from_zero_to_its_peak(values: list[float], drawn: str) -> None:
    assert sparkline(values) == drawn


def test_a_short_peak_in_a_long_series_is_still_seen() -> None:
    values = [1.0] * 1000
    values[777] = 8.0
    drawn = sparkline(values, width=10)
    assert len(drawn) == 10
    assert drawn.count("█") == 1
