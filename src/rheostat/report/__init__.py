"""Pages for people: one HTML file each, with its plots, that works offline and can be printed or mailed.

plotly and jinja2 are only loaded when a page is made.

| file | what |
|---|---|
| `journal_page.py`, `figures.py`, `history.py` | what happened to one job: page, pictures, series |
| `plan_page.py` | a capacity plan |
| `html.py`, `drawing.py` | cells, tables and templates; plots |
| `series.py`, `words.py` | long series made short; numbers as text |
"""
