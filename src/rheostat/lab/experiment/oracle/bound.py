"""The lower bound of a trial's cost.

**One operator**: the search of `search.py`, exact but for the joining of almost equal backlogs.

**Many operators**: the sum of one bound per operator. Restricted to operator i, any run of the job is a run of a job
that has only i: it holds i's slots, stops whenever the job stops, and cannot do more work than its capacity. A second
in which an operator is too far behind is over the SLO for the whole job, so the price of such a second is divided among
the operators by their slots at the peak. What the relaxation gives away: operators may change at different moments
without stopping each other, and a second that two of them share is paid by both.

**Live changes** (micro-batches, real time): changes are free and happen at any moment; see `live.py`.

Best cases are taken for interference (the best total that a size allows), memory, buffers of other operators (as if
at their largest size), records that are read again after a failure (none) and, of many operators, queueing delays
(none).
"""

from __future__ import annotations

from dataclasses import dataclass

from rheostat.engine.simulated.discipline import Flow
from rheostat.engine.simulated.plant import Plant
from rheostat.lab.experiment.oracle.cost import Cost, peak_size
from rheostat.lab.experiment.oracle.course import Course, read_course
from rheostat.lab.experiment.oracle.live import live_cost
from rheostat.lab.experiment.oracle.search import Found, Search
from rheostat.lab.experiment.oracle.server import Server, make_servers
from rheostat.lab.experiment.trial import Trial


@dataclass(frozen=True)
class Bound:
    """The least cost of a trial, whatever sizes the job."""

    cost: Cost
    """Its parts belong to the cheapest course of each operator; only the total is a bound."""
    total: float


def lower_bound(trial: Trial[Plant]) -> Bound:
    """Return the bound of a trial for its seed."""
    course, peak = read_course(trial), peak_size(trial)
    costs = []
    for server in make_servers(course):
        slots = float(peak.tasks[server.operator.name])
        if isinstance(trial.job.discipline, Flow):
            costs.append(search(course, server, slots).cost)
        else:
            costs.append(live_cost(server, slots))
    parts = Cost(
        sum(cost.slot_seconds for cost in costs),
        sum(cost.over_s * cost.peak_slots for cost in costs) / peak.slots,
        sum(cost.lost for cost in costs),
        float(peak.slots),
    )
    return Bound(parts, sum(cost.total for cost in costs))


def search(course: Course, server: Server, peak_slots: float) -> Found:
    """Return the cheapest course of one operator from the trial's start."""
    start = (course.trial.start or course.trial.job.start()).tasks[server.operator.name]
    return Search(server, peak_slots).run(server.tasks.index(start))
