"""Verification of a plan: the planned size at 100, 120 and 150 % of the requested rate (the paper's Figure 11).

A rate is sustained if all of it is processed and the backlog is small or falling: a cold start leaves a backlog, and a
job that works it off processes more than arrives. The plan should sustain 100 %; if it sustains 150 %, it is too large.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rheostat.job.decision import Trial
from rheostat.job.plan import Plan
from rheostat.planner.rig import Feed
from rheostat.ports import Testbed

SHARES = (1.0, 1.2, 1.5)
"""Shares of the requested rate, as in Figure 11."""
TOO_BIG = 1.5
"""Share of the rate at which a plan that sustains it is too big, as in the paper."""
SUSTAINED, NOT_SUSTAINED = "sustained", "not sustained"
PROCESSED = 0.99
"""Least share of the rate that is processed if it is sustained."""
BACKLOG_S = 10.0
"""Largest normal backlog at the end, in seconds of the rate."""
FALLS = 1.03
"""Processed over sent records from which on a larger backlog counts as falling."""


@dataclass(frozen=True, slots=True)
class RateCheck:
    """The result at one rate."""

    share: float
    rate_per_s: float
    processed_per_s: float | None
    backlog: float | None
    verdict: str


def verify_plan(
    testbed: Testbed,
    plan: Plan,
    feed: Feed,
    shares: Sequence[float] = SHARES,
    *,
    warm_up_s: float = 120.0,
    observe_s: float = 600.0,
) -> tuple[Plan, list[RateCheck]]:
    """Run the planned size at shares of the rate; return the plan with the verdicts, and the details."""
    checks = []
    for share in shares:
        rate = plan.rate_per_s * share
        phases = (feed.phase(warm_up_s, rate), feed.phase(observe_s, rate, True))
        measured = testbed.measure(Trial(f"verify at {share:.0%}", plan.allocation, phases))
        window = measured.observation
        if measured.problem is not None or window is None:
            checks.append(RateCheck(share, rate, None, None, f"not run: {measured.problem or 'nothing was observed'}"))
            continue
        processed, backlog = window.throughput_per_s, window.backlog
        small = (backlog or 0.0) <= BACKLOG_S * rate
        sustained = processed is not None and processed >= (PROCESSED if small else FALLS) * rate
        checks.append(RateCheck(share, rate, processed, backlog, SUSTAINED if sustained else NOT_SUSTAINED))
    verdicts = {f"{check.share:.0%}": check.verdict for check in checks}
    return replace(plan, verified=verdicts, warnings=(*plan.warnings, *_warnings(plan, checks))), checks


def _warnings(plan: Plan, checks: Sequence[RateCheck]) -> list[str]:
    """Return what the verdicts say about the size."""
    warnings = [
        f"{plan.allocation.slots} slots do not sustain {c.rate_per_s:,.0f}/s: the plan is too small"
        for c in checks
        if c.share <= 1.0 and c.verdict == NOT_SUSTAINED
    ]
    most = max((c.share for c in checks if c.verdict == SUSTAINED), default=0.0)
    if most >= TOO_BIG:
        warnings.append(f"{plan.allocation.slots} slots sustain {most:.0%} of the rate: the plan is too big")
    return warnings
