"""Examples of every kind of record, with values that are hard to store: infinity, thirds, other scripts."""

from __future__ import annotations

import math

from rheostat.job.allocation import Allocation
from rheostat.job.decision import (
    Decision,
    Expectation,
    GuardNote,
    Interval,
    Measurement,
    Outcome,
    Phase,
    Reason,
    Trial,
    Verdict,
)
from rheostat.job.forecast import Forecast, ForecastChoice, Foresight
from rheostat.job.graph import Edge, Graph, JobSpec, Pinned, Tunable
from rheostat.job.guards import FrozenPeriod, Guards
from rheostat.job.observation import (
    Change,
    EdgeReading,
    Latency,
    Observation,
    OperatorReading,
    SourceReading,
    Status,
)
from rheostat.job.plan import Choice, Estimate, NextMeasurement, Plan
from rheostat.job.record import Ending, Intent, IntentEnd, IntentStep, PolicyFile, Record, Run, Snapshot
from rheostat.job.slo import SLO, Bounds, Budget

JOB = "Klicks-Zählung 点击 'x'"

_SMALL = Allocation({"lesen 读": 1, "zählen": 3})
_LARGE = Allocation({"lesen 读": 2, "zählen": 8}, memory_mb=2048)
_OBSERVATION = Observation(
    at_s=1_700_000_060.125,
    start_s=1_700_000_000.1,
    end_s=1_700_000_060.0,
    running=_SMALL,
    wanted=_LARGE,
    change=Change.UNDER_WAY,
    status=Status.RECOVERING,
    sources=(SourceReading("lesen 读", 0.1 + 0.2, backlog=1e15, lag_s=None),),
    operators=(
        OperatorReading("lesen 读", 1, 1 / 3, 0.25, 4 / 3, 0.5, 0.0, 12.0, 1e9, 2e9, 5e-324),
        OperatorReading("zählen", 3),
    ),
    edges=(EdgeReading("lesen 读", "zählen", 2 / 3),),
    overloaded=("zählen",),
    overdue_s=1.5,
    latency=Latency(0.1, 0.2, 0.3, 1.1, 1.2, 1.3),
    uptime_s=86_400.0,
)
_TRIAL = Trial("größer?", _LARGE, (Phase(30.0, {"lesen 读": 10.0}), Phase(60.0, {"lesen 读": 1e6}, observed=True)))

EXAMPLES: tuple[Record, ...] = (
    Run(
        job=JOB,
        at_s=1_700_000_000.0,
        version="0.1.0",
        seed=2**63 - 1,
        spec=JobSpec(
            name=JOB,
            graph=Graph(
                ("lesen 读", "zählen", "sink"), (Edge("lesen 读", "zählen", 0.1), Edge("zählen", "sink")), ("lesen 读",)
            ),
            tunable=(Tunable("lesen 读", Bounds(1, 4)), Tunable("zählen", Bounds(2), quantum=2)),
            pinned=(Pinned("sink", 1, "it writes one file"),),
            checkpoint_interval_s=10.0,
            slots_available=64,
            memory_choices_mb=(1024, 2048),
        ),
        slo=SLO(
            max_latency_s=0.5,
            headroom=0.2,
            budget=Budget(cost_per_hour=1.6, price_per_slot_hour=0.1),
            job=Bounds(1, 16),
            operators={"zählen": Bounds(1, 8)},
        ),
        guards=Guards(max_step_up=2.0, frozen=(FrozenPeriod.parse("22:00-06:00"),)),
        policy="conttune",
        options={"alpha": 0.3, "levels": [1, [2, 3]], "deep": {"er": {"est": None}}},
        settings={"engine": "simulated"},
        foresight=Foresight(1800.0, ("profile",), 600.0),
        policy_file=PolicyFile("größer.py", "ab" * 32),
        prior_downtime=(60.0, 1.0),
    ),
    _OBSERVATION,
    Observation.blind(1_700_000_120.0, 'the engine said "no"\n\tand \\ nothing else'),
    Decision(
        target=_LARGE,
        reason=Reason.UNDER_PROVISIONED,
        sentence="zählen schafft 3.3 von 10 records/s",
        evidence={"recovery_s": math.inf, "slack": -math.inf, "zählen/capacity_per_s": 10 / 3, "zero": -0.0},
        expects=Expectation(1e4, Interval.at_least(9e3), Interval.at_most(0.5), Interval(1.0, 2.0, math.inf)),
        memo={"phase": "big", "tried": [1, 2, [3, {"p": 4}]], "best": {"at": None, "ok": True, "score": 0.1}, "": "😀"},
        trials=(_TRIAL,),
        asked=_SMALL,
        guards=(GuardNote("cooldown", "a change ended 3 s ago"),),
    ),
    Decision.hold(Reason.STEADY, ""),
    Intent("a-1", 7, 1_700_000_061.0, _LARGE, _SMALL, undoes="a-0"),
    IntentStep("a-1", "stop", 1_700_000_061.5),
    IntentEnd("a-1", 1_700_000_070.0, Ending.PARTIAL, _SMALL, "2 of 8 executors registered", downtime_s=4.5),
    Outcome(7, Verdict.MISSED, "recovery never ended", {"recovery_s": math.inf}, downtime_s=4.5),
    Measurement(_TRIAL, _OBSERVATION, 90.0, 900.0),
    Measurement(_TRIAL, None, 0.0, 0.0, problem="the testbed is gone"),
    Snapshot(1_700_000_080.0, 7, state='{"a": [1, "\\u0000"]}', knowledge="x" * 100_000),
    ForecastChoice(1_700_000_090.0, "profile", 288, "0.4 of its error", {"drift": math.inf}, 96, ("1 gap",)),
    Forecast(1_700_000_090.0, 60.0, (0.5, 0.9), ((1 / 3, 2 / 3), (0.0, 1e15)), "profile", ("exploded",)),
    Estimate(
        1_700_000_090.0, _LARGE, Interval(1 / 3, 0.5, math.inf), 645.0, 6450.0, _OBSERVATION, 2 / 3, "injector", 8
    ),
    Estimate(1_700_000_091.0, _LARGE, None, problem="the testbed is gone"),
    Plan(
        at_s=1_700_000_092.0,
        job=JOB,
        rate_per_s=2e6,
        headroom=0.1,
        allocation=_LARGE,
        slots=Interval(9.0, 10.0, math.inf),
        capacity_per_s=Interval(1e6, 2e6, 3e6),
        choices=(Choice(2048, Interval(9.0, 10.0, math.inf), 0.1), Choice(None, Interval(1.0, math.inf, math.inf))),
        cost_per_hour=None,
        measured_slots=4,
        reach=2.5,
        warnings=("it may be that no number of slots is enough",),
        weights={"steady": 1 / 3},
        next_measurement=NextMeasurement(8, 2048, 3.0, 1.5, inside=False),
        measurements=7,
        minutes=31.5,
        slot_hours=4.2,
        verified={"100%": "sustained"},
    ),
)
"""At least one record of every kind, with infinity, nesting, other scripts, quotes and thirds."""
