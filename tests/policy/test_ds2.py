"""DS2: decisions, several windows, its published cases and properties."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from project import ROOT

from rheostat.errors import InvalidValue
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Reason
from rheostat.job.frozen import from_json, to_json
from rheostat.job.graph import Edge, Graph, JobSpec, Pinned, Tunable
from rheostat.job.observation import EdgeReading, Observation, OperatorReading, SourceReading
from rheostat.job.slo import SLO, Bounds
from rheostat.policy.ds2 import DS2
from rheostat.ports import Situation
from rheostat.testing.situations import diamond, limits_of, read, situation, window, word_count

WORDS = word_count()
RATES = {"lines": 1e6, "split": 100.0, "count": 250.0}
EAGER = DS2(ignore_single_decrease=False)


def at(load_per_s: float, tasks: int | dict[str, int] = 4, **rest: Any) -> Situation[None]:
    return situation(WORDS, window(WORDS, load_per_s, tasks, RATES), None, **rest)


def asked(decision: Decision) -> dict[str, int] | None:
    return None if decision.target is None else dict(decision.target.tasks)


@pytest.mark.parametrize(
    ("load_per_s", "tasks", "target", "reason"),
    [
        pytest.param(400.0, {"split": 4, "count": 8}, None, Reason.STEADY, id="right size"),
        pytest.param(401.0, {"split": 4, "count": 8}, (5, 9), Reason.UNDER_PROVISIONED, id="a little too small"),
        pytest.param(1000.0, {"split": 1, "count": 1}, (10, 20), Reason.UNDER_PROVISIONED, id="tenfold in one step"),
        pytest.param(100.0, {"split": 4, "count": 8}, (1, 2), Reason.OVER_PROVISIONED, id="too big"),
        pytest.param(300.0, {"split": 4, "count": 2}, (3, 6), Reason.MIXED, id="one too big, one too small"),
        pytest.param(350.0, {"split": 5, "count": 8}, None, Reason.STEADY, id="single decreases are ignored"),
        pytest.param(350.0, {"split": 6, "count": 8}, (4, 7), Reason.OVER_PROVISIONED, id="a decrease by two counts"),
        pytest.param(0.0, {"split": 4, "count": 8}, (1, 1), Reason.OVER_PROVISIONED, id="no load: the minimum"),
        pytest.param(1e9, {"split": 4, "count": 8}, (100, 100), Reason.UNDER_PROVISIONED, id="up to the bounds"),
    ],
)
def test_decisions(load_per_s: float, tasks: dict[str, int], target: tuple[int, int] | None, reason: Reason) -> None:
    decision = DS2().decide(at(load_per_s, tasks))
    assert asked(decision) == (None if target is None else dict(zip(("split", "count"), target, strict=True)))
    assert decision.reason is reason


def test_single_decreases_are_made_if_configured() -> None:
    assert asked(EAGER.decide(at(350.0, {"split": 5, "count": 8}))) == {"split": 4, "count": 7}


def test_a_single_step_is_as_large_as_the_quantum() -> None:
    spec = word_count(quantum=4)
    observation = window(spec, 350.0, 8, RATES)
    assert asked(DS2().decide(situation(spec, observation, None))) is None
    assert asked(EAGER.decide(situation(spec, observation, None))) == {"split": 4, "count": 8}


@pytest.mark.parametrize(
    ("policy", "slo", "target"),
    [
        pytest.param(DS2(), SLO(headroom=0.25), (13, 25), id="the SLO's headroom"),
        pytest.param(DS2(scaling_factor=0.5), SLO(), (15, 30), id="its own factor"),
        pytest.param(DS2(), SLO(), (10, 20), id="neither"),
    ],
)
def test_over_provisioning(policy: DS2, slo: SLO, target: tuple[int, int]) -> None:
    decision = policy.decide(at(1000.0, slo=slo))
    assert asked(decision) == dict(zip(("split", "count"), target, strict=True))


def test_only_the_operators_own_count_is_rounded_not_the_rate_it_passes_on() -> None:
    # 4.01 tasks of split become 5, yet count gets the words of 4.01.
    assert asked(DS2().decide(at(401.0, {"split": 1, "count": 1}))) == {"split": 5, "count": 9}


@pytest.mark.parametrize(
    ("load_per_s", "expected"),
    [
        pytest.param(1000.0, {"split": 10, "count": 4}, id="demand"),
        pytest.param(0.0, {"split": 1, "count": 1}, id="no demand"),
    ],
)
def test_an_operator_that_processed_nothing_keeps_its_tasks_while_it_has_demand(
    load_per_s: float, expected: dict[str, int]
) -> None:
    observation = read(window(WORDS, load_per_s, 4, RATES), "count", records_in_per_s=0.0, true_rate_per_s=None)
    assert asked(DS2().decide(situation(WORDS, observation, None))) == expected


def test_it_holds_at_its_limits() -> None:
    spec = word_count(Bounds(1, 4))
    decision = DS2().decide(situation(spec, window(spec, 1000.0, 4, RATES), None))
    assert decision.target is None
    assert decision.reason is Reason.UNDER_PROVISIONED
    assert "the limits allow no more" in decision.sentence


def test_it_expects_the_share_of_the_load_that_the_limits_allow() -> None:
    enough = DS2().decide(at(1000.0)).expects
    assert enough.load_per_s == 1000.0
    assert enough.throughput_per_s is not None
    assert enough.throughput_per_s.low == pytest.approx(990.0)
    cut = DS2().decide(at(1000.0, limits=limits_of(WORDS, Bounds(1, 15)))).expects
    assert cut.throughput_per_s is not None
    assert cut.throughput_per_s.low == pytest.approx(495.0)


class TestSeveralWindows:
    """Activation and warm-up: the memo of one decision enters the next."""

    def run(self, policy: DS2, loads: list[float], changed_at_s: float | None = None) -> Iterator[Decision]:
        memo: Any = {}
        for load in loads:
            decision = policy.decide(at(load, memo=memo, changed_at_s=changed_at_s))
            memo = from_json(Decision, to_json(decision)).memo
            yield decision

    def test_waits_for_the_activation_time_then_takes_the_median(self) -> None:
        decisions = list(self.run(DS2(activation_windows=3), [1000.0, 5000.0, 1100.0]))
        assert [d.reason for d in decisions] == [Reason.WAITING, Reason.WAITING, Reason.UNDER_PROVISIONED]
        assert asked(decisions[-1]) == {"split": 11, "count": 22}

    def test_of_two_windows_the_larger_counts(self) -> None:
        assert asked(list(self.run(DS2(activation_windows=2), [1000.0, 1100.0]))[-1]) == {"split": 11, "count": 22}

    def test_the_windows_slide_while_nothing_changes(self) -> None:
        decisions = list(self.run(DS2(activation_windows=2), [400.0, 400.0, 1000.0, 800.0]))
        assert asked(decisions[2]) == {"split": 10, "count": 20}
        assert asked(decisions[3]) == {"split": 10, "count": 20}

    def test_a_change_starts_the_count_again(self) -> None:
        policy = DS2(activation_windows=2)
        first = policy.decide(at(1000.0))
        assert policy.decide(at(1000.0, memo=first.memo, changed_at_s=90.0)).reason is Reason.WAITING

    def test_windows_after_a_change_are_ignored_while_it_warms_up(self) -> None:
        decisions = list(self.run(DS2(warm_up_windows=2), [1000.0] * 3, changed_at_s=0.0))
        assert [d.reason for d in decisions] == [Reason.WAITING, Reason.WAITING, Reason.UNDER_PROVISIONED]


class TestTargetRateRatio:
    """The model needs no growth, yet the source falls behind: no operator's metric shows the cost."""

    # Without edges the graph's selectivities apply: the source's shortfall must not look like a selectivity.
    FALLS_BEHIND = replace(
        read(window(WORDS, 400.0, {"split": 4, "count": 8}, RATES), "lines", records_in_per_s=320.0), edges=()
    )

    def test_everything_grows_by_the_ratio_once_nothing_else_would(self) -> None:
        decision = DS2(target_rate_ratio=1.1).decide(situation(WORDS, self.FALLS_BEHIND, None))
        assert asked(decision) == {"split": 5, "count": 10}  # 400 / 320 = 1.25

    @pytest.mark.parametrize(
        ("policy", "observation"),
        [
            pytest.param(DS2(), FALLS_BEHIND, id="off"),
            pytest.param(DS2(target_rate_ratio=1.3), FALLS_BEHIND, id="below the threshold"),
            pytest.param(
                DS2(target_rate_ratio=1.1), read(FALLS_BEHIND, "lines", records_in_per_s=0.0), id="nothing achieved"
            ),
            pytest.param(
                DS2(target_rate_ratio=1.1), read(FALLS_BEHIND, "lines", records_in_per_s=None), id="not measured"
            ),
        ],
    )
    def test_otherwise_nothing_happens(self, policy: DS2, observation: Observation) -> None:
        assert policy.decide(situation(WORDS, observation, None)).target is None

    def test_not_while_an_operator_still_grows(self) -> None:
        observation = read(window(WORDS, 500.0, {"split": 4, "count": 8}, RATES), "lines", records_in_per_s=320.0)
        observation = replace(observation, edges=())
        decision = DS2(target_rate_ratio=1.1).decide(situation(WORDS, observation, None))
        assert asked(decision) == {"split": 5, "count": 10}


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("activation_windows", 0),
        ("activation_windows", 1.5),
        ("activation_windows", True),
        ("warm_up_windows", -1),
        ("target_rate_ratio", 0.5),
        ("target_rate_ratio", math.nan),
        ("scaling_factor", -0.1),
        ("scaling_factor", math.inf),
    ],
)
def test_impossible_options_are_refused_by_name_and_value(option: str, value: Any) -> None:
    with pytest.raises(InvalidValue, match=rf"{option} of policy 'ds2'.*{value}"):
        DS2(**{option: value})


