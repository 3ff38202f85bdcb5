"""One job's journal, read once into columns of numbers and the few records that a page puts into words.

A journal may hold hundreds of thousands of windows: of most of them only the numbers stay in memory.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from rheostat.errors import InvalidValue, nearest
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Measurement, Outcome, Verdict
from rheostat.job.observation import Observation, Status
from rheostat.job.record import Intent, IntentEnd, IntentStep, Run
from rheostat.job.slo import SLO
from rheostat.ports import Journal
from rheostat.report.series import Floats

JOB_COLUMNS = (
    "at_s", "stands_for_s", "load_per_s", "throughput_per_s", "backlog", "lag_s", "slots",
    "files_waiting", "bytes_waiting", "versions_waiting",
    "event_p50_s", "event_p95_s", "event_p99_s", "p99_s", "max_latency_s", "max_lag_s", "unusable", "down",
)  # fmt: skip
OPERATOR_COLUMNS = ("tasks", "useful_share", "true_rate_per_s")


@dataclass(frozen=True, slots=True)
class Proposal:
    """A decision that asked for a change, with the allocation before it and its outcome."""

    step: int
    at_s: float
    decision: Decision
    before: Allocation | None
    outcome: Outcome | None = None

    @property
    def wanted(self) -> Allocation | None:
        """The allocation that the policy asked for."""
        return self.decision.asked or self.decision.target

    @property
    def fate(self) -> str:
        """What the guards did with it: applied, cut or stopped."""
        if self.decision.target is None:
            return "stopped"
        return "applied" if self.decision.asked in (None, self.decision.target) else "cut"


@dataclass(slots=True)
class Reconfiguration:
    """A change of the running job: the intent, its sub-steps, and its end if it has one."""

    intent: Intent
    steps: list[str] = field(default_factory=list)
    end: IntentEnd | None = None


@dataclass
class History:
    """Everything that a page shows about one job."""

    job: str
    runs: list[Run] = field(default_factory=list)
    proposals: list[Proposal] = field(default_factory=list)
    changes: dict[str, Reconfiguration] = field(default_factory=dict)
    reasons: Counter[str] = field(default_factory=Counter)
    problems: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    measurements: int = 0
    breaks: list[float] = field(default_factory=list)
    """Moments between the last window of one controller and the first of the next: no controller ran then."""
    jobwide: dict[str, array[float]] = field(default_factory=lambda: {name: array("d") for name in JOB_COLUMNS})
    operators: dict[str, dict[str, array[float]]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.jobwide["at_s"])

    @property
    def steps(self) -> int:
        """Steps of the loop that the journal still holds."""
        return self.reasons.total()

    def column(self, name: str) -> Floats:
        """Return one number per window; NaN where there is no measurement."""
        return np.frombuffer(self.jobwide[name]) if len(self) else np.empty(0)

    def operator_column(self, operator: str, name: str) -> Floats:
        """Return one operator's number per window; NaN where there is no measurement."""
        return np.frombuffer(self.operators[operator][name]) if len(self) else np.empty(0)

    @property
    def period_s(self) -> tuple[float, float] | None:
        """The first and the last moment of the records."""
        moments = [run.at_s for run in self.runs]
        moments += [c.intent.at_s for c in self.changes.values()]
        moments += [c.end.at_s for c in self.changes.values() if c.end]
        if len(self):
            moments += [self.jobwide["at_s"][0], self.jobwide["at_s"][-1]]
        return (min(moments), max(moments)) if moments else None

    @property
    def slot_seconds(self) -> float | None:
        """Slots running, times the seconds they ran; None when no window has them."""
        held = self.column("slots") * self.column("stands_for_s")
        return None if np.isnan(held).all() else float(np.nansum(held))

    @property
    def worst_lag_s(self) -> float | None:
        """The largest lag of all windows."""
        lag = self.column("lag_s")
        return None if np.isnan(lag).all() else float(np.nanmax(lag))

    def seconds_over(self) -> tuple[float, float] | None:
        """Return seconds over the SLO, and seconds without a measurement; None without a limit on latency or lag."""
        over = np.zeros(len(self), dtype=bool)
        measured = np.ones(len(self), dtype=bool)
        limited = False
        for column, most in (("event_p99_s", "max_latency_s"), ("lag_s", "max_lag_s")):
            value, limit = self.column(column), self.column(most)
            applies = ~np.isnan(limit)
            limited |= bool(applies.any())
            over |= applies & (value > limit)  # NaN is not above anything
            measured &= ~applies | ~np.isnan(value)
        if not limited:
            return None
        stands_for_s = self.column("stands_for_s")
        return float(stands_for_s[over].sum()), float(stands_for_s[~measured & ~over].sum())


