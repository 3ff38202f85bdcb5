"""Throughput functions, flows under limits, slopes, and the regression from windows."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rheostat.errors import InvalidValue
from rheostat.job.frozen import from_json, to_json
from rheostat.job.graph import Edge, Graph
from rheostat.policy.dragster.regression import MAX_ROWS, FlowRows, fit_function, fit_graph, fold_flows
from rheostat.policy.dragster.throughput import Dataflow, EdgeFunction
from rheostat.testing.situations import diamond, window, word_count

WORDS = word_count().graph
DIAMOND = diamond().graph
FORK = Graph(
    ("in", "work", "left", "right", "out"),
    (
        Edge("in", "work"),
        Edge("work", "left", 0.25),
        Edge("work", "right", 0.75),
        Edge("left", "out"),
        Edge("right", "out"),
    ),
    ("in",),
)  # fmt: skip


class TestFunctions:
    """Eq 2a to 2c."""

    def test_linear_is_an_inner_product(self) -> None:
        function = EdgeFunction((2.0, 3.0))
        assert function.rate_per_s((10.0, 1.0)) == 23.0
        assert function.slopes((10.0, 1.0)) == (2.0, 3.0)

    def test_min_follows_its_scarcest_input_and_shares_a_tie(self) -> None:
        function = EdgeFunction((2.0, 1.0), "min")
        assert function.rate_per_s((10.0, 15.0)) == 15.0
        assert function.slopes((10.0, 15.0)) == (0.0, 1.0)
        assert function.slopes((5.0, 10.0)) == (1.0, 0.5)

    def test_tanh_bends(self) -> None:
        function = EdgeFunction((0.01,), "tanh", 100.0)
        assert function.rate_per_s((50.0,)) == pytest.approx(100.0 * math.tanh(0.5))
        assert function.slopes((0.0,)) == (1.0,)
        assert function.slopes((1000.0,))[0] < 1e-6

    def test_one_weight_counts_for_all_inputs_and_two_do_not_fit_three(self) -> None:
        assert EdgeFunction((2.0,)).rate_per_s((1.0, 1.0, 1.0)) == 6.0
        with pytest.raises(InvalidValue, match="2 weights for 3 inputs"):
            EdgeFunction((1.0, 1.0)).rate_per_s((1.0, 1.0, 1.0))

    @pytest.mark.parametrize("wrong", [{"weights": ()}, {"weights": (-1.0,)}, {"weights": (math.nan,)}, {"share": 2.0}])
    def test_impossible_functions_are_refused(self, wrong: dict[str, object]) -> None:
        with pytest.raises(InvalidValue):
            EdgeFunction(**wrong)  # type: ignore[arg-type]


class TestFlow:
    """Eq 4 and the quantities that follow from it."""

    def test_without_limits_the_whole_load_passes(self) -> None:
        flow = Dataflow(WORDS, {"lines": 100.0})
        assert flow.full.throughput_per_s == 500.0
        assert flow.sufficient == {"lines": 100.0, "split": 500.0, "count": 500.0}
        assert flow.per_record_in == {"lines": 1.0, "split": 5.0, "count": 1.0}

    def test_a_capacity_limits_everything_downstream(self) -> None:
        flow = Dataflow(WORDS, {"lines": 100.0}).flow({"split": 200.0, "count": 300.0})
        assert flow.carried["split", "count"] == 200.0
        assert flow.throughput_per_s == 200.0

    def test_capacity_is_split_like_the_output_unless_shares_are_configured(self) -> None:
        flow = Dataflow(FORK, {"in": 100.0})
        assert flow.shares["work", "left"] == 0.25
        assert flow.sufficient["work"] == pytest.approx(100.0)
        even = {("work", side): EdgeFunction((k,), share=0.5) for side, k in (("left", 0.25), ("right", 0.75))}
        assert Dataflow(FORK, {"in": 100.0}, even).sufficient["work"] == pytest.approx(150.0)

    def test_sufficient_capacities_are_the_smallest_that_lose_nothing(self) -> None:
        flow = Dataflow(DIAMOND, {"clicks": 80.0, "views": 40.0})
        enough = dict(flow.sufficient)
        assert flow.flow(enough).throughput_per_s == pytest.approx(flow.full.throughput_per_s)
        for name in enough:
            less = {**enough, name: 0.99 * enough[name]}
            assert flow.flow(less).throughput_per_s < flow.full.throughput_per_s

    def test_the_lack_is_relative_to_the_arrivals(self) -> None:
        flow = Dataflow(WORDS, {"lines": 100.0})
        assert flow.lacking({"split": 200.0, "count": 300.0}) == {"split": 300.0, "count": -100.0}

    def test_an_unknown_edge_is_named(self) -> None:
        with pytest.raises(InvalidValue, match=r"no edge 'split->cuont'.*split->count"):
            Dataflow(WORDS, {"lines": 1.0}, {("split", "cuont"): EdgeFunction()})

    def test_without_load_nothing_is_divided_by_zero(self) -> None:
        flow = Dataflow(DIAMOND, {"clicks": 0.0, "views": 0.0})
        assert flow.full.throughput_per_s == 0.0
        assert set(flow.per_record_in.values()) == {1.0}
        assert all(math.isfinite(v) for v in flow.slopes(dict.fromkeys(DIAMOND.operators, 1.0), {}).values())


CAPACITIES = st.fixed_dictionaries({name: st.floats(1.0, 300.0) for name in DIAMOND.operators})
MULTIPLIERS = st.fixed_dictionaries({name: st.floats(0.0, 2.0) for name in DIAMOND.operators})
BENT = {
    ("clean", "enrich"): EdgeFunction((0.005, 0.002), "tanh", 150.0),
    ("clean", "count"): EdgeFunction((0.5, 0.25), "min"),
}


@settings(max_examples=100)
@given(CAPACITIES, MULTIPLIERS)
def test_slopes_are_those_of_finite_differences(capacity: Mapping[str, float], multiplier: Mapping[str, float]) -> None:
    flow = Dataflow(DIAMOND, {"clicks": 100.0, "views": 70.0}, BENT)

    def lagrangian(at: Mapping[str, float]) -> float:
        return flow.flow(at).throughput_per_s - sum(multiplier[n] * l for n, l in flow.lacking(at).items())  # noqa: E741

    slopes = flow.slopes(capacity, multiplier)
    for name, slope in slopes.items():
        step = 1e-5 * capacity[name]
        up = (lagrangian({**capacity, name: capacity[name] + step}) - lagrangian(capacity)) / step
        down = (lagrangian(capacity) - lagrangian({**capacity, name: capacity[name] - step})) / step
        # At a kink both sides differ; elsewhere all three agree.
        if abs(up - down) < 1e-3:
            assert slope == pytest.approx(up, abs=2e-3)


class TestLearning:
    """Online regression from windows."""

    def test_windows_become_rows_and_rows_a_function(self) -> None:
        rows = FlowRows()
        for load in (100.0, 200.0, 150.0):
            rows = fold_flows(rows, window(word_count(), load, 40, 1e3))
        fitted = fit_graph(WORDS, rows)
        assert fitted["split", "count"].function.weights == pytest.approx((5.0,))
        assert fitted["split", "count"].residual < 1e-9
        assert from_json(FlowRows, to_json(rows)) == rows

    def test_only_the_newest_rows_are_retained_and_unusable_windows_add_none(self) -> None:
        from dataclasses import replace

        rows, observed = FlowRows(), window(word_count(), 100.0, 4, 1e3)
        for _ in range(MAX_ROWS + 5):
            rows = fold_flows(rows, observed)
        assert len(rows.edges["split->count"]) == MAX_ROWS
        assert fold_flows(rows, replace(observed, problem="torn")) is rows

    def test_two_inputs_get_their_own_weights(self) -> None:
        rng = np.random.default_rng(1)
        x = rng.uniform(10.0, 100.0, (30, 2))
        fitted = fit_function(x, x @ [2.0, 0.5] * np.exp(0.01 * rng.standard_normal(30)))
        assert fitted.function.form == "linear"
        assert fitted.function.weights == pytest.approx((2.0, 0.5), rel=0.05)

    def test_inputs_that_always_move_together_weigh_the_same(self) -> None:
        x = np.outer(np.arange(1.0, 9.0), [1.0, 1.0])
        assert fit_function(x, 3.0 * x[:, 0]).function.weights == pytest.approx((1.5, 1.5), rel=1e-6)

    @pytest.mark.parametrize("truth", [EdgeFunction((0.02,), "tanh", 500.0), EdgeFunction((2.0, 1.0), "min")])
    def test_a_curved_function_is_recognised(self, truth: EdgeFunction) -> None:
        rng = np.random.default_rng(2)
        x = rng.uniform(5.0, 100.0, (MAX_ROWS, len(truth.weights)))
        y = np.array([truth.rate_per_s(row) for row in x]) * np.exp(0.01 * rng.standard_normal(MAX_ROWS))
        fitted = fit_function(x, y)
        assert fitted.function.form == truth.form
        guess = np.array([fitted.function.rate_per_s(row) for row in x])
        assert np.abs(guess / y - 1).max() < 0.1

    def test_rows_without_a_fit_give_the_newest_ratio(self) -> None:
        x = np.full((12, 1), 100.0)
        y = np.array([10.0, 900.0] * 6)
        fitted = fit_function(x, y)
        assert not fitted.fits
        assert fitted.residual > 0.5
        assert fitted.function == EdgeFunction((9.0,))


@settings(max_examples=150)
@given(st.lists(st.tuples(st.floats(1e-6, 1e9), st.floats(1e-6, 1e9), st.floats(1e-6, 1e9)), min_size=1, max_size=32))
def test_any_rows_give_finite_weights(rows: list[tuple[float, float, float]]) -> None:
    table = np.array(rows)
    fitted = fit_function(table[:, :2], table[:, 2])
    assert all(math.isfinite(weight) and weight >= 0 for weight in fitted.function.weights)
    assert math.isfinite(fitted.residual)