# DS2's own tests, and its recorded word count


def observed(
    sources: dict[str, float], operators: dict[str, tuple[int, float, float]], chain: tuple[str, ...]
) -> Situation[None]:
    """Build a situation from DS2's rates: tasks, and true processing and output rate of all of them together."""
    links = [*((name, chain[0]) for name in sources), *pairwise(chain)]
    graph = Graph((*sources, *chain), tuple(Edge(*link) for link in links), tuple(sources))
    pinned = tuple(Pinned(name, 1, "DS2 does not scale sources") for name in sources)
    spec = JobSpec("ds2", graph, tuple(Tunable(name) for name in chain), pinned)
    running = Allocation({name: operators[name][0] for name in chain})
    readings = [OperatorReading(name, 1, records_in_per_s=rate) for name, rate in sources.items()]
    edges = [EdgeReading(name, chain[0], rate) for name, rate in sources.items()]
    for name, below in zip(chain, (*chain[1:], None), strict=True):
        tasks, processing, output = operators[name]
        # Half busy: it processes half of its capacity, in input and output.
        readings.append(OperatorReading(name, tasks, processing / 2, 0.5, processing / tasks))
        if below is not None:
            edges.append(EdgeReading(name, below, output / 2))
    observation = Observation(
        60.0,
        0.0,
        60.0,
        running,
        running,
        sources=tuple(SourceReading(name, rate) for name, rate in sources.items()),
        operators=tuple(readings),
        edges=tuple(edges),
    )
    return situation(spec, observation, None)


