"""The rows of the stages of a real-time batch."""

import math

import pytest

from rheostat.engine.batches.flow import Flow, PlanNode, flow_counters, left_s, queues, read_flow, records_inside

WORDS = (
    PlanNode("RealTimeStreamScan", 1),
    PlanNode("Project", None),
    PlanNode("Exchange", None),
    PlanNode("Generate", 2),
    PlanNode("ProjectAggregationBuffer", 3),
    PlanNode("Exchange", None),
    PlanNode("StatefulStreamlineAggregate", 4),
    PlanNode("ProjectAggregationBuffer", 5),
    PlanNode("WriteToDataSourceV2", 6),
)


def test_the_rows_into_a_stage_are_those_of_the_last_count_before_its_exchange() -> None:
    # The sink counts at the end of its tasks only, so the node before it shows what leaves.
    assert flow_counters(WORDS, 3) == (1, 1, 3, 5)


def test_a_keyed_stage_of_one_task_begins_with_its_state() -> None:
    together = (*WORDS[:5], *WORDS[6:])
    assert flow_counters(together, 3) == (1, 1, 3, 5)


def test_a_stage_with_state_before_another_exchange() -> None:
    path = (WORDS[0], WORDS[2], WORDS[6], PlanNode("Exchange", None), PlanNode("Filter", 7), WORDS[8])
    assert flow_counters(path, 3) == (1, 1, 4, 7)


@pytest.mark.parametrize("stages", [2, 5])
def test_a_plan_with_other_stages_counts_nothing(stages: int) -> None:
    assert flow_counters(WORDS, stages) == ()
    assert flow_counters((PlanNode("RealTimeStreamScan", None), *WORDS[1:]), 3) == ()


def test_counts_before_the_first_report() -> None:
    assert read_flow([]) is read_flow([None, None, None]) is None
    assert read_flow([100, 100, None, None]) == Flow((100.0, 100.0, 0.0), None)


def test_what_waits_in_front_of_a_stage_is_what_it_has_not_written() -> None:
    usual = Flow((1000.0, 1000.0, 3000.0), 1500.0)
    assert queues(Flow((100.0, 100.0, 240.0), 100.0), usual) == pytest.approx((0.0, 20.0, 40.0))
    assert records_inside(Flow((100.0, 100.0, 240.0), 100.0), usual) == pytest.approx(20.0 + 40.0 / 3)
    # Nothing is known of a stage that shows its output at the end only, or usually writes nothing.
    assert queues(Flow((100.0, 100.0, 300.0), None), usual) == pytest.approx((0.0, 0.0, 0.0))
    assert queues(Flow((100.0, 100.0, 300.0), 0.0), Flow((1000.0, 1000.0, 3000.0), 0.0)) == pytest.approx((0, 0, 0))


def test_the_rest_of_a_batch_follows_from_the_pace_of_its_rows() -> None:
    usual = Flow((100.0, 100.0, 300.0), 300.0)
    # 4 s of 300 lines; 400 are split, and their words are counted: 100 a second. Another 300 come.
    slow = Flow((1200.0, 1200.0, 1200.0), 1200.0)
    assert left_s(slow, usual, 300.0, 4.0, 5.0) == pytest.approx((800 + 300) / 100)
    assert left_s(slow, usual, 300.0, 8.0, 5.0) == pytest.approx(800 / 50)
    on_time = Flow((1200.0, 1200.0, 3600.0), 3600.0)
    assert left_s(on_time, usual, 300.0, 4.0, 5.0) == pytest.approx(1.0)
    assert left_s(Flow((50.0, 50.0, 0.0), 0.0), usual, 300.0, 1.0, 5.0) == math.inf
    assert left_s(Flow((0.0, 0.0, 0.0), None), usual, 0.0, 6.0, 5.0) == 0.0
