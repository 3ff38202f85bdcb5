"""The trend of resident memory."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from rheostat.lab.soak.memory import HEAPS, Heap, Sample, longest_life, memory_trend, read_heaps, resident_mb


def test_a_line_has_its_slope_and_the_means_of_its_quarters() -> None:
    at_s = [5000.0 + 10.0 * nth for nth in range(361)]  # an hour
    trend = memory_trend(at_s, [200.0 + 60.0 * (moment - at_s[0]) / 3600 for moment in at_s])
    assert trend is not None
    assert trend.mb_per_hour == pytest.approx(60.0)
    assert (trend.first_mb, trend.last_mb) == pytest.approx((207.5, 252.5))
    assert trend.minutes == pytest.approx(60.0)


def test_the_slope_is_that_of_least_squares() -> None:
    rng = np.random.default_rng(4)
    at_s, sizes = np.sort(rng.uniform(0, 7200, 50)), rng.uniform(100, 900, 50)
    trend = memory_trend(at_s.tolist(), sizes.tolist())
    assert trend is not None
    assert trend.mb_per_hour == pytest.approx(np.polyfit(at_s / 3600, sizes, 1)[0])


def test_one_moment_has_no_trend() -> None:
    assert memory_trend([], []) is None
    assert memory_trend([3.0], [100.0]) is None
    assert memory_trend([3.0, 3.0], [100.0, 200.0]) is None


def test_the_longest_life_counts_by_time_not_by_samples() -> None:
    short = [Sample(float(nth), 1.0, 1.0) for nth in range(9)]
    long = [Sample(10.0, 1.0, 1.0), Sample(30.0, 1.0, 1.0)]
    assert longest_life([[], short, long]) == long
    assert longest_life([[]]) == []
    assert longest_life([]) == ()


def test_memory_is_read_of_running_processes_only() -> None:
    own = resident_mb(os.getpid())
    assert own is not None
    assert 5 < own < 5000
    gone = subprocess.Popen(["true"])
    gone.wait()
    assert resident_mb(gone.pid) is None


def test_notes_about_heaps_are_read_by_driver_without_a_half_line(tmp_path: Path) -> None:
    line = json.dumps(asdict(Heap(1.0, 100.0, 300.0, 200.0)))
    (tmp_path / f"{HEAPS}17").write_text(f"{line}\n{line}\n{line[:9]}")
    (tmp_path / f"{HEAPS}18").write_text(f"{line}\n")
    assert [len(heaps) for heaps in read_heaps(tmp_path)] == [2, 1]
    assert str(read_heaps(tmp_path)[1][0]) == "heap 300 MB, classes and code 200 MB"
