"""The truth of a run in real-time mode, by its output topic."""

from pathlib import Path

import pytest

from rheostat.kafka.output import Output
from rheostat.lab.sight.place import Place
from rheostat.lab.sight.realtime import right_slots, truth_of


def test_a_line_is_done_when_its_words_have_come_out_for_the_first_time(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.arrived.write_text("100.0 1\n101.0 3\n")
    first = [Output(f"w{word}", 1, 0, 100_000 + 500 * word) for word in range(6)]
    again = [Output("w0", 1, 0, 107_000)]  # an interrupted batch is repeated
    truth = truth_of(place, [*again, *first])
    assert truth.processed_s == pytest.approx([101.0, 102.5])
    assert (truth.backlog(100.5), truth.backlog(102.0), truth.backlog(110.0)) == (1.0, 2.0, 1.0)
    assert truth.lag_s(102.0) == pytest.approx(1.0)


def test_the_right_size_just_serves_the_spike() -> None:
    # 320 lines/s at 90 per task and 5 % of it serial need 5 tasks; 960 words/s at 200 per task and 3 % need 6.
    assert right_slots() == 11
