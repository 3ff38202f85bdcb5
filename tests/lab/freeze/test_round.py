"""Suspended drivers on one checkpoint, on real Spark: one round of either part of `rheostat bench freeze`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from every import EVERY

from rheostat.lab.freeze.round import freeze_driver, freeze_python

LONGEST_S = 180.0
"""Seconds of a freeze at most: it ends when the second driver has begun, however long that takes on a busy machine."""


@pytest.mark.cluster
@pytest.mark.skipif(not EVERY, reason="takes minutes: RHEOSTAT_EVERY_K=1, or rheostat bench freeze --quick")
def test_no_second_query_beside_a_frozen_python_and_no_commit_of_a_woken_driver() -> None:
    with ThreadPoolExecutor(2) as both:  # side by side: a round mostly waits
        alone = both.submit(freeze_python, "microbatch", 25.0, killed=True)
        whole = both.submit(freeze_driver, "realtime", LONGEST_S, same_journal=False, wake_s=2.0, after_s=8.0)
        python, driver = alone.result(), whole.result()
    assert not python.started_beside, python.text
    assert python.take_over_s is not None, python.text
    assert (python.committed_twice, python.keys_wrong) == (0, 0), python.text
    assert driver.take_over_s is not None, driver.text
    assert (driver.woken_commits, driver.committed_twice, driver.keys_wrong) == (0, 0, 0), driver.text