@pytest.mark.parametrize(
    ("sources", "op1", "op2", "expected"),
    [
        pytest.param([100.0], (50.0, 400.0), 100.0, (2, 8), id="one source, epoch 0"),
        pytest.param([200.0], (40.0, 700.0), 99.0, (5, 36), id="one source, epoch 1"),
        pytest.param([200.0], (10.0, 700.0), 201.0, (20, 70), id="one source, epoch 7"),
        pytest.param([100.0, 100.0], (50.0, 400.0), 100.0, (4, 16), id="two sources, epoch 0"),
        pytest.param([200.0, 200.0], (40.0, 700.0), 99.0, (10, 71), id="two sources, epoch 1"),
        pytest.param([200.0, 200.0], (10.0, 700.0), 201.0, (40, 140), id="two sources, epoch 7"),
    ],
)
def test_the_cases_of_ds2s_own_tests(
    sources: list[float], op1: tuple[float, float], op2: float, expected: tuple[int, int]
) -> None:
    named = {f"source{i}": rate for i, rate in enumerate(sources)}
    here = observed(named, {"op1": (1, *op1), "op2": (1, op2, 200.0)}, ("op1", "op2"))
    assert asked(DS2().decide(here)) == dict(zip(("op1", "op2"), expected, strict=True))


SPLITTER, COUNT = "Splitter FlatMap", "Count -> Latency Sink"


@pytest.fixture(scope="module")
def recorded() -> list[dict[str, list[tuple[float, float]]]]:
    """DS2's recorded Flink word count: per epoch and operator, true processing and output rate of every instance."""
    file = ROOT.parent / "shared" / "data" / "ds2" / "flink_rates.csv"
    if not file.exists():
        pytest.skip("DS2's recorded rates are missing: this test reads ../shared/data/ds2 beside the project")
    epochs: list[dict[str, list[tuple[float, float]]]] = []
    for row in csv.reader(file.read_text().splitlines()[1:]):
        if row[0].startswith("Source"):
            epochs.append({})
        epochs[-1].setdefault(row[0], []).append((float(row[4]), float(row[5])))
    return epochs


