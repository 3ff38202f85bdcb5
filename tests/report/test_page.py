from __future__ import annotations

import base64
import hashlib
import math
import subprocess
import sys
from array import array
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from charts import Chart, charts

from rheostat.engine.simulated import Plant
from rheostat.engine.testbed.loads import Permutation
from rheostat.errors import InvalidValue
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Expectation, GuardNote, Interval, Outcome, Reason, Verdict
from rheostat.job.graph import Edge, Graph, JobSpec, Pinned, Tunable
from rheostat.job.guards import Guards
from rheostat.job.observation import Latency, Observation, OperatorReading, SourceReading, Status
from rheostat.job.record import Ending, Intent, IntentEnd, IntentStep, Record, Run
from rheostat.job.slo import SLO, Bounds
from rheostat.journal.memory import MemoryJournal
from rheostat.lab.experiment.comparison import Comparison, compare
from rheostat.lab.experiment.oracle.schedule import make_oracle
from rheostat.lab.experiment.page import comparison_page
from rheostat.lab.experiment.simulated import Simulated
from rheostat.lab.experiment.trial import Trial
from rheostat.lab.jobs import job
from rheostat.policy.ds2 import DS2
from rheostat.policy.static import Static
from rheostat.report.history import OPERATOR_COLUMNS, History, Proposal, Reconfiguration
from rheostat.report.journal_page import history_page, journal_page

LARGEST = 1.5e6
"""Bytes of a page."""
EVIL = "</script><img src=x onerror=alert(1)>%{y}&amp;<a href='https://evil.example'>"
ELEMENTS = {"svg", "title", "desc", "g", "path", "rect", "circle", "text", "clipPath"}
ATTRIBUTES = {
    *("class", "role", "aria-labelledby", "viewBox", "style", "id", "d", "x", "y", "width", "height", "r", "fill"),
    *("transform", "clip-path", "fill-opacity", "opacity", "data-scale", "data-low", "data-high", "data-unit"),
    *("data-format", "data-g", "data-y", "data-name", "data-step"),
}
VOID = {"meta", "img", "br", "link", "hr", "input"}


Compared = Comparison[Plant]


