"""Which batches a window covers: those of the present size, and a batch that outlasts the window."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rheostat.engine.batches.progress import Batch
from rheostat.engine.batches.selection import window_start_s

WINDOW_S = 30.0


def batches(*starts_s: float) -> list[Batch]:
    return [Batch("q", "run", k, start_s, 1.0, 0.9, 10, (), {}, 0, 0) for k, start_s in enumerate(starts_s)]


def covered(starts_s: tuple[float, ...], now_s: float, clean_s: float, **known: float | bool) -> list[float]:
    found = batches(*starts_s)
    since_s = window_start_s(found, now_s, WINDOW_S, clean_s, **known)  # type: ignore[arg-type]
    return [batch.start_s for batch in found if batch.start_s >= since_s]


@pytest.mark.parametrize(
    ("starts_s", "now_s", "clean_s", "known", "expected"),
    [
        pytest.param((60, 75, 90), 100, 0, {}, [75, 90], id="the window reaches back as far as it is long"),
        pytest.param((60, 75, 90), 100, 80, {}, [90], id="batches of another size are left out"),
        pytest.param((60, 75), 100, 80, {}, [], id="nothing is covered before a batch of this size has ended"),
        pytest.param((60, 75), 100, 80, {"overdue": True}, [75], id="the last batch stands in for an overdue one"),
        pytest.param((60,), 100, 0, {}, [60], id="a batch that outlasts the window is itself the signal"),
        pytest.param((60,), 100, 0, {"rested_s": 90}, [], id="a rest is not a long batch"),
        pytest.param((60,), 100, 0, {"rested_s": 65}, [60], id="a rest longer ago than the window is forgotten"),
        pytest.param((85,), 100, 0, {"rested_s": 90}, [85], id="what came before the rest is still covered"),
        pytest.param((), 100, 0, {"overdue": True}, [], id="no batch, no window"),
    ],
)
def test_the_batches_of_a_window(
    starts_s: tuple[float, ...], now_s: float, clean_s: float, known: dict[str, float], expected: list[float]
) -> None:
    assert covered(starts_s, now_s, clean_s, **known) == expected


@given(st.lists(st.floats(0, 100), unique=True).map(sorted), st.floats(0, 120), st.floats(-10, 120), st.booleans())
def test_the_last_batches_are_covered_and_no_clean_one_of_the_window_is_left_out(
    starts_s: list[float], clean_s: float, rested_s: float, overdue: bool
) -> None:
    found = covered(tuple(starts_s), 100.0, clean_s, rested_s=rested_s, overdue=overdue)
    assert found == starts_s[len(starts_s) - len(found) :]
    assert set(found) >= {start_s for start_s in starts_s if start_s >= max(clean_s, 70.0)}
    assert all(start_s >= clean_s for start_s in found) or len(found) == 1
