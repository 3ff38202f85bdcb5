"""Rates as decisions write them."""

import pytest

from rheostat.policy.explanation import rate


@pytest.mark.parametrize(
    ("per_s", "text"),
    [(57.0, "57/s"), (999.4, "999/s"), (999.6, "1k/s"), (999_600.0, "1M/s"), (1.2e6, "1.2M/s"), (0.0, "0/s")],
)
def test_a_rate_has_three_digits_and_no_exponent(per_s: float, text: str) -> None:
    assert rate(per_s) == text


def test_a_rate_that_is_not_known() -> None:
    assert rate(None) == "an unknown rate"
