"""The page of a dry run: what really ran beside what would have run, what waits in both, and the score."""

from __future__ import annotations

from collections.abc import Iterator

from rheostat.control.shadow import ShadowScore, ShadowSeries
from rheostat.job.decision import Interval
from rheostat.report import words
from rheostat.report.chart.figure import Figure, Panel
from rheostat.report.chart.pens import Pen
from rheostat.report.chart.time_axis import TimeAxis, limit, line, stack
from rheostat.report.html import Cell, Fact, Plot, Table, render

AVOIDED = "over the SLO avoided"
HEADS = ("", "really ran", "dry run", "difference")
REAL, SHADOW, DOUBT = Pen("vermilion", width=2.2), Pen("blue"), Pen("sky", "dot", width=1.2)
NOTE = (
    "What really ran is measured. The dry run's backlog and lag are computed: the measured load waits in a queue that "
    "the measured true rate of a slot serves, times the slots that would have run. Dotted: the same "
    "with the 10 % fastest and the 10 % slowest rates. A gap is a missing measurement."
)


def shadow_page(job: str, score: ShadowScore, series: ShadowSeries) -> str:
    """Return one HTML document about a dry run."""
    rows = [[Cell(row[0]), *(Cell(text, "number") for text in row[1:])] for row in score_rows(score)]
    return render(
        "shadow.html.j2",
        title=f"{job}: what the dry run would have done",
        job=job,
        facts=list(_facts(score)),
        score=Table(HEADS, rows),
        certainty=list(certainty(score)),
        plots=[Plot("shadow", shadow_figure(job, score.unit, series), NOTE)],
    )


def _facts(score: ShadowScore) -> Iterator[Fact]:
    yield Fact(words.seconds(score.seconds), "watched")
    yield Fact(words.number(score.saved_unit_h), f"{score.unit}-hours saved")
    if (avoided := score.avoided_s) is not None:
        note = "" if avoided.low == avoided.high else f"{avoided.low:.0f} to {avoided.high:.0f}"
        yield Fact(words.seconds(avoided.middle) if avoided.middle >= 0 else f"{avoided.middle:.0f} s", AVOIDED, note)
    yield Fact(str(score.changes), "changes it would have made")


def shadow_figure(job: str, unit: str, series: ShadowSeries) -> Figure:
    """Return sizes, load, backlog and lag over time, of what really ran and of the dry run."""
    at_s = series.at_s
    time = TimeAxis(float(at_s[0]), float(at_s[-1]))
    fast_s, lag_s, slow_s = series.shadow_lag_s
    objective = [] if series.max_lag_s is None else [limit(time, series.max_lag_s, "SLO")]
    panels = [
        Panel(
            f"{unit.capitalize()}s",
            180,
            [
                line(time, at_s, series.real, "really ran", REAL, f" {unit}s", step=True),
                line(time, at_s, series.shadow, "dry run", SHADOW, f" {unit}s", step=True),
            ],
        ),
        Panel(
            "Load, records/s",
            110,
            [line(time, at_s, series.load_per_s, "load (arriving)", Pen("ink"), "/s")],
        ),
        Panel(
            "Backlog, records waiting at the sources",
            130,
            [
                line(time, at_s, series.backlog, "backlog, really", REAL, ""),
                line(time, at_s, series.shadow_backlog, "backlog, dry run", SHADOW, ""),
            ],
        ),
        Panel(
            "Lag, seconds (age of the oldest waiting record)",
            150,
            [
                line(time, at_s, series.lag_s, "lag, really", REAL, " s"),
                line(time, at_s, lag_s, "lag, dry run", SHADOW, " s"),
                line(time, at_s, fast_s, "with the 10 % fastest tasks", DOUBT, " s"),
                line(time, at_s, slow_s, "with the 10 % slowest tasks", DOUBT, " s"),
                *objective,
            ],
        ),
    ]
    return stack(f"{job}: what really ran and the dry run, over time", time, panels)


def score_rows(score: ShadowScore) -> Iterator[tuple[str, str, str, str]]:
    """Yield the rows of the table."""
    real_h, shadow_h = score.real_unit_s / 3600, score.shadow_unit_s / 3600
    share = f" ({score.saved_unit_h / real_h:+.0%})" if real_h else ""
    yield f"{score.unit}-hours", f"{real_h:.2f}", f"{shadow_h:.2f}", f"{score.saved_unit_h:.2f} saved{share}"
    if score.over_s is not None and score.shadow_over_s is not None and score.avoided_s is not None:
        yield "s over the SLO", f"{score.over_s:.0f}", _range(score.shadow_over_s), f"{_range(score.avoided_s)} avoided"
    else:
        yield "s over the SLO", "-", "-", "no limit on latency or lag was set or measured"
    yield "changes", "-", str(score.changes), ""


def certainty(score: ShadowScore) -> Iterator[str]:
    """Yield how sure the score is."""
    yield (
        f"How sure: {score.usable_share:.0%} of the windows could be decided from; true rates varied by "
        f"+-{score.rate_spread:.0%}; for {score.seen_share:.0%} of the time the dry run's size is one that really ran "
        "(elsewhere capacity is taken as proportional to slots)."
    )
    if score.over_s is not None and score.model_over_s is not None:
        yield (
            f"The same computation at the real size gives {score.model_over_s:.0f} s over the SLO; "
            f"{score.over_s:.0f} s were measured."
        )


def _range(value: Interval) -> str:
    text = f"{value.middle:.0f}"
    return text if value.low == value.high else f"{text} ({value.low:.0f} to {value.high:.0f})"
