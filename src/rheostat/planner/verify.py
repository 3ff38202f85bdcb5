"""Whether a plan holds: the planned size at 100, 120 and 150 % of the requested rate (the paper's Figure 11).

A rate is sustained when all of it is processed and the backlog is small or falls: a cold start leaves one, and who
works it off takes more than comes. At 100 % it should be sustained; at 150 % it should
not, or the plan is too big.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rheostat.job.decision import Trial
from rheostat.job.plan import Plan
from rheostat.planner.rig import Feed
from rheostat.ports import Testbed

SHARES = (1.0, 1.2, 1.5)
SUSTAINED, NOT = "sustained", "not sustained"
PROCESSED = 0.99
BACKLOG_S = 10.0
"""Seconds of the rate that may wait at the end: a small buffer is normal."""
FALLS = 1.03
"""Processed over sent, from which on a larger backlog is taken to fall."""


@dataclass(frozen=True, slots=True)
class Verified:
    """What came of one rate."""

    share: float
    rate_per_s: float
    processed_per_s: float | None
    backlog: float | None
    verdict: str


def verify(
    testbed: Testbed,
    plan: Plan,
    feed: Feed,
    shares: Sequence[float] = SHARES,
    *,
    warm_up_s: float = 120.0,
    observe_s: float = 600.0,
) -> tuple[Plan, list[Verified]]:
    """Run the planned size at shares of the rate; return the plan with the verdicts in it."""
    found = []
    for share in shares:
        rate = plan.rate_per_s * share
        phases = (feed.phase(warm_up_s, rate), feed.phase(observe_s, rate, True))
        measured = testbed.measure(Trial(f"verify at {share:.0%}", plan.allocation, phases))
        window = measured.observation
        if measured.problem is not None or window is None:
            found.append(Verified(share, rate, None, None, f"not run: {measured.problem or 'nothing was seen'}"))
            continue
        taken, backlog = window.throughput_per_s, window.backlog
        small = (backlog or 0.0) <= BACKLOG_S * rate
        held = taken is not None and taken >= (PROCESSED if small else FALLS) * rate
        found.append(Verified(share, rate, taken, backlog, SUSTAINED if held else NOT))
    return replace(plan, verified={f"{one.share:.0%}": one.verdict for one in found}), found