class Page(HTMLParser):
    """A page taken apart: its elements, its text, its tables and its charts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.html = html
        self.charts: dict[str, Chart] = charts(html)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.scripts: list[str] = []
        self.rows: list[list[str]] = []
        self.looks: list[list[str]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
            self.looks.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self.looks[-1].append(dict(attrs).get("class") or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        inside = self.open[-1] if self.open else ""
        if inside == "script":
            self.scripts.append(data)
        elif inside != "style":
            self.words.append(data)
            if "td" in self.open or "th" in self.open:
                self.rows[-1][-1] += (" " if inside == "small" else "") + data

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def attribute(self, tag: str, name: str) -> list[str | None]:
        return [attributes[name] for element, attributes in self.elements if element == tag and name in attributes]

    def row(self, first: str) -> list[str]:
        return next(row for row in self.rows if row[0].startswith(first))


# -- journals made by hand -------------------------------------------------------------------------------------


def spec(name: str = "clicks", operator: str = "count") -> JobSpec:
    graph = Graph(("src", operator), (Edge("src", operator),), ("src",))
    return JobSpec(name, graph, (Tunable(operator, Bounds(1, 40)),), (Pinned("src", 1, f"it is {operator}"),))


def run(name: str = "clicks", operator: str = "count", at_s: float = 0.0, **more: Any) -> Run:
    given: dict[str, Any] = {"policy": "ds2", "slo": SLO(max_latency_s=5.0), "guards": Guards(), "settings": {}} | more
    return Run(name, at_s, "0.1", 7, spec(name, operator), options={"windows": 3}, **given)


def window(at_s: float, tasks: int, operator: str = "count", p99_s: float = 1.0, **more: Any) -> Observation:
    running = Allocation({operator: tasks})
    return Observation(
        at_s,
        at_s - 60,
        at_s,
        running,
        running,
        sources=(SourceReading("src", 2000.0, 500.0, at_s / 60),),
        operators=(OperatorReading("src", 1, 1900.0), OperatorReading(operator, tasks, 1900.0, 0.5, 800.0)),
        latency=Latency(0.1, 0.2, 0.3, 0.5, 0.8, p99_s),
        **more,
    )


def journal(*steps: Sequence[Record], name: str = "clicks", first: Run | None = None) -> MemoryJournal:
    made = MemoryJournal()
    lease = made.acquire(name, "test", 1e9)
    made.append(lease, 0, [first or run(name)])
    for number, records in enumerate(steps):
        made.append(lease, number, records)
    made.release(lease)
    return made


HOLD = Decision.hold(Reason.STEADY, "all is well")


def eventful(name: str = "clicks", operator: str = "count", says: str = "too little") -> MemoryJournal:
    """A change that was kept, one that a guard stopped, a blind window, and a change that is still open."""
    four, six = Allocation({operator: 4}), Allocation({operator: 6})
    grow = Decision(
        six,
        Reason.UNDER_PROVISIONED,
        says,
        {f"{operator}.need": 5.5},
        Expectation(2000.0, Interval.at_least(1900.0)),
        asked=Allocation({operator: 9}),
        guards=(GuardNote("step_size", f"cut: {says}"),),
    )
    stop = Decision.hold(
        Reason.OVER_PROVISIONED, "too much", asked=four, guards=(GuardNote("cool_down", "shrinking waits 60 s more"),)
    )
    first, last = Intent("0@60", 0, 60.0, six, four), Intent("4@300", 4, 300.0, four, six)
    return journal(
        [window(60, 4, operator), grow, first, IntentStep(first.id, f"stop {says}", 60.0)],
        [
            window(120, 6, operator, p99_s=9.0),
            IntentEnd(first.id, 120.0, Ending.DONE, six, downtime_s=21.0),
            Outcome(0, Verdict.KEPT, f"as expected, {says}"),
            stop,
        ],
        [Observation.blind(180.0, f"timeout of {says}"), HOLD],
        [window(240, 6, operator, problem="the job is down", status=Status.DOWN), HOLD],
        [window(300, 6, operator), Decision(four, Reason.OVER_PROVISIONED, "shrink"), last],
        name=name,
        first=run(name, operator, settings={"engine": "simulated", "interval_s": 60}),
    )


# -- the journal's page ----------------------------------------------------------------------------------------


def test_the_journal_page_tells_the_run() -> None:
    page = Page(journal_page(eventful(), "clicks"))
    for fact in (
        "ds2",
        "windows 3",
        "seed 7",
        "max_latency_s 5",
        "engine simulated",
        "change_patience_s 300",
        "count 1 to 40 tasks",
        "src pinned at 1: it is count",
        "0:00:00 to 0:05:00",
    ):
        assert fact in page.text


def test_the_journal_page_has_the_headline_numbers() -> None:
    page = Page(journal_page(eventful(), "clicks"))
    assert "5 steps" in page.text
    assert "2 changes done: 1, open: 1" in page.text
    assert "1 of 1 expectations kept" in page.text
    # 4 slots for one minute, 6 for three; the blind minute has no reading.
    assert "1.32k slot-seconds" in page.text
    assert "60 s over the SLO not measured for 60 s" in page.text
    assert "5 s worst lag" in page.text


def test_the_journal_page_lists_every_decision_that_asked_for_a_change() -> None:
    page = Page(journal_page(eventful(), "clicks"))
    cut, stopped, last = page.row("0:01:00"), page.row("0:02:00"), page.row("0:05:00")
    assert cut[2:] == [
        "under-provisioned",
        "too little",
        "requested count 4 → 9 granted count 4 → 6",
        "step_size: cut: too little",
        "throughput ≥ 1.9k/s, while load ≤ 2k/s",
        "kept as expected, too little",
    ]
    assert stopped[3:6] == ["too much", "requested count 6 → 4 granted nothing", "cool_down: shrinking waits 60 s more"]
    assert last[2:5] == ["over-provisioned", "shrink", "count 6 → 4"]


def test_the_journal_page_lists_changes_also_the_unfinished_one() -> None:
    page = Page(journal_page(eventful(), "clicks"))
    changes = [row for row in page.rows if row[1] in ("0@60", "4@300")]
    assert changes[0] == ["0:01:00", "0@60", "count 4 → 6", "stop too little", "done", "60 s", "21 s"]
    assert changes[1][4:] == ["open", "–", "–"]  # noqa: RUF001
    # Its shade lasts to the end of the page's time, 300 s = 300 on an axis in seconds.
    chart = page.charts["job"]
    (first, last) = chart.shades(chart.keys["change under way"])
    assert first == pytest.approx((60, 120), abs=0.01)
    assert last[0] == pytest.approx(300, abs=0.01)
    assert last[1] > last[0]


def test_missing_data_are_gaps() -> None:
    chart = Page(journal_page(eventful(), "clicks")).charts["job"]
    load, tasks = chart.line("load (arriving)"), chart.line("count")
    assert load.x == pytest.approx([60, 120, 240, 300], abs=0.01)
    assert load.y == [2000, 2000, None, 2000, 2000]
    assert tasks.y == [4, 6, None, 6, 6]


def test_what_waits_in_a_table_has_its_panels() -> None:
    table = SourceReading("src", 2000.0, 500.0, 1.0, files_waiting=3, bytes_waiting=4096, versions_waiting=2)
    first, second = (replace(window(at_s, 4), sources=(table,)) for at_s in (60, 120))
    chart = Page(journal_page(journal([first, HOLD], [second, HOLD]), "clicks")).charts["job"]
    shown = [chart.line(f"{name} that wait").y for name in ("files", "bytes", "versions")]
    assert shown == [[3, 3], [4096, 4096], [2, 2]]
    assert "files that wait" not in Page(journal_page(eventful(), "clicks")).text


def test_a_lone_point_between_two_gaps_is_drawn_as_a_dot() -> None:
    blind = [Observation.blind(at, "blind") for at in (120.0, 240.0)]
    made = journal([window(60, 4), HOLD], [blind[0], HOLD], [window(180, 4), HOLD], [blind[1], HOLD])
    load = Page(journal_page(made, "clicks")).charts["job"].line("load (arriving)")
    assert load.places == [load.dots[0], None, load.dots[1]]


def test_a_window_that_is_shown_again_is_a_gap() -> None:
    again = Observation(120.0, 0.0, 60.0, Allocation({"count": 4}), None, sources=window(60, 4).sources)
    made = journal([window(60, 4), HOLD], [again, HOLD], [window(180, 4), HOLD])
    load = Page(journal_page(made, "clicks")).charts["job"].line("load (arriving)")
    assert load.y == [2000, None, 2000]


def test_the_time_without_a_controller_is_a_gap_and_costs_nothing() -> None:
    made = journal([window(60, 4), HOLD], [window(120, 4), HOLD])
    lease = made.acquire("clicks", "test", 1e9)
    made.append(lease, 2, [run(at_s=900.0, policy="static", slo=SLO())])
    made.append(lease, 2, [window(960, 4), HOLD])
    page = Page(journal_page(made, "clicks"))
    load = page.charts["job"].line("load (arriving)")
    assert load.y == [2000, 2000, None, 2000]
    assert "720 slot-seconds" in page.text
    assert "a controller started 2 times" in page.text
    assert "until 0:15:00 ds2" in page.text


def test_markers_carry_reason_sentence_evidence_and_guards() -> None:
    chart = Page(journal_page(eventful(), "clicks")).charts["job"]
    assert len(chart.markers) == 3
    (marker,) = [marker for marker in chart.markers if "step 0" in marker.text]
    for part in ("under-provisioned", "too little", "count.need 5.5", "guard step_size: cut", "judged kept"):
        assert part in marker.text
    assert [chart.keys[name] for name in ("expectation kept", "not judged yet")] == ["green", "ink"]
    assert {marker.colour for marker in chart.markers} == {"green", "ink", "grey"}
    assert 'class="open"' in marker.markup  # a guard cut it


def test_a_marker_lies_on_the_tasks_that_were_asked_for() -> None:
    chart = Page(journal_page(eventful(), "clicks")).charts["job"]
    tasks = chart.line("count")
    levels = {value: place[1] for value, place in zip(tasks.y, tasks.places, strict=True) if place}
    grown = next(marker for marker in chart.markers if "step 0" in marker.text)
    assert chart.x_value(grown.place[0]) == pytest.approx(60, abs=0.01)
    assert grown.place[1] == levels[6]


def test_dates_are_used_where_the_clock_counts_from_1970() -> None:
    start = 1_780_000_000.0
    steps: list[list[Record]] = [[window(start + 60 * k, 4), HOLD] for k in range(3)]
    made = journal(*steps, first=run(at_s=start))
    page = Page(journal_page(made, "clicks"))
    chart = page.charts["job"]
    assert chart.root.get("data-scale") == "date"
    assert chart.line("load (arriving)").x == pytest.approx([start, start + 60, start + 120], abs=0.01)
    assert {"20:27:00", "2026-05-28"} <= set(chart.words)
    assert "2026-05-28 20:26:40" in page.text


def test_a_job_without_observations_says_so() -> None:
    page = Page(journal_page(journal(), "clicks"))
    assert "no observations of this job" in page.text
    assert page.charts == {}
    assert "ds2" in page.text


def test_an_unknown_job_names_the_known_ones() -> None:
    with pytest.raises(InvalidValue, match="no job 'clacks', did you mean 'clicks'"):
        journal_page(journal(), "clacks")
    with pytest.raises(InvalidValue, match="no job 'clicks', it is empty"):
        journal_page(MemoryJournal(), "clicks")


def test_a_long_journal_gives_a_page_of_the_same_size_with_its_extremes() -> None:
    grown = Decision(Allocation({"count": 5}), Reason.UNDER_PROVISIONED, "grow", {"a": 1.0})
    steps: list[list[Record]] = [[window(60.0 * k, 4, p99_s=1 + math.sin(k)), HOLD] for k in range(1, 6000)]
    for k in range(0, 5999, 3):
        steps[k][1] = grown
    steps[3210][0] = window(60.0 * 3211, 4, p99_s=77.0)
    page = Page(journal_page(journal(*steps), "clicks"))
    chart = page.charts["job"]
    assert all(len(line.places) <= 2000 for line in chart.lines)
    latency = chart.line("99 %")
    assert max(value for value in latency.y if value is not None) == 77.0
    peak = latency.x[latency.y.index(77.0)]
    assert peak == pytest.approx(3211 / 60, abs=0.01)  # hours
    assert "The newest 1000 of 2000" in page.text
    assert "1000 of 2000 decisions have a marker" in page.text
    assert len(page.html) < LARGEST


def test_a_page_of_30_days_at_10_s_is_small() -> None:
    """The size limit, for a job with three operators, noise in every series and a decision in every tenth step."""
    steps = 30 * 8640
    noise = np.random.default_rng(0).random((steps, 4))
    operators = ("parse", "join", "count")
    grow = Decision(Allocation(dict.fromkeys(operators, 5)), Reason.UNDER_PROVISIONED, "more load than capacity")
    history = History("clicks", [run(at_s=1.78e9)])
    for k in range(steps):
        at_s, (a, b, c, d) = 1.78e9 + 10.0 * k, noise[k].tolist()
        values = (
            at_s,
            10,
            1e5 * a,
            1e5 * b,
            1e6 * c,
            60 * d,
            9,
            99 * a,
            1e9 * b,
            9 * c,
            a,
            b,
            c,
            d,
            5,
            30,
            a < 0.01,
            b < 0.01,
        )
        for name, value in zip(history.jobwide, values, strict=True):
            history.jobwide[name].append(value)
        for name in operators:
            columns = history.operators.setdefault(name, {column: array("d") for column in OPERATOR_COLUMNS})
            for column, value in zip(columns.values(), (1 + int(9 * a), b, 1e4 * c), strict=True):
                column.append(value)
        if k % 10 == 0:
            history.proposals.append(Proposal(k, at_s, grow, None))
            history.reasons[grow.reason.value] += 1
            history.changes[str(k)] = Reconfiguration(Intent(str(k), k, at_s, Allocation({"parse": 5}), None))
    history.jobwide["lag_s"][123_456] = 7e3
    html = history_page(history)
    assert len(html) <= LARGEST
    lag = charts(html)["job"].line("lag")
    assert lag.x[lag.y.index(7000.0)] == pytest.approx(1.78e9 + 1_234_560, abs=60)


# -- the comparison's page -------------------------------------------------------------------------------------


def compared(*labels: str, seeds: Sequence[int] = (3, 4), slo: SLO | None = None) -> Compared:
    known = {"oracle": make_oracle, "ds2": lambda _: DS2()}
    trial = Trial(
        job("wordcount"),
        Permutation(hold_s=120.0),
        900.0,
        slo=SLO(max_latency_s=10.0, headroom=0.2) if slo is None else slo,
        failures_s=(300.0,),
        settings={"written by": EVIL},
    )
    makers = {label: known.get(label, lambda _: Static()) for label in labels}
    return compare(Simulated(makers), trial, labels, seeds)


@pytest.fixture(scope="module")
def comparison() -> Compared:
    return compared("ds2", "static", EVIL)


@pytest.fixture(scope="module")
def compared_page(comparison: Compared) -> Page:
    return Page(comparison_page(comparison))


def test_the_comparison_page_tells_the_scenario(compared_page: Page) -> None:
    for fact in (
        "wordcount: ds2, static",
        "parameters from ContTune, curves fitted to Tables 3, 4a and 5",
        "unit load lines 100k/s",
        "start splitter=1 count=1",
        "shape permutation",
        "hold_s 120",
        "seeds 3, 4",
        "failures at 0:05:00",
        "max_latency_s 10",
    ):
        assert fact in compared_page.text


def test_the_comparison_page_has_every_row_with_the_best_marked(comparison: Compared, compared_page: Page) -> None:
    every = comparison.as_dicts()
    for row, written in zip(comparison.rows, every, strict=True):
        shown = compared_page.row(row.policy)
        assert shown[1] == "2"
        assert shown[2] == f"{row.reconfigurations:.4g}"
        assert shown[6] == f"{row.slo_seconds_over:.5g}"
        assert shown[8] == f"{row.cost_over_oracle:.3f}"
        marked = [k for k, look in enumerate(compared_page.looks[compared_page.rows.index(shown)]) if "best" in look]
        keys = [column.key for column in comparison.ground.columns]
        best = [k for k, key in enumerate(keys, start=2) if written[key] == min(other[key] for other in every)]
        assert marked == best


def test_the_oracle_is_a_bound_and_no_row_of_its_own(compared_page: Page) -> None:
    assert "is a lower bound for the known load, capacities, noise and downtimes" in compared_page.text
    assert not [row for row in compared_page.rows if row[0].startswith("oracle")]


def test_the_oracle_that_was_asked_for_has_a_row_but_is_never_best() -> None:
    html = comparison_page(compared("oracle", "static", "ds2", seeds=(0,), slo=SLO()))
    page = Page(html)
    assert "Its row plays a schedule of the search" in page.text
    assert "no objective for latency or lag" in page.text
    assert page.row("oracle")[0] == "oracle a schedule of the search"
    assert page.row("static")[6] == "–"  # noqa: RUF001
    line = html[html.index('<td class="policy">oracle') :]
    assert "best" not in line[: line.index("</tr>")]


def test_a_policy_has_one_colour_everywhere(compared_page: Page) -> None:
    colours: dict[str, set[str]] = {}
    for chart in compared_page.charts.values():
        for name, colour in (*chart.keys.items(), *((line.name, line.colour) for line in chart.lines)):
            colours.setdefault(name, set()).add(colour)
    policies = {name: own for name, own in colours.items() if name not in ("SLO", "load", "failure")}
    assert len(policies) == 3
    assert all(len(own) == 1 for own in policies.values())
    assert len(set().union(*policies.values())) == 3


def test_the_cost_figure_has_a_point_per_policy_and_one_per_seed(comparison: Compared, compared_page: Page) -> None:
    chart = compared_page.charts["cost"]
    (row,) = [row for row in comparison.rows if row.policy == "static"]
    own = [marker for marker in chart.markers if marker.text.startswith("static, ")]
    assert sorted(marker.text.partition("\n")[0] for marker in own) == [
        "static, mean of the seeds",
        "static, seed 3",
        "static, seed 4",
    ]
    (mean,) = [marker for marker in own if "mean" in marker.text]
    assert chart.x_value(mean.place[0]) == pytest.approx(row.cost_over_oracle, abs=0.01)
    assert f"{row.cost_over_oracle:.3f} times" in mean.text


def test_the_timeline_shows_the_first_seed(comparison: Compared, compared_page: Page) -> None:
    chart = compared_page.charts["timeline"]
    trace = comparison.run("ds2", 3).trace
    assert chart.line("load").y[0] == pytest.approx(trace["load_per_s"][0] / 100e3)
    slots = [value for value in chart.line("ds2", 1).y if value is not None]
    assert max(slots) == trace["slots"].max()
    assert {"10", "100", "1k"} <= set(chart.words)  # latency is on a log axis
    assert chart.shades("limit")[0][0] == pytest.approx(5, abs=0.01)  # the failure, in minutes
    assert "seed 3" in compared_page.text


# -- both ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["journal", "comparison"])
def hostile(request: pytest.FixtureRequest, comparison: Compared) -> Page:
    if request.param == "comparison":
        return Page(comparison_page(comparison))
    return Page(journal_page(eventful(EVIL, EVIL, EVIL), EVIL))


def test_what_a_user_named_is_text_and_never_markup(hostile: Page) -> None:
    assert hostile.open == []
    assert EVIL in "".join(hostile.words)
    assert not [tag for tag, _ in hostile.elements if tag in ("img", "a", "i")]
    assert len(hostile.scripts) == 1
    for chart in hostile.charts.values():
        assert any(EVIL in name for name in (*chart.keys, *chart.tips, *(line.name for line in chart.lines)))
        # Only our own elements and attributes: a text that got out of its place would add others.
        for node in chart.root.iter():
            assert node.tag in ELEMENTS
            assert set(node.attrib) <= ATTRIBUTES


def test_nothing_is_loaded_from_anywhere(hostile: Page) -> None:
    for tag, attributes in hostile.elements:
        assert tag not in ("link", "iframe", "img", "object", "embed", "base", "form", "use", "image")
        assert not {"src", "href", "srcset", "action", "xlink:href"} & set(attributes)
        assert not [name for name in attributes if name.startswith("on")]
    (policy,) = [value for value in hostile.attribute("meta", "content") if value and "default-src" in value]
    assert "default-src 'none'" in policy
    assert "http" not in policy
    (script,) = hostile.scripts
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"'sha256-{digest}'" in policy
    assert script.replace("http://www.w3.org/2000/svg", "").count("http") == 0
    assert "innerHTML" not in script
    assert "@import" not in hostile.html
    assert "url(http" not in hostile.html


def test_every_chart_is_an_image_with_a_title(hostile: Page) -> None:
    for chart in hostile.charts.values():
        assert chart.root.get("role") == "img"
        assert chart.title
        named = (chart.root.get("aria-labelledby") or "").split()
        ids = {node.get("id"): node.text for node in chart.root}
        assert all(ids[name] for name in named)


def test_the_ids_of_a_page_are_unique(hostile: Page) -> None:
    ids = [attributes["id"] for _, attributes in hostile.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_the_same_journal_gives_the_same_page() -> None:
    assert journal_page(eventful(), "clicks") == journal_page(eventful(), "clicks")


def test_jinja_is_loaded_late() -> None:
    code = "import sys, rheostat.report.journal_page; print([m for m in ('jinja2',) if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
