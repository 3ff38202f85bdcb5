"""A window covers the batches of the present size, and a batch that outlasts the window."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rheostat.engine.batches.progress import Batch
from rheostat.engine.batches.selection import window_start_s

WINDOW_S = 30.0


def batches(*starts_s: float) -> list[Batch]:
    return [Batch("q", "run", k, start_s, 1.0, 0.9, 10, (), {}, 0, 0) for k, start_s in enumerate(starts_s)]


def covered(starts_s: tuple[float, ...], now_s: float, clean_s: float, **options: float | bool) -> list[float]:
    finished = batches(*starts_s)
    since_s = window_start_s(finished, now_s, WINDOW_S, clean_s, **options)  # type: ignore[arg-type]
    return [batch.start_s for batch in finished if batch.start_s >= since_s]


@pytest.mark.parametrize(
    ("starts_s", "now_s", "clean_s", "options", "expected"),
    [
        pytest.param((60, 75, 90), 100, 0, {}, [75, 90], id="the window reaches back by its length"),
        pytest.param((60, 75, 90), 100, 80, {}, [90], id="batches of another size are left out"),
        pytest.param((60, 75), 100, 80, {}, [], id="empty before a batch of this size finishes"),
        pytest.param((60, 75), 100, 80, {"overdue": True}, [75], id="the last batch stands in for an overdue one"),
        pytest.param((60,), 100, 0, {}, [60], id="a batch that outlasts the window is covered"),
        pytest.param((60,), 100, 0, {"last_idle_s": 90}, [], id="an idle query is not a long batch"),
        pytest.param((60,), 100, 0, {"last_idle_s": 65}, [60], id="idle time before the window does not count"),
        pytest.param((85,), 100, 0, {"last_idle_s": 90}, [85], id="batches before the idle time are covered"),
        pytest.param((), 100, 0, {"overdue": True}, [], id="no batch, no window"),
    ],
)
def test_the_batches_of_a_window(
    starts_s: tuple[float, ...], now_s: float, clean_s: float, options: dict[str, float], expected: list[float]
) -> None:
    assert covered(starts_s, now_s, clean_s, **options) == expected


@given(st.lists(st.floats(0, 100), unique=True).map(sorted), st.floats(0, 120), st.floats(-10, 120), st.booleans())
def test_the_last_batches_are_covered_and_no_clean_one_of_the_window_is_left_out(
    starts_s: list[float], clean_s: float, last_idle_s: float, overdue: bool
) -> None:
    selected = covered(tuple(starts_s), 100.0, clean_s, last_idle_s=last_idle_s, overdue=overdue)
    assert selected == starts_s[len(starts_s) - len(selected) :]
    assert set(selected) >= {start_s for start_s in starts_s if start_s >= max(clean_s, 70.0)}
    assert all(start_s >= clean_s for start_s in selected) or len(selected) == 1
