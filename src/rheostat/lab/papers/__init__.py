"""The papers' comparisons, a package each: `rheostat reproduce` prints their tables beside ours.

Only the command, lazily, and `lab/bench` import this folder. No paper's package imports another's.

| file | what is in it |
|---|---|
| `suite.py`, `registry.py` | a suite: sizes, parts, tables, conclusions, figures; the five by name |
| `parallel.py` | parts on as many processes as there are cores |
| `table.py`, `conclusion.py`, `result.py` | cells, conclusions checked against them, all of it |
| `charts.py`, `page.py` | bars and curves; the HTML page |
| `play.py`, `tuning.py`, `capacity.py` | controllers on a simulated fleet; tunings; what an allocation serves |

In every package: `paper.py` has what the paper prints, `runs.py` what is run, `tables.py`, `conclusions.py` and
`figures.py` what is made of it, `__init__.py` the suite.
"""