def read_history(journal: Journal, job: str) -> History:
    """Read all records of one job; the error about an unknown job names the jobs of the journal."""
    history = History(job)
    slo, last_s, last_end_s = SLO(), None, -math.inf
    fresh = True
    window: Observation | None = None
    judged: dict[int, Outcome] = {}
    records = 0
    for entry in journal.read(job):
        records += 1
        match entry.record:
            case Run() as run:
                history.runs.append(run)
                slo, fresh = run.slo, True
            case Observation() as window:
                since = window.start_s if fresh or last_s is None else last_s
                if fresh and last_s is not None and since > last_s:
                    history.breaks.append((last_s + since) / 2)
                stale = window.end_s <= last_end_s
                _append(history, window, slo, max(window.at_s - since, 0.0), stale)
                last_s, fresh = window.at_s, False
                last_end_s = max(last_end_s, window.end_s) if window.running is not None else last_end_s
            case Decision() as decision:
                history.reasons[decision.reason.value] += 1
                if decision.target is not None or decision.asked is not None:
                    at_s = math.nan if window is None else window.at_s
                    before = None if window is None else window.running
                    history.proposals.append(Proposal(entry.step, at_s, decision, before))
            case Intent() as intent:
                history.changes[intent.id] = Reconfiguration(intent)
            case IntentStep() as step if step.intent in history.changes:
                history.changes[step.intent].steps.append(step.name)
            case IntentEnd() as end if end.intent in history.changes:
                history.changes[end.intent].end = end
            case Outcome() as outcome:
                judged[outcome.step] = outcome
                history.verdicts[outcome.verdict] += 1
            case Measurement():
                history.measurements += 1
    if not records:
        jobs = journal.jobs()
        hint = nearest(job, jobs) if jobs else "it is empty"
        raise InvalidValue(f"the journal has no job {job!r}, {hint}")
    # A decision without a window before it (retention deleted the window) has no place in time.
    history.proposals = [
        Proposal(p.step, p.at_s, p.decision, p.before, judged.get(p.step) if p.decision.target else None)
        for p in history.proposals
        if not math.isnan(p.at_s)
    ]
    return history


def _append(history: History, window: Observation, slo: SLO, stands_for_s: float, stale: bool) -> None:
    """Add one window to the columns. A repeated window holds nothing new: its readings are gaps."""
    shown = None if stale else window
    latency = shown.latency if shown else None
    waiting = shown.waiting if shown else {}
    values = {
        "at_s": window.at_s,
        "stands_for_s": stands_for_s,
        "load_per_s": shown.load_per_s if shown else None,
        "throughput_per_s": shown.throughput_per_s if shown else None,
        "backlog": shown.backlog if shown else None,
        "lag_s": shown.lag_s if shown else None,
        **{f"{name}_waiting": waiting.get(name) for name in ("files", "bytes", "versions")},
        "slots": window.running.slots if window.running else None,
        "event_p50_s": latency.event_p50_s if latency else None,
        "event_p95_s": latency.event_p95_s if latency else None,
        "event_p99_s": latency.event_p99_s if latency else None,
        "p99_s": latency.p99_s if latency else None,
        "max_latency_s": slo.max_latency_s,
        "max_lag_s": slo.max_lag_s,
        "unusable": float(window.problem is not None),
        "down": float(window.status is Status.DOWN),
    }
    for name, value in values.items():
        history.jobwide[name].append(_number(value))
    if window.problem is not None:
        history.problems[re.sub(r"\d+(\.\d+)?", "…", window.problem)] += 1
    _append_operators(history, window, stale)


def _append_operators(history: History, window: Observation, stale: bool) -> None:
    """Add one row per operator that has tasks, or has a reading and is not pinned."""
    pinned = {p.operator for p in history.runs[-1].spec.pinned} if history.runs else set()
    tasks = window.running.tasks if window.running else {}
    readings = {} if stale else {r.name: r for r in window.present_operators if r.name not in pinned}
    before = len(history) - 1
    for name in (*tasks, *readings):
        if name not in history.operators:
            gaps = [math.nan] * before
            history.operators[name] = {column: array("d", gaps) for column in OPERATOR_COLUMNS}
    for name, columns in history.operators.items():
        reading = readings.get(name)
        columns["tasks"].append(_number(tasks.get(name)))
        columns["useful_share"].append(_number(reading.useful_share if reading else None))
        columns["true_rate_per_s"].append(_number(reading.true_rate_per_s if reading else None))


def _number(value: float | None) -> float:
    """Return NaN, a gap, for a value that is missing or infinite."""
    return math.nan if value is None or not math.isfinite(value) else float(value)
