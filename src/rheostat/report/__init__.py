"""Pages for people: one HTML file each, with its charts, that works offline and can be printed or mailed.

jinja2 (extra `report`) is loaded when a page is written.

| file | what |
|---|---|
| `journal_page.py`, `figures.py`, `history.py` | the journal of one job: page, figures, series |
| `plan_page.py` | a capacity plan |
| `shadow_page.py` | a dry run beside what really ran, and its score |
| `html.py` | cells, tables and templates |
| `chart/` | charts as SVG |
| `series.py`, `words.py` | long series reduced to what a page can show; numbers as text |
"""
