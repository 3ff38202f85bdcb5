"""Charts as inline SVG: readable without a script, zoomable with one, and free of dependencies but numpy.

A figure is plain data (`figure.py`); `svg.py` renders it. `chart.css` colours it, light and dark; `chart.js` adds the
crosshair, the zoom and the legend's switches. All text of a user passes through `markup.py`, which escapes it.

| file | what |
|---|---|
| `figure.py` | Figure, Panel, Axis and the traces |
| `pens.py` | colours, dashes and symbols, one pen per name |
| `time_axis.py` | time on the x axis: lines with gaps, limits, shaded periods, stacked panels |
| `scale.py` | from values to coordinates; ticks |
| `marks.py` | each trace as SVG |
| `legend.py` | legend entries, beside or above the panels |
| `svg.py` | the layout: margins, panels, axes |
| `markup.py` | elements, escaping, coordinates |
"""
