"""What `autoscale` and `start` have in common: the policy, the journal, the controller and the Scaler."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from rheostat.api.checks import ATTACHED
from rheostat.api.options import Options
from rheostat.api.scaler import Scaler
from rheostat.clock import WallClock
from rheostat.control.controller import Controller, Pace
from rheostat.job.slo import SLO, with_default_headroom
from rheostat.journal import open_journal
from rheostat.policy.registry import resolve_policy
from rheostat.ports import Journal, Policy, RunningJob

MOST_LEASE_S = 60.0
"""Longest lease, in seconds: a restarted driver is locked out for as long."""

Begin = Callable[[Controller[Any]], None]
"""Starts the query under a controller."""
Opening = Callable[[WallClock], tuple[RunningJob, Begin | None]]
"""Makes the engine of a job that was checked; the second part is None where its queries run already."""


@dataclass(frozen=True)
class Request:
    """How a job is to be scaled, whichever way it came in."""

    slo: SLO
    policy: Policy[Any]
    journal: str | Journal = field(repr=False)
    dry_run: bool
    options: Options
    needs: tuple[str, ...] = ()
    """What resizing would need of the application, in a dry run."""

    @staticmethod
    def of(
        slo: SLO | None,
        policy: str | Mapping[str, Any] | Policy[Any],
        journal: str | Journal,
        dry_run: bool,
        options: Options | None,
    ) -> Request:
        """Resolve names and defaults; what is impossible is refused before anything is touched."""
        resolved = resolve_policy(policy)
        slo = with_default_headroom(slo or SLO(), resolved.factor()[1])
        return Request(slo, resolved, journal, dry_run, options or Options())


def launch(request: Request, mode: str, opening: Opening) -> Scaler:
    """Open the engine and the journal, and start the control loop; whatever fails leaves nothing behind."""
    options, journal = request.options, request.journal
    book = open_journal(journal) if isinstance(journal, str) else journal
    clock = WallClock()
    undo = ExitStack()
    with undo:
        if book is not journal:
            undo.callback(book.close)
        job, begin = opening(clock)
        undo.callback(job.close)
        controller = Controller(
            job,
            request.policy,
            book,
            clock,
            slo=request.slo,
            guards=replace(options.guards, dry_run=True) if request.dry_run else options.guards,
            testbed=options.testbed,
            seed=options.seed,
            # A controller that misses three turns is taken for dead.
            pace=Pace(lease_s=min(MOST_LEASE_S, 3 * options.interval_s + 10.0), retention_s=options.retention_s),
            settings={
                "engine": "spark",
                "mode": mode,
                "interval_s": options.interval_s,
                "window_s": options.window_s,
                **({"needs": request.needs} if request.needs else {}),
            },
            foresight=options.forecast,
        )
        undo.callback(controller.stop)
        if begin is not None:
            undo.callback(lambda: [query.stop() for query in job.queries])
            begin(controller)
        scaler = Scaler(
            controller, job, clock, options.interval_s, own_journal=book is not journal, needs=request.needs
        )
        undo.pop_all()
    if not request.dry_run:
        ATTACHED.add(scaler)
    return scaler
