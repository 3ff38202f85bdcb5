"""An open-loop load: every row of the schedule once, in order, with the time at which it was due."""

import json
import time
from pathlib import Path

import pytest
from kafka_world import new_topic, records

from rheostat.engine.testbed.loads import Constant, Steps
from rheostat.engine.testbed.schedule import Schedule
from rheostat.errors import EngineError, InvalidValue
from rheostat.kafka.broker import APPEND_TIME, Broker
from rheostat.kafka.load import start_load

LONG_AGO_S = 1_600_000_000.25
STEPS = Schedule(Steps((1.0, 3.0, 0.0, 0.7), hold_s=2.0), 333.0, seconds=8, step_s=2)


def test_every_row_once_in_order_with_its_due_time(broker: Broker) -> None:
    topic = new_topic(broker, 3)
    with start_load(broker.bootstrap, topic, STEPS, start_s=LONG_AGO_S, first_s=1, last_s=11) as load:
        sent = load.wait()
    assert (sent.start_s, sent.first) == (LONG_AGO_S, STEPS.due(1))
    assert sent.count == sent.delivered == STEPS.due(11) - STEPS.due(1)
    found = records(broker, topic)
    assert len(found) == sent.count
    for part in range(3):
        numbers = [int(record.value) for record in found if record.partition == part]
        assert numbers == [n for n in range(STEPS.due(1), STEPS.due(11)) if n % 3 == part]
    at_ms = {int(record.value): record.at_ms for record in found}
    for second in range(1, 11):
        begin_ms = LONG_AGO_S * 1000 + second * 1000
        times = [at_ms[number] for number in range(STEPS.due(second), STEPS.due(second + 1))]
        # Evenly over its second.
        assert times == [int(begin_ms + nth * 1000 / len(times)) for nth in range(len(times))]


def test_values_are_a_text_with_the_number_and_acknowledgements_are_counted(broker: Broker, tmp_path: Path) -> None:
    topic, counts = new_topic(broker, 2), tmp_path / "acknowledged"
    value = '{"id": %(number)d, "at": %(at_ms)d}'
    began_s = time.time()
    with start_load(broker.bootstrap, topic, STEPS, first_s=1, last_s=3, value=value, acknowledged=counts) as load:
        sent = load.wait()
    for record in records(broker, topic):
        assert json.loads(record.value)["at"] == record.at_ms
    lines = [(float(at_s), int(count)) for at_s, count in (line.split() for line in counts.read_text().splitlines())]
    assert lines == sorted(lines)
    assert lines[-1][1] == STEPS.due(1) + sent.delivered == STEPS.due(3)
    assert began_s <= lines[0][0] <= lines[-1][0] <= time.time()
    assert len(lines) > 10  # all along, not only at the end


def test_it_goes_on_until_it_is_stopped_and_says_what_it_sent(broker: Broker) -> None:
    topic = new_topic(broker, 2)
    with start_load(broker.bootstrap, topic, Schedule(Constant(1.0), 2000.0, 60)) as load:
        while load.sent.count < 1000:
            time.sleep(0.02)
        sent = load.stop()
    assert sent.first == 0
    assert sent.count == sent.delivered >= 1000
    assert sent.worst_late_ms >= 0.0
    assert sorted(int(record.value) for record in records(broker, topic)) == list(range(sent.count))


def test_a_broker_that_goes_away_costs_time_but_no_record(broker: Broker) -> None:
    topic = new_topic(broker, 2)
    with start_load(broker.bootstrap, topic, Schedule(Constant(1.0), 1000.0, 60)) as load:
        while load.sent.delivered < 500:
            time.sleep(0.02)
        broker.kill()
        broker.start()
        sent = load.stop()
    assert sent.count == sent.delivered
    found = records(broker, topic)
    for part in range(2):
        assert [int(r.value) for r in found if r.partition == part] == list(range(part, sent.count, 2))


def test_what_cannot_be_played_is_told(broker: Broker) -> None:
    with pytest.raises(EngineError, match="has no topic 'misspelt'"):
        start_load(broker.bootstrap, "misspelt", STEPS)
    with pytest.raises(InvalidValue, match="last_s"):
        start_load(broker.bootstrap, "misspelt", STEPS, first_s=5, last_s=4)
    topic = new_topic(broker, 1, APPEND_TIME)
    with (
        start_load(broker.bootstrap, topic, STEPS, start_s=LONG_AGO_S, last_s=2) as load,
        pytest.raises(EngineError, match=r"message\.timestamp\.type=CreateTime"),
    ):
        load.wait()