# On paper, epoch 1: one splitter does (122512.729 + 122613.652) / 2 = 122563.191 lines/s, of which every one gives
# (1244599.952 + 1246045.874) / 245126.381 = 10.16066 words; 109705.375 lines/s need 0.89509 splitters and give
# 1114679.4 words/s, which need 1114679.4 / 1845391.074 = 0.60403 counts.
# Epoch 2: 127272.234 lines/s and 10.16069 words; 116939.794 lines/s need 0.91881 and 0.71428.
@pytest.mark.parametrize(
    ("epoch", "times", "optimal", "expected"),
    [
        pytest.param(0, 1, (0.89509, 0.60403), (1, 1), id="epoch 1"),
        pytest.param(1, 1, (0.91881, 0.71428), (1, 1), id="epoch 2"),
        pytest.param(0, 10, (8.9509, 6.0403), (9, 7), id="epoch 1, ten times the load"),
        pytest.param(1, 10, (9.1881, 7.1428), (10, 8), id="epoch 2, ten times the load"),
    ],
)
def test_the_recorded_word_count(
    recorded: list[dict[str, list[tuple[float, float]]]],
    epoch: int,
    times: int,
    optimal: tuple[float, float],
    expected: tuple[int, int],
) -> None:
    rows = recorded[epoch]
    [(_, source_per_s)] = rows["Source: Custom Source"]
    totals = {
        name: (len(rows[name]), sum(p for p, _ in rows[name]), sum(o for _, o in rows[name]))
        for name in (SPLITTER, COUNT)
    }
    here = observed({"source": times * source_per_s}, totals, (SPLITTER, COUNT))
    decision = EAGER.decide(here)
    assert asked(decision) == {SPLITTER: expected[0], COUNT: expected[1]}
    computed = tuple(decision.evidence[f"{name}.optimal_tasks"] for name in (SPLITTER, COUNT))
    assert computed == pytest.approx(optimal, rel=1e-4)


def test_the_recorded_word_count_is_unchanged_by_the_published_controller(
    recorded: list[dict[str, list[tuple[float, float]]]],
) -> None:
    # Two splitters where one would do: a single decrease.
    rows = recorded[0]
    totals = {
        name: (len(rows[name]), sum(p for p, _ in rows[name]), sum(o for _, o in rows[name]))
        for name in (SPLITTER, COUNT)
    }
    here = observed({"source": rows["Source: Custom Source"][0][1]}, totals, (SPLITTER, COUNT))
    assert DS2().decide(here).reason is Reason.STEADY


# Properties

loads = st.floats(0, 1e7)
true_rates = st.fixed_dictionaries({name: st.floats(1e-3, 1e6) for name in diamond().graph.operators})
tasks = st.fixed_dictionaries({name: st.integers(1, 100) for name in diamond().graph.operators})


@given(loads, loads, st.floats(1, 10), true_rates, tasks)
def test_more_load_never_requests_fewer_tasks(
    clicks: float, views: float, times: float, rates: dict[str, float], running: dict[str, int]
) -> None:
    spec = diamond()

    def target(more: float) -> Allocation:
        observation = window(spec, {"clicks": clicks * more, "views": views * more}, running, rates)
        # The same true rates at any load: an idle operator would have none.
        for name, rate in rates.items():
            observation = read(observation, name, true_rate_per_s=rate)
        return EAGER.decide(situation(spec, observation, None)).target or Allocation(running)

    less, more = target(1.0), target(times)
    assert all(more.tasks[name] >= count for name, count in less.tasks.items())


@given(loads, true_rates, tasks, st.integers(1, 8), st.integers(8, 60), st.integers(6, 300))
def test_targets_respect_the_limits(
    load: float, rates: dict[str, float], running: dict[str, int], quantum: int, most: int, slots: int
) -> None:
    spec = diamond(Bounds(1, most), quantum)
    limits = limits_of(spec, Bounds(1, slots))
    decision = DS2().decide(situation(spec, window(spec, load, running, rates), None, limits=limits))
    assert from_json(Decision, to_json(decision)) == decision
    if decision.target is not None:
        assert all(count % quantum == 0 and count <= most for count in decision.target.tasks.values())
        assert decision.target.slots <= max(slots, 6 * quantum)


def test_right_after_a_change_the_rates_of_the_former_size_are_enough() -> None:
    tasks = {"split": 4, "count": 8}
    former = replace(window(WORDS, 800.0, {"split": 2, "count": 2}, RATES), running=Allocation(tasks), former=None)
    seen = replace(former, former=Allocation({"split": 2, "count": 2}))
    assert asked(DS2().decide(situation(WORDS, seen, None))) == {"split": 8, "count": 16}
    enough = replace(seen, sources=(replace(seen.sources[0], rate_per_s=400.0),))
    assert DS2().decide(situation(WORDS, enough, None)).reason is Reason.STEADY  # without the headroom of 20 %
    patient = DS2(activation_windows=2).decide(situation(WORDS, seen, None, memo={"windows": 1}))
    assert (patient.target, patient.reason, patient.memo) == (None, Reason.WAITING, {"windows": 1})
