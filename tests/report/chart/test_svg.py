from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from charts import Chart, line_places

from rheostat.report.chart.figure import Area, Axis, Bars, Figure, Heat, Line, Panel, Points, Rule, Shade, Trace
from rheostat.report.chart.markup import line_path
from rheostat.report.chart.pens import COLOURS, DASHES, SYMBOLS, Pen, pens
from rheostat.report.chart.svg import render_svg, script, style

BLUE = Pen("blue")


def chart(*traces: Trace, x: Axis | None = None, y: Axis | None = None, **more: Any) -> Chart:
    panel = Panel("Rate, records/s", 100, traces, y or Axis(from_zero=True))
    return Chart(render_svg(Figure("A test", x or Axis("time"), [panel], **more), "test"))


def floats(*values: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array(values, dtype=float)


def test_points_lie_where_they_should() -> None:
    drawn = chart(
        Line("load", floats(0, 5, 10), floats(0, 50, 100), BLUE), x=Axis(low=0, high=10), y=Axis(low=0, high=100)
    )
    left, top, width, height = drawn.field()
    line = drawn.line("load")
    assert line.places[0] == pytest.approx((left, top + height), abs=0.05)
    assert line.places[1] == pytest.approx((left + width / 2, top + height / 2), abs=0.05)
    assert line.places[2] == pytest.approx((left + width, top), abs=0.05)
    assert line.x == pytest.approx([0, 5, 10], abs=0.01)
    assert line.y == [0, 50, 100]


def test_a_path_gives_its_points_back_without_adding_up_rounding_errors() -> None:
    rng = np.random.default_rng(1)
    x, y = np.sort(rng.uniform(0, 1000, 2000)), rng.uniform(0, 200, 2000)
    y[[0, 700, 701, 1999]] = np.nan
    for step in (False, True):
        places = line_places(line_path(x, y, step))
        drawn = [place for place in places if place]
        kept = ~np.isnan(y)
        np.testing.assert_allclose([place[0] for place in drawn], x[kept], atol=0.0051)
        np.testing.assert_allclose([place[1] for place in drawn], y[kept], atol=0.051)
        assert places.count(None) == 1


def test_a_step_line_keeps_its_value_until_the_next_point() -> None:
    assert line_path(floats(0, 10, 20), floats(5, 8, 8), step=True) == "M0 5h10v3h10v0"


def test_a_log_axis_leaves_out_what_is_not_positive() -> None:
    drawn = chart(Line("lag", floats(0, 1, 2), floats(1, 0, 100), BLUE), y=Axis(scale="log"))
    assert drawn.line("lag").y == [1, None, 100]


def test_the_grid_has_a_line_per_tick() -> None:
    drawn = chart(Line("load", floats(0, 10), floats(0, 100), BLUE), x=Axis(low=0, high=10))
    grids = [node.get("d", "") for node in drawn.root.iter("path") if "grid" in node.get("class", "")]
    ticks = [node for node in drawn.root.iter("text") if node.get("class") == "tick y"]
    assert grids[0].count("M") == len(ticks) > 2


def test_markers_have_places_texts_and_labels() -> None:
    points = Points("measured", floats(1, 2), floats(10, 20), BLUE, texts=["one", "two"], labels=["a", ""])
    drawn = chart(points, x=Axis(low=0, high=4))
    left, _, width, _ = drawn.field()
    assert [marker.place[0] for marker in drawn.markers] == pytest.approx(
        [left + width / 4, left + width / 2], abs=0.01
    )
    assert [marker.text for marker in drawn.markers] == ["one", "two"]
    assert "a" in drawn.words


def test_bars_stand_on_zero_with_their_intervals() -> None:
    bars = Bars("ds2", floats(0, 1), floats(10, -5), floats(8, np.nan), floats(12, np.nan), 0.8, BLUE, ["ten", "minus"])
    drawn = chart(bars, x=Axis(labels=("Q1", "Q2")))
    up, down = [
        node for node in drawn.root.iter("rect") if node.get("class") == "bar" and node.find("title") is not None
    ]
    assert float(up.get("y", "")) + float(up.get("height", "")) == pytest.approx(float(down.get("y", "")), abs=0.02)
    assert float(up.get("height", "")) == pytest.approx(2 * float(down.get("height", "")), abs=0.02)
    assert len([node for node in drawn.root.iter("path") if node.get("class") == "interval"]) == 1
    assert {"Q1", "Q2"} <= set(drawn.words)
    assert drawn.root.get("data-scale") is None  # categories do not zoom


def test_a_heat_map_fills_its_cells_by_value() -> None:
    heat = Heat(floats(0, 1, 2), floats(0, 1), np.array([[1.0, 9.0]]), [["low", "high"]], bar="records/s")
    drawn = chart(heat, x=Axis(low=0, high=2), y=Axis(low=0, high=1))
    cells = [node for node in drawn.root.iter("rect") if node.get("class") == "cell"]
    assert [cell.get("fill") for cell in cells] == ["#440154", "#fde725"]
    assert [cell.findtext("title") for cell in cells] == ["low", "high"]
    assert {"records/s", "1", "9"} <= set(drawn.words)


def test_areas_rules_and_shades_are_drawn() -> None:
    drawn = chart(
        Area("90 % band", floats(0, 10), floats(1, 2), floats(3, 4), BLUE),
        Rule("SLO", 5.0, Pen("limit", "dash")),
        shades=[Shade("change", [(2.0, 3.0), (9.0, 9.0)], Pen("sky"), 0.2)],
        x=Axis(low=0, high=10),
    )
    area, rule = (
        next(node for node in drawn.panels[0].iter("path") if name in node.get("class", "").split()).get("d", "")
        for name in ("area", "line")
    )
    left, _, width, _ = drawn.field()
    assert area.endswith("z")
    assert rule.startswith(f"M{left + width / 2:.2f} ")
    first, second = drawn.shades("sky")
    assert first == pytest.approx((2, 3), abs=0.01)
    assert second[1] > second[0]  # too short to be seen: a unit wide
    assert list(drawn.keys) == ["90 % band", "SLO", "change"]


def test_panels_share_the_x_axis_one_below_the_other() -> None:
    line = Line("load", floats(0, 10), floats(0, 1), BLUE)
    figure = Figure("Two", Axis("time"), [Panel("A", 100, [line]), Panel("B", 80, [line])], legend="right")
    drawn = Chart(render_svg(figure, "two"))
    (left, top, width, height), (left_2, top_2, width_2, height_2) = drawn.field(0), drawn.field(1)
    assert (left, width, height, height_2) == (left_2, width_2, 100, 80)
    assert top_2 > top + height
    assert drawn.words.count("time") == 1


def test_panels_side_by_side_have_an_x_axis_each() -> None:
    line = Line("path", floats(1, 10), floats(1, 10), BLUE)
    figure = Figure("Row", Axis("tasks"), [Panel("A", 100, [line]), Panel("B", 100, [line])], columns=True)
    drawn = Chart(render_svg(figure, "row"))
    (left, top, width, _), (left_2, top_2, _, _) = drawn.field(0), drawn.field(1)
    assert top == top_2
    assert left_2 > left + width
    assert drawn.words.count("tasks") == 2


def test_a_panel_grows_with_its_legend() -> None:
    lines = [
        Line(f"operator {k}", floats(0, 1), floats(k, k), pen) for k, pen in enumerate(pens("abcdefghijkl").values())
    ]
    figure = Figure("Many", Axis(), [Panel("A", 60, lines)], legend="right")
    assert Chart(render_svg(figure, "many")).field()[3] == 12 * 17


def test_a_long_name_is_cut_in_the_legend_and_whole_in_its_tip() -> None:
    name = "a-very-long-operator-name-that-no-legend-has-room-for"
    figure = Figure("Long", Axis(), [Panel("A", 60, [Line(name, floats(0, 1), floats(0, 1), BLUE)])], legend="right")
    drawn = Chart(render_svg(figure, "long"))
    (shown,) = [word for word in drawn.words if word.startswith("a-very")]
    assert shown.endswith("…")
    assert name in drawn.tips


def test_every_text_is_escaped() -> None:
    evil = "\"><script>alert('1')</script>&"
    panel = Panel(
        evil,
        100,
        [
            Line(evil, floats(0, 1), floats(0, 1), BLUE, evil),
            Points(evil, floats(0), floats(0), BLUE, texts=[evil], labels=[evil]),
            Bars(evil, floats(0), floats(1), floats(0), floats(2), 0.5, BLUE, [evil]),
            Heat(floats(0, 1), floats(0, 1), np.ones((1, 1)), [[evil]], bar=evil),
            Rule(evil, 0.5, BLUE),
        ],
        Axis(labels=(evil,)),
    )
    figure = Figure(evil, Axis(evil, labels=(evil,), unit=evil), [panel], [Shade(evil, [(0, 1)], BLUE, 0.1)])
    svg = render_svg(figure, "evil")
    assert "<script" not in svg
    assert Chart(svg).title == evil
    assert Chart(svg).line(evil).unit == evil


def test_nothing_to_draw_is_an_empty_chart() -> None:
    drawn = chart(Line("load", np.empty(0), np.empty(0), BLUE), Points("none", np.empty(0), np.empty(0), BLUE))
    assert "nan" not in drawn.svg
    assert "inf" not in drawn.svg
    assert drawn.line("load").places == []


def test_colours_and_dashes_of_every_pen_have_a_style() -> None:
    for colour in (*COLOURS, "grey", "pale", "limit", "paper", "ink"):
        assert style().count(f"--{colour}:") == 2, colour  # light and dark
    for dash in DASHES[1:]:
        assert f"svg.chart .{dash} " in style()
    for symbol in (*SYMBOLS, "x", "ring", "triangle-down", "star-open"):
        assert chart(Points("p", floats(1), floats(1), Pen("blue", symbol=symbol))).markers


def test_the_script_is_small_and_reads_the_ticks_by_the_same_rules() -> None:
    assert len(script().encode()) < 20_000
    from rheostat.report.chart.scale import DAY_S, TIME_STEPS_S

    below_a_day = re.search(r"const STEPS = \[\s*([\d, ]+),", script())
    assert below_a_day is not None
    days = re.search(r"\.\.\.\[([\d, ]+)\]\.map\(\(days\)", script())
    assert days is not None
    steps = [int(step) for step in below_a_day.group(1).split(",")]
    steps += [int(day) * DAY_S for day in days.group(1).split(",")]
    assert tuple(steps) == TIME_STEPS_S


def test_long_categories_are_tilted_and_stay_inside() -> None:
    labels = tuple(f"{k}M (1000 ms, 10 min)" for k in range(24))
    bars = Bars("ds2", np.arange(24.0), np.ones(24), np.full(24, np.nan), np.full(24, np.nan), 0.8, BLUE)
    drawn = chart(bars, x=Axis(labels=labels))
    tilted = [node for node in drawn.root.iter("text") if "tilted" in node.get("class", "")]
    assert [node.text for node in tilted] == list(labels)
    assert float(tilted[0].get("x", "")) > 0.7 * 0.6 * 11 * len(labels[0])
    few = chart(bars, x=Axis(labels=labels[:4]))
    assert not [node for node in few.root.iter("text") if "tilted" in node.get("class", "")]
