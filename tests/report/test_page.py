from __future__ import annotations

import base64
import hashlib
import json
import math
import subprocess
import sys
from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Any

import pytest

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
from rheostat.lab.experiment.oracle import make_oracle
from rheostat.lab.experiment.page import comparison_page
from rheostat.lab.experiment.simulated import Simulated
from rheostat.lab.experiment.trial import Trial
from rheostat.lab.jobs import job
from rheostat.policy.ds2 import DS2
from rheostat.policy.static import Static
from rheostat.report.journal_page import journal_page

EVIL = "</script><img src=x onerror=alert(1)>%{y}&amp;<a href='https://evil.example'>"
VOID = {"meta", "img", "br", "link", "hr", "input"}


Compared = Comparison[Plant]


class Page(HTMLParser):
    """A page taken apart: its elements, its text, its tables and its figures."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.scripts: list[str] = []
        self.figures: dict[str, Any] = {}
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
            attributes = self.elements[-1][1]
            if "data-plot" in attributes:
                self.figures[str(attributes["data-plot"])] = json.loads(data)
            else:
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


def traces(figure: Any, name: str) -> list[Any]:
    return [trace for trace in figure["data"] if trace["name"] == name]


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
    # 4 slots for one minute, 6 for three; nobody saw the blind minute.
    assert "1.32k slot-seconds" in page.text
    assert "60 s over the SLO cannot be told of 60 s" in page.text
    assert "5 s worst lag" in page.text


def test_the_journal_page_lists_every_decision_that_asked_for_a_change() -> None:
    page = Page(journal_page(eventful(), "clicks"))
    cut, stopped, last = page.row("0:01:00"), page.row("0:02:00"), page.row("0:05:00")
    assert cut[2:] == [
        "under-provisioned",
        "too little",
        "asked count 4 → 9 got count 4 → 6",
        "step_size: cut: too little",
        "throughput ≥ 1.9k/s, while load ≤ 2k/s",
        "kept as expected, too little",
    ]
    assert stopped[3:6] == ["too much", "asked count 6 → 4 got nothing", "cool_down: shrinking waits 60 s more"]
    assert last[2:5] == ["over-provisioned", "shrink", "count 6 → 4"]


def test_the_journal_page_lists_changes_also_the_unfinished_one() -> None:
    page = Page(journal_page(eventful(), "clicks"))
    changes = [row for row in page.rows if row[1] in ("0@60", "4@300")]
    assert changes[0] == ["0:01:00", "0@60", "count 4 → 6", "stop too little", "done", "60 s", "21 s"]
    assert changes[1][4:] == ["open", "–", "–"]  # noqa: RUF001
    # Its shade lasts to the end of the page's time, 300 s = 300 on an axis in seconds.
    (shade,) = [s for s in page.figures["plot-job"]["layout"]["shapes"] if s["name"] == "change under way"]
    assert shade["path"].startswith("M 60,0 L 120,0")
    assert "M 300,0" in shade["path"]


def test_missing_data_are_gaps() -> None:
    figure = Page(journal_page(eventful(), "clicks")).figures["plot-job"]
    (load,), (tasks,) = traces(figure, "load (arriving)"), traces(figure, "count")
    assert load["x"] == [60, 120, 180, 240, 300]
    assert load["y"] == [2000, 2000, None, 2000, 2000]
    assert tasks["y"] == [4, 6, None, 6, 6]


def test_a_lone_point_between_two_gaps_is_drawn_as_a_dot() -> None:
    blind = [Observation.blind(at, "blind") for at in (120.0, 240.0)]
    made = journal([window(60, 4), HOLD], [blind[0], HOLD], [window(180, 4), HOLD], [blind[1], HOLD])
    (load,) = traces(Page(journal_page(made, "clicks")).figures["plot-job"], "load (arriving)")
    assert load["mode"] == "lines+markers"
    assert load["marker"]["size"] == [4, 0, 4, 0]


def test_a_window_that_is_shown_again_is_a_gap() -> None:
    again = Observation(120.0, 0.0, 60.0, Allocation({"count": 4}), None, sources=window(60, 4).sources)
    made = journal([window(60, 4), HOLD], [again, HOLD], [window(180, 4), HOLD])
    (load,) = traces(Page(journal_page(made, "clicks")).figures["plot-job"], "load (arriving)")
    assert load["y"] == [2000, None, 2000]


def test_the_time_without_a_controller_is_a_gap_and_costs_nothing() -> None:
    made = journal([window(60, 4), HOLD], [window(120, 4), HOLD])
    lease = made.acquire("clicks", "test", 1e9)
    made.append(lease, 2, [run(at_s=900.0, policy="static", slo=SLO())])
    made.append(lease, 2, [window(960, 4), HOLD])
    page = Page(journal_page(made, "clicks"))
    (load,) = traces(page.figures["plot-job"], "load (arriving)")
    assert load["y"] == [2000, 2000, None, 2000]
    assert "720 slot-seconds" in page.text
    assert "2 starts of a controller" in page.text
    assert "until 0:15:00 ds2" in page.text


def test_markers_carry_reason_sentence_evidence_and_guards() -> None:
    figure = Page(journal_page(eventful(), "clicks")).figures["plot-job"]
    texts = [text for trace in figure["data"] for text in trace.get("text", ())]
    assert len(texts) == 3
    (told,) = [text for text in texts if "step 0" in text]
    for part in ("under-provisioned", "too little", "count.need 5.5", "guard step_size: cut", "judged kept"):
        assert part in told
    symbols = {s for t in figure["data"] if t.get("text") for s in t["marker"]["symbol"]}
    assert symbols == {"triangle-up-open", "x-thin", "triangle-down"}


def test_dates_are_used_where_the_clock_counts_from_1970() -> None:
    start = 1_780_000_000.0
    steps: list[list[Record]] = [[window(start + 60 * k, 4), HOLD] for k in range(3)]
    made = journal(*steps, first=run(at_s=start))
    page = Page(journal_page(made, "clicks"))
    assert page.figures["plot-job"]["layout"]["xaxis"]["type"] == "date"
    assert traces(page.figures["plot-job"], "count")[0]["x"][0] == start * 1000
    assert "2026-05-28 20:26:40" in page.text


def test_a_job_without_observations_says_so() -> None:
    page = Page(journal_page(journal(), "clicks"))
    assert "no observations of this job" in page.text
    assert page.figures == {}
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
    html = journal_page(journal(*steps), "clicks")
    page = Page(html)
    figure = page.figures["plot-job"]
    assert all(len(trace["x"]) <= 2000 for trace in figure["data"])
    latency = next(t for t in figure["data"] if t["name"] == "99 %")
    assert max(latency["y"]) == 77.0
    assert "The newest 1000 of 2000" in page.text
    assert "1000 of 2000 decisions have a marker" in page.text
    assert len(html) - sum(map(len, page.scripts)) < 3e6


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
        "parameters from ContTune Tables 3",
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
        told = compared_page.row(row.policy)
        assert told[1] == "2"
        assert told[2] == f"{row.reconfigurations:.4g}"
        assert told[4] == f"{row.slot_seconds_over_oracle:.3f}"
        assert told[5] == f"{row.slo_seconds_over:.5g}"
        marked = [k for k, look in enumerate(compared_page.looks[compared_page.rows.index(told)]) if "best" in look]
        values = list(written.values())
        rivals = [list(other.values()) for other in every]
        assert marked == [k for k in range(2, 9) if values[k] == min(other[k] for other in rivals)]


def test_the_oracle_that_was_not_asked_for_is_only_the_yardstick(compared_page: Page) -> None:
    assert "ran along only as the yardstick" in compared_page.text
    assert not [row for row in compared_page.rows if row[0].startswith("oracle")]
    assert traces(compared_page.figures["plot-timeline"], "oracle")


def test_the_oracle_that_was_asked_for_has_a_row_but_is_never_best() -> None:
    html = comparison_page(compared("oracle", "static", "ds2", seeds=(0,), slo=SLO()))
    page = Page(html)
    assert "only as the yardstick" not in page.text
    assert "objectives nothing about latency or lag" in page.text
    assert page.row("oracle")[0] == "oracle the yardstick: knows load and capacities"
    assert page.row("static")[5] == "–"  # noqa: RUF001
    line = html[html.index('<td class="policy">oracle') :]
    assert "best" not in line[: line.index("</tr>")]


def test_a_policy_has_one_colour_everywhere(compared_page: Page) -> None:
    seen: dict[str, set[str]] = {}
    for figure in compared_page.figures.values():
        for trace in figure["data"]:
            colour = trace.get("line", {}).get("color") or trace["marker"]["color"]
            seen.setdefault(trace["name"], set()).add(colour)
    policies = {name: colours for name, colours in seen.items() if name not in ("SLO", "load")}
    assert len(policies) == 4
    assert all(len(colours) == 1 for colours in policies.values())
    assert len(set().union(*policies.values())) == 4


def test_the_cost_figure_has_a_point_per_policy_and_one_per_seed(comparison: Compared, compared_page: Page) -> None:
    figure = compared_page.figures["plot-cost"]
    (row,) = [row for row in comparison.rows if row.policy == "static"]
    seeds, mean = traces(figure, "static")
    assert len(seeds["x"]) == 2
    assert mean["x"] == [pytest.approx(row.slot_seconds_over_oracle)]
    assert mean["y"] == [pytest.approx(row.slo_seconds_over)]


def test_the_timeline_shows_the_first_seed(comparison: Compared, compared_page: Page) -> None:
    figure = compared_page.figures["plot-timeline"]
    (load,) = traces(figure, "load")
    assert load["y"][0] == pytest.approx(comparison.run("ds2", 3).trace["load_per_s"][0] / 100e3)
    assert figure["layout"]["yaxis4"]["type"] == "log"
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
    assert len(hostile.scripts) == 2
    own = {"<b>", "</b>", "<br>", "<extra>", "</extra>"}
    for figure in hostile.figures.values():
        texts = [t["name"] for t in figure["data"]] + [x for t in figure["data"] for x in t.get("text", ())]
        assert any("&lt;/script&gt;&lt;img" in text for text in texts)
        for text in texts:
            for ours in own:
                text = text.replace(ours, "")
            assert "<" not in text
        # A user's text inside a template would be filled in by plotly.
        assert not any("evil" in trace.get("hovertemplate", "") for trace in figure["data"])


def test_nothing_is_loaded_from_anywhere(hostile: Page) -> None:
    for tag, attributes in hostile.elements:
        assert tag not in ("link", "iframe", "img", "object", "embed", "base", "form")
        assert not {"src", "href", "srcset", "action"} & set(attributes)
    (policy,) = [value for value in hostile.attribute("meta", "content") if value and "default-src" in value]
    assert "default-src 'none'" in policy
    assert "http" not in policy
    for script in hostile.scripts:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    plots = hostile.scripts[1]
    assert "http" not in plots
    assert "showSendToCloud: false" in plots


def test_the_figures_are_valid_for_plotly(hostile: Page) -> None:
    from plotly.graph_objects import Figure

    assert hostile.figures
    for figure in hostile.figures.values():
        Figure(figure, skip_invalid=False)


def test_the_same_journal_gives_the_same_page() -> None:
    assert journal_page(eventful(), "clicks") == journal_page(eventful(), "clicks")


def test_plotly_and_jinja_are_loaded_late() -> None:
    code = "import sys, rheostat.report; print([m for m in ('plotly', 'jinja2') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
